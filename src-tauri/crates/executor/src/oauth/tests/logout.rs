use serde_json::json;

use super::super::*;
use super::platform::{Answer, Platform};
use super::{config, nobody_listens, pair, sign_in, stored, vault_in};

#[tokio::test]
async fn both_tokens_are_revoked_where_they_belong_and_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| Answer::Json(200, json!({}))).await;
    sign_in(&vault, &platform.base, 3600.0);
    // The configuration may name another platform by now.
    let elsewhere = config(&nobody_listens());
    assert_eq!(log_out(&elsewhere, &vault).await.unwrap(), LoggedOut::Revoked);
    assert_eq!(stored(&vault), None);
    let sent = platform.requests();
    assert!(sent.iter().all(|r| r.path == "/api/oauth/revoke" && r.form["client_id"] == "client-1"));
    let tokens: Vec<_> = sent.iter().map(|r| (&*r.form["token"], &*r.form["token_type_hint"])).collect();
    assert_eq!(tokens, [("old-refresh", "refresh_token"), ("old", "access_token")]);
    assert_eq!(log_out(&elsewhere, &vault).await.unwrap(), LoggedOut::WasSignedOut);
}

#[tokio::test]
async fn tokens_are_kept_when_the_platform_could_not_be_reached() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let halfway = |answer: fn() -> Answer| {
        move |request: &super::platform::Request| match &*request.form["token_type_hint"] {
            "refresh_token" => Answer::Json(200, json!({})),
            _ => answer(),
        }
    };
    for answer in [|| Answer::Json(503, json!({})), || Answer::Hangup, || Answer::Json(429, json!({}))] {
        let platform = Platform::start(halfway(answer)).await;
        sign_in(&vault, &platform.base, 3600.0);
        let error = log_out(&config(&platform.base), &vault).await.err().unwrap();
        assert!(error.to_string().starts_with("still signed in"), "{error}");
        assert_eq!(stored(&vault), pair("old", "old-refresh"));
    }
    let gone = nobody_listens();
    sign_in(&vault, &gone, 3600.0);
    assert!(matches!(log_out(&config(&gone), &vault).await, Err(OAuthError::NotRevoked(_))));
    assert_eq!(stored(&vault), pair("old", "old-refresh"));
}

#[tokio::test]
async fn a_refusal_to_revoke_does_not_keep_anybody_signed_in() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| Answer::Json(401, json!({"error": "invalid_client"}))).await;
    sign_in(&vault, &platform.base, 3600.0);
    let outcome = log_out(&config(&platform.base), &vault).await.unwrap();
    assert!(matches!(outcome, LoggedOut::Refused(why) if why.contains("invalid_client")));
    assert_eq!(stored(&vault), None);
}
