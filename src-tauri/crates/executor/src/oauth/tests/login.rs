use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::super::loopback::bind_in;
use super::super::*;
use super::platform::{Answer, Form, Platform, faults, tokens};
use super::{config, nobody_listens, pair, sign_in, stored, vault_in};
use base64::Engine;
use sha2::{Digest, Sha256};
use url::Url;

/// What a browser gets for `request` from the listener of `attempt`.
async fn browse(redirect: &Url, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", redirect.port().unwrap())).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn get(redirect: &Url, target: &str) -> String {
    let port = redirect.port().unwrap();
    browse(redirect, &format!("GET {target} HTTP/1.1\r\nHost: localhost:{port}\r\nCookie: a=b\r\n\r\n")).await
}

fn query(attempt: &Attempt) -> Form {
    attempt.authorize_url().query_pairs().into_owned().collect()
}

fn redirect(attempt: &Attempt) -> Url {
    Url::parse(&query(attempt)["redirect_uri"]).unwrap()
}

#[tokio::test]
async fn a_browser_signs_in() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| tokens("new", Some("new-refresh"))).await;
    let attempt = Attempt::start(&config(&platform.base)).await.unwrap();
    let asked = query(&attempt);
    let redirect = redirect(&attempt);
    assert!(attempt.authorize_url().as_str().starts_with(&format!("{}auth/authorize?", platform.base)));
    assert!(PORTS.contains(&redirect.port().unwrap()));
    assert_eq!((redirect.host_str(), redirect.path()), (Some("localhost"), "/callback"));
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "client-1"),
        ("scope", "USE_TOOLS"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(asked[name], value);
    }

    let callback = format!("/callback?code=c%2F1&state={}", asked["state"]);
    let (ended, page) = tokio::join!(attempt.finish(&vault), get(&redirect, &callback));
    ended.unwrap();
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("Signed in"), "{page}");
    assert!(page.contains("Content-Security-Policy: default-src 'none'"), "{page}");
    assert_eq!(stored(&vault), pair("new", "new-refresh"));
    assert!(vault.tokens().unwrap().unwrap().expires_at > super::now() + 3500.0);

    let sent = &platform.requests()[0];
    assert_eq!((platform.requests().len(), &*sent.path), (1, "/api/oauth/token"));
    let challenge = Sha256::digest(&sent.form["code_verifier"]);
    let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(challenge);
    assert_eq!(challenge, asked["code_challenge"]);
    for (name, value) in [
        ("grant_type", "authorization_code"),
        ("code", "c/1"),
        ("client_id", "client-1"),
        ("redirect_uri", redirect.as_str()),
    ] {
        assert_eq!(sent.form[name], value);
    }
    // Another test may have taken the port meanwhile, and leaves it too.
    let deadline = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(("127.0.0.1", redirect.port().unwrap())).await.is_ok() {
        assert!(Instant::now() < deadline, "the port is closed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_bad_callback_ends_the_attempt_and_leaves_the_old_sign_in() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| tokens("new", Some("new-refresh"))).await;
    sign_in(&vault, &platform.base, 3600.0);
    type Expected = fn(&OAuthError) -> bool;
    let cases: [(&str, Expected); 5] = [
        ("?code=c&state=wrong", |e| matches!(e, OAuthError::WrongState)),
        ("?code=c", |e| matches!(e, OAuthError::MissingState)),
        ("", |e| matches!(e, OAuthError::MissingState)),
        ("?error=access_denied&state=STATE", |e| matches!(e, OAuthError::Denied(_))),
        ("?state=STATE&code=a&code=b", |e| matches!(e, OAuthError::BadCallback)),
    ];
    for (callback, expected) in cases {
        let attempt = Attempt::start(&config(&platform.base)).await.unwrap();
        let redirect = redirect(&attempt);
        let callback = format!("/callback{}", callback.replace("STATE", &query(&attempt)["state"]));
        let (ended, page) = tokio::join!(attempt.finish(&vault), get(&redirect, &callback));
        let error = ended.err().unwrap();
        assert!(expected(&error), "{callback}: {error}");
        assert!(page.starts_with("HTTP/1.1 400 ") && page.contains("Not signed in"), "{page}");
        assert_eq!(stored(&vault), pair("old", "old-refresh"));
    }
    assert!(platform.requests().is_empty(), "nothing was sent to the platform");
}

#[tokio::test]
async fn a_second_callback_ends_the_attempt_and_revokes_what_it_brought() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let platform = Platform::start(move |request| match &*request.path {
        "/api/oauth/token" => Answer::After(Arc::clone(&held), Box::new(tokens("new", Some("new-refresh")))),
        _ => Answer::Json(200, serde_json::json!({})),
    })
    .await;
    sign_in(&vault, &platform.base, 3600.0);
    let attempt = Attempt::start(&config(&platform.base)).await.unwrap();
    let (state, redirect) = (query(&attempt)["state"].clone(), redirect(&attempt));
    let (again, address) = (attempt.completion(), format!("{redirect}?code=other&state={state}"));
    let callback = format!("/callback?code=c&state={state}");
    let second = async {
        platform.wait_for_requests(1).await;
        again.complete(&address).unwrap();
        // The attempt takes it before it looks at the exchange, which this lets go on.
        gate.add_permits(1);
    };
    let (ended, page, ()) = tokio::join!(attempt.finish(&vault), get(&redirect, &callback), second);
    assert!(matches!(ended.err(), Some(OAuthError::SecondCallback)));
    assert!(page.contains("came back twice"), "{page}");
    assert_eq!(stored(&vault), pair("old", "old-refresh"));
    let revoked: Vec<_> = platform.requests()[1..].iter().map(|r| r.form["token"].clone()).collect();
    assert_eq!(revoked, ["new-refresh", "new"]);
    assert_eq!(again.complete(&address), Err(NotCompleted::Over));
}

