use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::super::*;
use super::platform::{Answer, Platform, faults, tokens};
use super::{config, nobody_listens, pair, sign_in, stored, vault_in};

struct Rig {
    source: TokenSource,
    rotations: Arc<AtomicUsize>,
}

fn rig(base: &url::Url, vault: &vault::Vault) -> Rig {
    let rotations = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rotations);
    let counting = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    Rig { source: TokenSource::new(&config(base), vault, counting).unwrap(), rotations }
}

fn text(token: Result<SecretString, TokenError>) -> String {
    token.unwrap().expose_secret().to_owned()
}

fn old() -> SecretString {
    SecretString::from("old")
}

#[tokio::test]
async fn a_token_that_lasts_is_used_and_one_about_to_end_is_refreshed() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| tokens("new", Some("new-refresh"))).await;
    let rig = rig(&platform.base, &vault);
    sign_in(&vault, &platform.base, 3600.0);
    assert_eq!(text(rig.source.access_token().await), "old");
    assert!(platform.requests().is_empty());
    sign_in(&vault, &platform.base, 30.0);
    assert_eq!(text(rig.source.access_token().await), "new");
    assert_eq!(stored(&vault), pair("new", "new-refresh"));
    let form = &platform.requests()[0].form;
    assert_eq!(
        (&*form["grant_type"], &*form["refresh_token"], &*form["client_id"]),
        ("refresh_token", "old-refresh", "client-1")
    );
    assert_eq!(text(rig.source.access_token().await), "new");
    assert_eq!((platform.requests().len(), rig.rotations.load(Ordering::Relaxed)), (1, 1));
}

#[tokio::test]
async fn a_platform_that_does_not_rotate_keeps_the_refresh_token_going() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| tokens("new", None)).await;
    sign_in(&vault, &platform.base, 3600.0);
    let rig = rig(&platform.base, &vault);
    assert_eq!(text(rig.source.refresh_after_401(&old()).await), "new");
    assert_eq!(stored(&vault), pair("new", "old-refresh"));
}

#[tokio::test]
async fn without_a_refresh_token_the_access_token_is_used_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| Answer::Json(500, json!({}))).await;
    let mut tokens = sign_in(&vault, &platform.base, 30.0);
    tokens.refresh_token = None;
    vault.store_tokens(&tokens).unwrap();
    let rig = rig(&platform.base, &vault);
    assert_eq!(text(rig.source.access_token().await), "old");
    assert!(matches!(rig.source.refresh_after_401(&old()).await, Err(TokenError::SignedOut(_))));
    tokens.expires_at = super::now() - 1.0;
    vault.store_tokens(&tokens).unwrap();
    assert!(matches!(rig.source.access_token().await, Err(TokenError::SignedOut(_))));
    assert!(platform.requests().is_empty());
}

/// Ten tasks ask; the platform answers when all of them wait.
async fn ten_ask(answer: fn() -> Answer) -> (Vec<Result<SecretString, TokenError>>, usize) {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let platform = Platform::start(move |_| Answer::After(Arc::clone(&held), Box::new(answer()))).await;
    sign_in(&vault, &platform.base, 3600.0);
    let rig = rig(&platform.base, &vault);
    let mut asking = JoinSet::new();
    for _ in 0..10 {
        let source = rig.source.clone();
        asking.spawn(async move { source.refresh_after_401(&old()).await });
    }
    platform.wait_for_requests(1).await;
    gate.add_permits(100);
    (asking.join_all().await, platform.requests().len())
}

#[tokio::test]
async fn ten_who_ask_at_once_share_one_refresh() {
    let (results, requests) = ten_ask(|| tokens("new", Some("new-refresh"))).await;
    assert!(results.into_iter().all(|result| text(result) == "new"));
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn ten_who_ask_at_once_share_one_failure() {
    let (results, requests) = ten_ask(|| Answer::Json(500, json!({}))).await;
    assert!(results.into_iter().all(|result| matches!(result, Err(TokenError::Temporary(_)))));
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn what_another_process_rotated_or_signed_in_to_is_used_without_asking() {
    let dir = tempfile::tempdir().unwrap();
    let (vault, other) = (vault_in(dir.path()), vault_in(dir.path()));
    let platform = Platform::start(|_| Answer::Json(500, json!({}))).await;
    let mut tokens = sign_in(&vault, &platform.base, 3600.0);
    let rig = rig(&platform.base, &vault);
    tokens.access_token = SecretString::from("theirs");
    other.store_tokens(&tokens).unwrap();
    assert_eq!(text(rig.source.refresh_after_401(&old()).await), "theirs");
    assert_eq!(text(rig.source.access_token().await), "theirs");
    assert_eq!((platform.requests().len(), rig.rotations.load(Ordering::Relaxed)), (0, 0));
}

#[tokio::test]
async fn two_processes_refresh_once() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let platform =
        Platform::start(move |_| Answer::After(Arc::clone(&held), Box::new(tokens("new", Some("next")))))
            .await;
    // Two vaults and two sources share nothing but the folder, as two processes do.
    let (one, two) = (vault_in(dir.path()), vault_in(dir.path()));
    sign_in(&one, &platform.base, 3600.0);
    let (first, second) = (rig(&platform.base, &one).source, rig(&platform.base, &two).source);
    let used = old();
    let release = async {
        platform.wait_for_requests(1).await;
        gate.add_permits(100);
    };
    let (a, b, ()) = tokio::join!(first.refresh_after_401(&used), second.refresh_after_401(&used), release);
    assert_eq!((text(a), text(b)), ("new".to_owned(), "new".to_owned()));
    assert_eq!(platform.requests().len(), 1);
}

#[tokio::test]
async fn the_platforms_no_signs_out_and_only_a_dead_grant_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let cases: [(fn() -> Answer, bool); 4] = [
        (|| Answer::Json(400, json!({"error": "invalid_grant"})), true),
        (|| Answer::Json(400, json!({"detail": "invalid_grant: Refresh token has been revoked"})), true),
        (|| Answer::Json(401, json!({"error": "invalid_client"})), false),
        (|| Answer::Json(401, json!("?")), false),
    ];
    for (answer, forgotten) in cases {
        let platform = Platform::start(move |_| answer()).await;
        sign_in(&vault, &platform.base, 3600.0);
        let result = rig(&platform.base, &vault).source.refresh_after_401(&old()).await;
        assert!(matches!(result, Err(TokenError::SignedOut(_))));
        assert_eq!(stored(&vault).is_none(), forgotten);
    }
}

