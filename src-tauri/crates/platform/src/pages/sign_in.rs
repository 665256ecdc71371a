//! Signing in and out.

use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use maud::html;
use serde::Deserialize;

use super::{Form, layout, stale_form};
use crate::app::App;
use crate::auth::{SIGN_IN_COOKIE, cookie};
use crate::error::ApiError;
use crate::password;
use crate::secret::{self, Secret};
use crate::store::users::{self, SignIn};
use crate::store::{StoreError, after_ms, now_ms};

/// Binds the sign-in form to the browser that asked for it, before there is anybody to bind it to.
const FORM_COOKIE: &str = "deskhand_form";

/// Where to go afterwards.
#[derive(Deserialize)]
pub(crate) struct Next {
    next: Option<String>,
}

/// A path of this platform; anything else is replaced, so that signing in leads nowhere foreign.
fn local(next: Option<&str>) -> &str {
    let is_local =
        |next: &&str| next.starts_with('/') && !next.starts_with("//") && !next.contains(['\\', '\n', '\r']);
    next.filter(is_local).unwrap_or("/machines")
}

/// `GET /auth/sign-in?next=`.
pub(crate) async fn show(State(app): State<App>, headers: HeaderMap, Query(query): Query<Next>) -> Response {
    page(&app, &headers, local(query.next.as_deref()), None)
}

/// The form. It carries a token that is in a cookie as well, so that nobody can sign another's browser in.
pub(crate) fn page(app: &App, headers: &HeaderMap, next: &str, problem: Option<&str>) -> Response {
    let known = cookie(headers, FORM_COOKIE).filter(|token| token.len() >= 43).map(str::to_owned);
    let token = match known.map(Ok).unwrap_or_else(|| Secret::random("").map(Secret::into_exposed)) {
        Ok(token) => token,
        Err(error) => return ApiError::internal(&error).into_response(),
    };
    let content = html! {
        @if let Some(problem) = problem { p role="alert" { (problem) } }
        form method="post" action="/auth/sign-in" {
            input type="hidden" name="csrf" value=(token);
            input type="hidden" name="next" value=(next);
            label for="name" { "Name" }
            input #name name="name" autocomplete="username" required autofocus;
            label for="password" { "Password" }
            input #password name="password" type="password" autocomplete="current-password" required;
            button.primary type="submit" { "Sign in" }
        }
    };
    let status = if problem.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    let mut response = (status, layout("Sign in", None, content)).into_response();
    set_cookie(app, &mut response, FORM_COOKIE, &token, 3600);
    response
}

fn set_cookie(app: &App, response: &mut Response, name: &str, value: &str, seconds: u64) {
    let secure = if app.url.scheme() == "https" { "; Secure" } else { "" };
    let line = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    if let Ok(line) = HeaderValue::from_str(&line) {
        response.headers_mut().append(header::SET_COOKIE, line);
    }
}

/// `POST /auth/sign-in` with `csrf, name, password, next`.
pub(crate) async fn submit(State(app): State<App>, headers: HeaderMap, form: Form) -> Response {
    let bound = cookie(&headers, FORM_COOKIE).is_some_and(|token| form.has_csrf(token));
    if !bound {
        return stale_form();
    }
    let next = local(form.get("next"));
    let (name, password) = (form.get("name").unwrap_or_default(), form.get("password").unwrap_or_default());
    if !app.attempts.admit(name) {
        return page(&app, &headers, next, Some("Too many attempts. Wait five minutes and try again."));
    }
    match sign_in(&app, name, password).await {
        Ok(Some(cookie)) => {
            app.attempts.succeeded(name);
            let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, next)]).into_response();
            let ttl = app.options.timings.sign_in_ttl.as_secs();
            set_cookie(&app, &mut response, SIGN_IN_COOKIE, cookie.expose(), ttl);
            response
        }
        Ok(None) => page(&app, &headers, next, Some("Name or password is wrong.")),
        Err(error) => error.into_response(),
    }
}

async fn sign_in(app: &App, name: &str, password: &str) -> Result<Option<Secret>, ApiError> {
    let key = name.to_owned();
    let user = app.store.run(move |db| users::by_name(db, &key)).await?;
    let (id, stored) = user.map(|user| (user.id, user.password)).unzip();
    let _turn = app.hashing.acquire().await.map_err(|error| ApiError::internal(&error))?;
    let password = password.to_owned();
    let right = tokio::task::spawn_blocking(move || password::verify(&password, stored.as_ref()))
        .await
        .map_err(|error| ApiError::internal(&error))?
        .map_err(|error| ApiError::internal(&error))?;
    let Some(user) = id.filter(|_| right) else { return Ok(None) };
    let random = || Secret::random("").map_err(StoreError::from);
    let (cookie, csrf) = (random()?, random()?.into_exposed());
    let (hash, until) = (cookie.hash(), after_ms(now_ms(), app.options.timings.sign_in_ttl));
    app.store.run(move |db| users::sign_in(db, &hash, &user, &csrf, until)).await?;
    Ok(Some(cookie))
}

/// `POST /auth/sign-out` with `csrf`.
pub(crate) async fn sign_out(
    State(app): State<App>,
    headers: HeaderMap,
    browser: Option<SignIn>,
    form: Form,
) -> Response {
    let Some(_browser) = browser.filter(|browser| form.has_csrf(&browser.csrf)) else { return stale_form() };
    if let Some(cookie) = cookie(&headers, SIGN_IN_COOKIE) {
        let hash = secret::hash(cookie);
        if let Err(error) = app.store.run(move |db| users::sign_out(db, &hash)).await {
            return ApiError::from(error).into_response();
        }
    }
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, "/auth/sign-in")]).into_response();
    set_cookie(&app, &mut response, SIGN_IN_COOKIE, "", 0);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_nowhere_foreign() {
        assert_eq!(local(Some("/auth/authorize?x=1")), "/auth/authorize?x=1");
        for bad in [None, Some("//evil.example"), Some("https://evil.example"), Some("/\\evil"), Some("x")] {
            assert_eq!(local(bad), "/machines");
        }
    }
}