#[tokio::test(start_paused = true)]
async fn nobody_coming_back_ends_the_attempt_after_five_minutes() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let base = nobody_listens();
    sign_in(&vault, &base, 3600.0);
    let began = tokio::time::Instant::now();
    let attempt = Attempt::start(&config(&base)).await.unwrap();
    assert!(matches!(attempt.finish(&vault).await.err(), Some(OAuthError::TimedOut)));
    assert_eq!(began.elapsed().as_secs(), 300);
    assert_eq!(stored(&vault), pair("old", "old-refresh"));
}

#[tokio::test]
async fn a_platform_in_trouble_ends_the_attempt_and_leaves_the_old_sign_in() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let mut bad = faults();
    bad.push(("refusal", || {
        Answer::Json(
            400,
            serde_json::json!({"error": "invalid_grant", "error_description": "used\u{202e} up"}),
        )
    }));
    for (name, answer) in bad {
        let platform = Platform::start(move |_| answer()).await;
        sign_in(&vault, &platform.base, 3600.0);
        let attempt = Attempt::start(&config(&platform.base)).await.unwrap();
        let address = format!("{}?code=c&state={}", redirect(&attempt), query(&attempt)["state"]);
        attempt.completion().complete(&address).unwrap();
        let error = attempt.finish(&vault).await.err().expect(name);
        match error {
            OAuthError::Unreachable(_) | OAuthError::BadAnswer(_) => {}
            OAuthError::Refused(why) => assert!(name == "refusal" && why.contains("used· up"), "{why}"),
            other => panic!("{name}: {other}"),
        }
        assert_eq!(stored(&vault), pair("old", "old-refresh"), "{name}");
        assert_eq!(platform.requests().len(), 1, "{name}: a redirect was followed");
    }
    let attempt = Attempt::start(&config(&nobody_listens())).await.unwrap();
    let address = format!("{}?code=c&state={}", redirect(&attempt), query(&attempt)["state"]);
    attempt.completion().complete(&address).unwrap();
    assert!(matches!(attempt.finish(&vault).await.err(), Some(OAuthError::Unreachable(_))));
}

#[tokio::test]
async fn what_is_no_callback_does_not_end_the_attempt() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| tokens("new", None)).await;
    let attempt = Attempt::start(&config(&platform.base)).await.unwrap();
    let (state, redirect) = (query(&attempt)["state"].clone(), redirect(&attempt));
    let port = redirect.port().unwrap();
    let browsing = async {
        let favicon = get(&redirect, "/favicon.ico").await;
        assert!(favicon.starts_with("HTTP/1.1 404 "), "{favicon}");
        let host = format!("Host: localhost:{port}");
        for request in [
            format!("POST /callback?code=c&state={state} HTTP/1.1\r\n{host}\r\n\r\n"),
            format!("GET /callback?code=c&state={state} HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"),
            format!("GET /callback?code=c&state={state} HTTP/1.1\r\n\r\n"),
            format!("nonsense\r\n{host}\r\n\r\n"),
        ] {
            let refused = browse(&redirect, &request).await;
            assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("Nothing here"), "{refused}");
        }
        let endless = "GET /".to_owned() + &"x".repeat(100_000);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // It may be cut off while it is still talking.
        let _ = stream.write_all(endless.as_bytes()).await;
        let idle = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let page = get(&redirect, &format!("/callback?code=c&state={state}")).await;
        drop(idle);
        page
    };
    let (ended, page) = tokio::join!(attempt.finish(&vault), browsing);
    ended.unwrap();
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    assert_eq!(stored(&vault), Some(("new".to_owned(), None)));
}