#[tokio::test]
async fn trouble_is_temporary_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    for (name, answer) in faults() {
        let platform = Platform::start(move |_| answer()).await;
        sign_in(&vault, &platform.base, 3600.0);
        let rig = rig(&platform.base, &vault);
        let result = rig.source.refresh_after_401(&old()).await;
        assert!(matches!(result, Err(TokenError::Temporary(_))), "{name}");
        assert_eq!(stored(&vault), pair("old", "old-refresh"), "{name}");
        assert_eq!(platform.requests().len(), 1, "{name}: a redirect was followed");
    }
    let gone = nobody_listens();
    sign_in(&vault, &gone, 30.0);
    let rig = rig(&gone, &vault);
    assert_eq!(text(rig.source.access_token().await), "old", "it still lasts half a minute");
    sign_in(&vault, &gone, -1.0);
    assert!(matches!(rig.source.access_token().await, Err(TokenError::Temporary(_))));
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_says_nothing_is_given_up_on() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| Answer::Silence).await;
    sign_in(&vault, &platform.base, 3600.0);
    let began = tokio::time::Instant::now();
    let result = rig(&platform.base, &vault).source.refresh_after_401(&old()).await;
    assert!(matches!(result, Err(TokenError::Temporary(_))));
    assert!(began.elapsed().as_secs() <= 30);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_lose_the_new_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let platform =
        Platform::start(move |_| Answer::After(Arc::clone(&held), Box::new(tokens("new", Some("next")))))
            .await;
    sign_in(&vault, &platform.base, 3600.0);
    let rig = rig(&platform.base, &vault);
    let used = old();
    tokio::select! {
        _ = rig.source.refresh_after_401(&used) => panic!("the platform did not answer yet"),
        () = platform.wait_for_requests(1) => {}
    }
    gate.add_permits(1);
    assert_eq!(text(rig.source.refresh_after_401(&used).await), "new");
    assert_eq!((stored(&vault), platform.requests().len()), (pair("new", "next"), 1));
}

#[tokio::test]
async fn an_abort_ends_the_refresh_at_once_and_later_ones_work() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let platform =
        Platform::start(move |_| Answer::After(Arc::clone(&held), Box::new(tokens("new", Some("next")))))
            .await;
    sign_in(&vault, &platform.base, 3600.0);
    let rig = rig(&platform.base, &vault);
    let used = old();
    let abort = async {
        platform.wait_for_requests(1).await;
        rig.source.abort();
    };
    let (result, ()) = tokio::join!(rig.source.refresh_after_401(&used), abort);
    assert!(matches!(result, Err(TokenError::Temporary(_))));
    gate.add_permits(2);
    assert_eq!(text(rig.source.refresh_after_401(&used).await), "new");
}

#[tokio::test]
async fn tokens_of_another_platform_are_never_sent() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| tokens("new", None)).await;
    let rig = rig(&platform.base, &vault);
    assert!(matches!(rig.source.access_token().await, Err(TokenError::SignedOut(_))), "no sign-in at all");
    sign_in(&vault, &nobody_listens(), 3600.0);
    for result in [rig.source.access_token().await, rig.source.refresh_after_401(&old()).await] {
        assert!(matches!(result, Err(TokenError::SignedOut(why)) if why.contains("sign-in is for")));
    }
    assert!(platform.requests().is_empty());
}

#[tokio::test]
async fn new_tokens_that_cannot_be_stored_are_used_and_stored_later() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| tokens("new", Some("next"))).await;
    sign_in(&vault, &platform.base, 3600.0);
    let rig = rig(&platform.base, &vault);
    // A folder in the place of the lock file makes every write fail, for root too.
    let lock = dir.path().join("vault.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    assert_eq!(text(rig.source.refresh_after_401(&old()).await), "new");
    assert_eq!(text(rig.source.access_token().await), "new");
    assert_eq!(stored(&vault), pair("old", "old-refresh"));
    std::fs::remove_dir(&lock).unwrap();
    assert_eq!(text(rig.source.access_token().await), "new");
    assert_eq!(stored(&vault), pair("new", "next"));
    assert_eq!(platform.requests().len(), 1);
}
