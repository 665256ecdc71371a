//! OAuth: what is issued, what is refused, and what a revocation ends.

use std::time::Duration;

use crate::common::{Rig, answer, client, hello};
use platform::DEFAULT_CLIENT_ID;
use reqwest::{StatusCode, header};
use serde_json::{Value, json};
use url::Url;

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const REDIRECT: &str = "http://localhost:41899/callback";

fn query(changes: &[(&str, &str)]) -> String {
    let mut params = vec![
        ("response_type", "code"),
        ("client_id", DEFAULT_CLIENT_ID),
        ("redirect_uri", REDIRECT),
        ("scope", "USE_TOOLS"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "s t&te"),
    ];
    for (name, value) in changes {
        params.retain(|(known, _)| known != name);
        if !value.is_empty() {
            params.push((name, value));
        }
    }
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish()
}

/// A browser: its cookies, and the forms it is shown.
struct Browser {
    http: reqwest::Client,
    base: Url,
}

impl Browser {
    fn new(rig: &Rig) -> Self {
        Self { http: client(), base: rig.platform.url() }
    }

    fn at(&self, path: &str) -> Url {
        self.base.join(path).unwrap()
    }

    async fn page(&self, path: &str) -> (StatusCode, String) {
        let response = self.http.get(self.at(path)).header(header::ACCEPT, "text/html").send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    async fn csrf(&self, path: &str) -> String {
        let (_, page) = self.page(path).await;
        page.split(r#"name="csrf" value=""#).nth(1).expect("a form").split('"').next().unwrap().to_owned()
    }

    async fn submit(&self, path: &str, fields: &[(&str, &str)]) -> (StatusCode, Option<String>) {
        let response = self.http.post(self.at(path)).form(fields).send().await.unwrap();
        let location = response.headers().get(header::LOCATION).map(|l| l.to_str().unwrap().to_owned());
        (response.status(), location)
    }

    async fn sign_in(&self) {
        let csrf = self.csrf("/auth/sign-in").await;
        let fields = [("csrf", &*csrf), ("name", "ann"), ("password", "correct horse")];
        assert_eq!(self.submit("/auth/sign-in", &fields).await.0, StatusCode::SEE_OTHER);
    }

    async fn decide(&self, query: &str, decision: &str) -> Url {
        let path = format!("/auth/authorize?{query}");
        let csrf = self.csrf(&path).await;
        let (status, location) = self.submit(&path, &[("csrf", &csrf), ("decision", decision)]).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        Url::parse(&location.unwrap()).unwrap()
    }
}

fn param(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

async fn token(rig: &Rig, fields: &[(&str, &str)]) -> (StatusCode, Value) {
    answer(rig.http.post(rig.at("/api/oauth/token")).form(fields)).await
}

fn exchange<'a>(code: &'a str, verifier: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("grant_type", "authorization_code"),
        ("client_id", DEFAULT_CLIENT_ID),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", verifier),
    ]
}

fn refreshing(token: &str) -> [(&str, &str); 3] {
    [("grant_type", "refresh_token"), ("client_id", DEFAULT_CLIENT_ID), ("refresh_token", token)]
}

#[tokio::test]
async fn a_person_signs_in_and_approves_and_the_client_gets_tokens() {
    let rig = Rig::start().await;
    let browser = Browser::new(&rig);
    let path = format!("/auth/authorize?{}", query(&[]));
    let csrf = browser.csrf(&path).await;
    let wrong = [("csrf", &*csrf), ("name", "ann"), ("password", "wrong"), ("next", &*path)];
    assert_eq!(browser.submit("/auth/sign-in", &wrong).await.0, StatusCode::UNAUTHORIZED);
    let right = [("csrf", &*csrf), ("name", "ann"), ("password", "correct horse"), ("next", &*path)];
    assert_eq!(browser.submit("/auth/sign-in", &right).await, (StatusCode::SEE_OTHER, Some(path)));
    let back = browser.decide(&query(&[]), "approve").await;
    assert!(back.as_str().starts_with("http://localhost:41899/callback?"));
    assert_eq!(param(&back, "state").unwrap(), "s t&te");
    let code = param(&back, "code").unwrap();
    let (status, tokens) = token(&rig, &exchange(&code, VERIFIER)).await;
    assert_eq!(status, StatusCode::OK, "{tokens}");
    assert_eq!((&tokens["token_type"], &tokens["expires_in"]), (&json!("Bearer"), &json!(3600)));
    let access = tokens["access_token"].as_str().unwrap();
    rig.dial_with(access, "/ws/local-executor").await.unwrap().greet(hello("m1")).await;
}

#[tokio::test]
async fn deny_says_so_and_keeps_the_state() {
    let rig = Rig::start().await;
    let browser = Browser::new(&rig);
    browser.sign_in().await;
    let back = browser.decide(&query(&[("redirect_uri", "deskhand://oauth/callback")]), "deny").await;
    assert_eq!(back.scheme(), "deskhand");
    assert_eq!(
        (param(&back, "error").unwrap(), param(&back, "state").unwrap()),
        ("access_denied".into(), "s t&te".into())
    );
    assert_eq!(param(&back, "code"), None);
}

#[tokio::test]
async fn a_request_that_cannot_be_trusted_is_not_redirected() {
    let rig = Rig::start().await;
    let browser = Browser::new(&rig);
    browser.sign_in().await;
    for changes in [
        &[("client_id", "stranger")][..],
        &[("client_id", "")],
        &[("redirect_uri", "")],
        &[("redirect_uri", "http://localhost:41899/callback/")],
        &[("redirect_uri", "http://localhost:41911/callback")],
        &[("redirect_uri", "http://localhost:41899/callback?x=1")],
        &[("redirect_uri", "https://evil.example/")],
    ] {
        let url = rig.at(&format!("/auth/authorize?{}", query(changes)));
        let (status, body) = answer(browser.http.get(&url)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{changes:?}");
        assert!(body["error"].is_string() && body["error_description"].is_string(), "{body}");
        let (status, page) = browser.page(&format!("/auth/authorize?{}", query(changes))).await;
        assert!(status == StatusCode::BAD_REQUEST && page.contains("<h1>"));
    }
    let doubled = rig.at(&format!("/auth/authorize?{}&state=again", query(&[])));
    assert_eq!(answer(browser.http.get(doubled)).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn any_other_fault_is_told_to_the_client() {
    let rig = Rig::start().await;
    let browser = Browser::new(&rig);
    for (changes, error) in [
        (("response_type", "token"), "unsupported_response_type"),
        (("code_challenge_method", "plain"), "invalid_request"),
        (("code_challenge_method", ""), "invalid_request"),
        (("code_challenge", "short"), "invalid_request"),
        (("scope", "EVERYTHING"), "invalid_scope"),
    ] {
        let url = browser.at(&format!("/auth/authorize?{}", query(&[changes])));
        let response = browser.http.get(url).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let back = Url::parse(response.headers()[header::LOCATION].to_str().unwrap()).unwrap();
        assert_eq!(param(&back, "error").as_deref(), Some(error));
        assert_eq!(param(&back, "state").as_deref(), Some("s t&te"));
    }
}

#[tokio::test]
async fn forms_of_other_sites_do_nothing() {
    let rig = Rig::start().await;
    let browser = Browser::new(&rig);
    let fields = [("csrf", "guessed"), ("name", "ann"), ("password", "correct horse")];
    assert_eq!(browser.submit("/auth/sign-in", &fields).await.0, StatusCode::FORBIDDEN, "sign-in");
    browser.sign_in().await;
    let path = format!("/auth/authorize?{}", query(&[]));
    for fields in [&[("decision", "approve")][..], &[("decision", "approve"), ("csrf", "guessed")]] {
        assert_eq!(browser.submit(&path, fields).await, (StatusCode::FORBIDDEN, None), "approve");
    }
    let made = browser
        .http
        .post(rig.at("/api/chat/sessions"))
        .json(&json!({ "execution_target": { "kind": "cloud" } }));
    assert_eq!(answer(made).await.0, StatusCode::FORBIDDEN, "a cookie alone changes nothing");
    let cookies = browser.http.get(browser.at("/auth/sign-in")).send().await.unwrap();
    let cookie = cookies.headers()[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
}

#[tokio::test]
async fn a_failed_exchange_burns_nothing_and_a_repeated_one_revokes() {
    let rig = Rig::start().await;
    let browser = Browser::new(&rig);
    browser.sign_in().await;
    let code = param(&browser.decide(&query(&[]), "approve").await, "code").unwrap();
    let other = "x".repeat(43);
    let mut elsewhere = exchange(&code, VERIFIER);
    elsewhere[3].1 = "http://localhost:41900/callback";
    for bad in [exchange(&code, &other), elsewhere] {
        let (status, body) = token(&rig, &bad).await;
        assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_grant")));
        assert!(!body.to_string().contains(&code), "the code is not echoed");
    }
    let (status, tokens) = token(&rig, &exchange(&code, VERIFIER)).await;
    assert_eq!(status, StatusCode::OK, "the failures burned nothing");
    let access = tokens["access_token"].as_str().unwrap();
    let mut machine = rig.dial_with(access, "/ws/local-executor").await.unwrap();
    machine.greet(hello("m1")).await;
    let (status, body) = token(&rig, &exchange(&code, VERIFIER)).await;
    assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_grant")));
    let (code, _, before) = machine.closed().await;
    assert_eq!((code, &before[0]["type"]), (4428, &json!("SESSION_REVOKED")));
    assert_eq!(rig.dial_with(access, "/ws/local-executor").await.err(), Some(StatusCode::UNAUTHORIZED));
}

#[tokio::test]
async fn of_two_exchanges_at_once_one_wins() {
    let rig = Rig::start().await;
    let browser = Browser::new(&rig);
    browser.sign_in().await;
    let code = param(&browser.decide(&query(&[]), "approve").await, "code").unwrap();
    let fields = exchange(&code, VERIFIER);
    let (a, b) = tokio::join!(token(&rig, &fields), token(&rig, &fields));
    let mut both = [a.0, b.0];
    both.sort();
    assert_eq!(both, [StatusCode::OK, StatusCode::BAD_REQUEST]);
}

#[tokio::test]
async fn a_code_expires() {
    let rig = Rig::with(|o| o.timings.code_ttl = Duration::ZERO).await;
    let browser = Browser::new(&rig);
    browser.sign_in().await;
    let code = param(&browser.decide(&query(&[]), "approve").await, "code").unwrap();
    assert_eq!(token(&rig, &exchange(&code, VERIFIER)).await.1["error"], "invalid_grant");
}

#[tokio::test]
async fn refresh_tokens_rotate_and_reuse_revokes_the_family() {
    let rig = Rig::start().await;
    let (mut machine, _) = rig.machine("m1").await;
    let (status, second) = token(&rig, &refreshing(&rig.refresh)).await;
    assert_eq!(status, StatusCode::OK);
    let newer = second["access_token"].as_str().unwrap();
    assert_eq!(rig.get("/api/copilot/executors").await.0, StatusCode::OK, "the old access token lives on");
    let (status, body) = token(&rig, &refreshing(&rig.refresh)).await;
    assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_grant")));
    assert!(!body.to_string().contains(&rig.refresh), "the token is not echoed");
    let (code, _, before) = machine.closed().await;
    assert_eq!(code, 4428);
    assert_eq!(before[0]["payload"]["reason"], "user_revoked");
    let third = refreshing(second["refresh_token"].as_str().unwrap()).to_vec();
    assert_eq!(token(&rig, &third).await.0, StatusCode::BAD_REQUEST, "the whole family is gone");
    assert_eq!(rig.dial_with(newer, "/ws/local-executor").await.err(), Some(StatusCode::UNAUTHORIZED));
    assert_eq!(rig.get("/api/copilot/executors").await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn malformed_requests_are_told_and_never_a_500() {
    let rig = Rig::start().await;
    let secret = "dhr_very-secret";
    let bodies: &[(&str, &str)] = &[
        ("application/x-www-form-urlencoded", ""),
        ("application/x-www-form-urlencoded", "grant_type=refresh_token&refresh_token=dhr_very-secret"),
        ("application/x-www-form-urlencoded", "token=%ff%fe&grant_type=%00&refresh_token=dhr_very-secret"),
        ("application/x-www-form-urlencoded", "token=dhr_very-secret&token=dhr_very-secret"),
        ("application/json", ""),
        ("application/json", "[]"),
        ("application/json", "{\"token\": {\"a\": \"dhr_very-secret\"}"),
        ("application/json", "{\"token\": [\"dhr_very-secret\"]}"),
        ("application/json", "\u{feff}{}"),
        ("text/plain", "token=dhr_very-secret"),
        ("", "token=dhr_very-secret"),
    ];
    for path in ["/api/oauth/token", "/api/oauth/revoke", "/api/oauth/introspect"] {
        for (kind, body) in bodies {
            let request = rig.http.post(rig.at(path)).header(header::CONTENT_TYPE, *kind).body(*body);
            let (status, answer) = answer(request).await;
            assert!(status == StatusCode::BAD_REQUEST, "{path} {kind} {body}: {status} {answer}");
            assert!(answer["error"].is_string() && answer["error_description"].is_string(), "{answer}");
            assert!(!answer.to_string().contains(secret), "{answer}");
        }
    }
    let huge = format!("token={}", "x".repeat(100_000));
    let request =
        rig.http.post(rig.at("/api/oauth/revoke")).header(header::CONTENT_TYPE, bodies[0].0).body(huge);
    assert_eq!(answer(request).await.1["error"], "invalid_request", "too long");
    let (status, body) = token(&rig, &[("grant_type", "password")]).await;
    assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!("unsupported_grant_type")));
    let short = "v".repeat(42);
    assert_eq!(token(&rig, &exchange("c", &short)).await.1["error"], "invalid_request");
}

#[tokio::test]
async fn bodies_may_be_json_and_introspection_tells_the_truth() {
    let rig = Rig::start().await;
    let ask = |token: String| {
        let body = json!({ "token": token, "client_id": DEFAULT_CLIENT_ID });
        answer(rig.http.post(rig.at("/api/oauth/introspect")).json(&body))
    };
    let (_, active) = ask(rig.access.clone()).await;
    assert_eq!(
        (&active["active"], &active["username"], &active["scope"]),
        (&json!(true), &json!("ann"), &json!("USE_TOOLS"))
    );
    assert_eq!(ask("nonsense".to_owned()).await.1, json!({ "active": false }));
    let revoke = rig.http.post(rig.at("/api/oauth/revoke")).json(&json!({ "token": rig.access }));
    assert_eq!(answer(revoke).await, (StatusCode::OK, json!({})));
    assert_eq!(ask(rig.access.clone()).await.1, json!({ "active": false }));
    let body = json!({ "grant_type": "refresh_token", "client_id": DEFAULT_CLIENT_ID, "refresh_token": rig.refresh });
    let (status, fresh) = answer(rig.http.post(rig.at("/api/oauth/token")).json(&body)).await;
    assert_eq!(status, StatusCode::OK, "one access token's revocation leaves its family");
    let refresh = fresh["refresh_token"].as_str().unwrap().to_owned();
    let revoke = rig.http.post(rig.at("/api/oauth/revoke")).form(&[("token", &refresh)]);
    assert_eq!(answer(revoke).await.0, StatusCode::OK);
    assert_eq!(ask(fresh["access_token"].as_str().unwrap().to_owned()).await.1, json!({ "active": false }));
    let unknown = rig.http.post(rig.at("/api/oauth/revoke")).form(&[("token", "unknown")]);
    assert_eq!(answer(unknown).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_refresh_token_is_no_access_token() {
    let rig = Rig::start().await;
    let request = rig.http.get(rig.at("/api/copilot/executors")).bearer_auth(&rig.refresh);
    assert_eq!(answer(request).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(rig.dial_with(&rig.refresh, "/ws/local-executor").await.err(), Some(StatusCode::UNAUTHORIZED));
}

#[tokio::test]
async fn guessing_a_password_is_slowed_down() {
    let rig = Rig::start().await;
    let browser = Browser::new(&rig);
    let csrf = browser.csrf("/auth/sign-in").await;
    for _ in 0..10 {
        let fields = [("csrf", &*csrf), ("name", "ann"), ("password", "guess")];
        assert_eq!(browser.submit("/auth/sign-in", &fields).await.0, StatusCode::UNAUTHORIZED);
    }
    let right = [("csrf", &*csrf), ("name", "ann"), ("password", "correct horse")];
    assert_eq!(
        browser.submit("/auth/sign-in", &right).await.0,
        StatusCode::UNAUTHORIZED,
        "also the right one"
    );
}

#[tokio::test]
async fn nothing_of_a_token_is_stored_but_its_hash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("platform.db");
    let rig = Rig::with(|o| o.database = platform::Database::File(path.clone())).await;
    let (access, refresh) = (rig.access.clone(), rig.refresh.clone());
    rig.platform.stop().await;
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["platform.db"],
        "a platform that has stopped has closed its database"
    );
    let stored = std::fs::read(&path).unwrap();
    assert!(!stored.is_empty());
    for secret in [access.as_str(), refresh.as_str(), "correct horse"] {
        assert!(!stored.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}
