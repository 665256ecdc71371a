//! Who is asking: a bearer access token, or the cookie of a signed-in browser.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::{HeaderMap, Method, header, request::Parts};
use axum::response::{IntoResponse as _, Redirect, Response};

use crate::app::App;
use crate::error::ApiError;
use crate::oauth::SCOPE;
use crate::secret;
use crate::store::oauth::{self, Active, TokenKind};
use crate::store::users::{self, SignIn, UserId};

/// The cookie of a signed-in browser.
pub(crate) const SIGN_IN_COOKIE: &str = "deskhand_sign_in";

/// Who is asking, by token or cookie. A cookie that changes something needs its CSRF token in `X-CSRF-Token`.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) user: UserId,
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        if parts.headers.contains_key(header::AUTHORIZATION) {
            let token = bearer(&parts.headers).ok_or_else(ApiError::unauthorized)?;
            let access = access_token(app, token).await?;
            return Ok(Self { user: access.user });
        }
        let browser = signed_in(app, &parts.headers).await?.ok_or_else(ApiError::unauthorized)?;
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        let csrf = parts.headers.get("x-csrf-token").and_then(|value| value.to_str().ok());
        if !reads && !csrf.is_some_and(|csrf| secret::same(csrf, &browser.csrf)) {
            return Err(ApiError::new(
                axum::http::StatusCode::FORBIDDEN,
                "csrf",
                "a browser must send its X-CSRF-Token; programs use a bearer token",
            ));
        }
        Ok(Self { user: browser.user })
    }
}

/// A signed-in browser; forms check its CSRF token themselves.
impl OptionalFromRequestParts<App> for SignIn {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Option<Self>, ApiError> {
        signed_in(app, &parts.headers).await
    }
}

/// A signed-in browser that asks for a page; any other is sent to sign in, and back.
pub(crate) struct Visitor(pub(crate) SignIn);

impl FromRequestParts<App> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        match signed_in(app, &parts.headers).await {
            Ok(Some(browser)) => Ok(Self(browser)),
            Ok(None) => {
                let reads = matches!(parts.method, Method::GET | Method::HEAD);
                let back =
                    parts.uri.path_and_query().filter(|_| reads).map_or("/machines", |path| path.as_str());
                let next =
                    url::form_urlencoded::Serializer::new(String::new()).append_pair("next", back).finish();
                Err(Redirect::to(&format!("/auth/sign-in?{next}")).into_response())
            }
            Err(error) => Err(error.into_response()),
        }
    }
}

/// The access token of the header, in its one allowed form.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// An access token that is good now and may use tools.
pub(crate) async fn access_token(app: &App, token: &str) -> Result<Active, ApiError> {
    let hash = secret::hash(token);
    let found = app.store.run(move |db| oauth::active(db, &hash)).await?;
    let access = found.filter(|t| t.kind == TokenKind::Access).ok_or_else(ApiError::unauthorized)?;
    if !access.scope.split(' ').any(|scope| scope == SCOPE) {
        return Err(ApiError::new(
            axum::http::StatusCode::FORBIDDEN,
            "insufficient_scope",
            format!("the token needs the scope {SCOPE}"),
        ));
    }
    Ok(access)
}

async fn signed_in(app: &App, headers: &HeaderMap) -> Result<Option<SignIn>, ApiError> {
    let Some(cookie) = cookie(headers, SIGN_IN_COOKIE) else { return Ok(None) };
    let hash = secret::hash(cookie);
    Ok(app.store.run(move |db| users::signed_in(db, &hash)).await?)
}

/// A cookie's value.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}