#[tokio::test]
async fn an_address_from_another_machines_browser_can_be_pasted() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| tokens("new", Some("new-refresh"))).await;
    let (input, mut person) = tokio::io::simplex(4096);
    let (shown, seen) = tokio::sync::oneshot::channel();
    let shown = Mutex::new(Some(shown));
    let complaints = Mutex::new(0);
    let show = |url: &Url| {
        let form: Form = url.query_pairs().into_owned().collect();
        shown.lock().unwrap().take().unwrap().send(form).unwrap();
    };
    let config = config(&platform.base);
    let signing_in =
        login_pasting(&config, &vault, show, BufReader::new(input), |_| *complaints.lock().unwrap() += 1);
    let pasting = async {
        let form = seen.await.unwrap();
        let address = form["redirect_uri"].strip_prefix("http://").unwrap();
        let lines = format!(
            "\nwhat?\nhttps://evil.example/callback?code=c&state={state}\n  {address}?code=c&state={state} \n",
            state = form["state"]
        );
        person.write_all(lines.as_bytes()).await.unwrap();
    };
    let (ended, ()) = tokio::join!(signing_in, pasting);
    ended.unwrap();
    assert_eq!(*complaints.lock().unwrap(), 2);
    assert_eq!(stored(&vault), pair("new", "new-refresh"));
}

#[tokio::test]
async fn a_deep_link_completes_an_attempt_that_has_no_port() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let platform = Platform::start(|_| tokens("new", Some("new-refresh"))).await;
    let config = OAuthConfig::new(&platform.base, "client-1", SCOPE, Redirect::DeepLink).unwrap();
    let attempt = Attempt::start(&config).await.unwrap();
    let asked = query(&attempt);
    assert_eq!(asked["redirect_uri"], "deskhand://oauth/callback");
    let completion = attempt.completion();
    for other in
        ["deskhand://oauth/callback", "deskhand://oauth/other?code=c", "deskhand://settings?code=c", "x"]
    {
        assert_eq!(completion.complete(other), Err(NotCompleted::NotACallback), "{other}");
    }
    let link = format!("deskhand://oauth/callback?code=c&state={}", asked["state"]);
    completion.complete(&link).unwrap();
    attempt.finish(&vault).await.unwrap();
    assert_eq!(stored(&vault), pair("new", "new-refresh"));
    assert_eq!(platform.requests()[0].form["redirect_uri"], "deskhand://oauth/callback");
    assert_eq!(completion.complete(&link), Err(NotCompleted::Over));
}

#[tokio::test]
async fn tokens_can_be_given_as_text() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault_in(dir.path());
    let config = config(&nobody_listens());
    for text in
        ["", "[]", "{}", "{\"access_token\":\"\"}", "{\"access_token\":\"with space\"}", "secret-text"]
    {
        let error = login_with_token(&config, &vault, text).await.err().unwrap();
        assert!(matches!(error, OAuthError::BadToken(_)));
        assert!(
            !error.to_string().contains("secret") && !error.to_string().contains("with space"),
            "{error}"
        );
        assert_eq!(stored(&vault), None);
    }
    let text = r#" {"access_token":"a","refresh_token":"r","expires_in":100,"scope":"x"} "#;
    login_with_token(&config, &vault, text).await.unwrap();
    assert_eq!(stored(&vault), pair("a", "r"));
    assert!((vault.tokens().unwrap().unwrap().expires_at - super::now() - 100.0).abs() < 30.0);
    login_with_token(&config, &vault, r#"{"access_token":"b"}"#).await.unwrap();
    assert_eq!(stored(&vault), Some(("b".to_owned(), None)));
}

#[tokio::test]
async fn the_first_free_port_is_taken_and_none_is_an_error() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    assert!(matches!(bind_in(port..=port).await.err(), Some(OAuthError::NoPort)));
    let (listener, redirect) = bind_in(port..=u16::MAX).await.unwrap();
    let address = listener.local_addr().unwrap();
    assert!(address.ip().is_loopback() && address.port() > port);
    assert_eq!(redirect.as_str(), format!("http://localhost:{}/callback", address.port()));
}

#[tokio::test]
async fn an_attempt_that_is_given_up_leaves_no_listener() {
    let attempt = Attempt::start(&config(&nobody_listens())).await.unwrap();
    let port = redirect(&attempt).port().unwrap();
    let idle = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    drop(attempt);
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    drop(idle);
}

#[test]
fn tokens_go_over_tls_or_stay_on_this_machine() {
    let of = |text: &str| OAuthConfig::new(&Url::parse(text).unwrap(), "c", SCOPE, Redirect::Loopback);
    for good in [
        "https://platform.example",
        "https://p.example/base/",
        "http://localhost:8000",
        "http://127.0.0.1",
        "http://[::1]:8/x",
    ] {
        assert_eq!(of(good).unwrap().platform(), good.trim_end_matches('/'));
    }
    for bad in [
        "http://platform.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.nip.io",
        "http://0.0.0.0",
        "ftp://localhost",
        "wss://platform.example",
        "https://platform.example/?x=1",
        "https://platform.example/#x",
        "https://user:hush@platform.example",
    ] {
        let error = of(bad).expect_err(bad);
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}

#[test]
fn only_web_addresses_are_opened() {
    for text in ["file:///etc/passwd", "javascript:alert(1)", "deskhand://x"] {
        assert!(open_in_browser(&Url::parse(text).unwrap()).is_err(), "{text}");
    }
}
