//! The authorization endpoint: a page with Approve and Deny.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rusqlite::Transaction;

use super::body::Params;
use super::{OAuthError, SCOPE, pkce, redirect};
use crate::app::App;
use crate::options::Client;
use crate::pages::{self, Form};
use crate::secret::Secret;
use crate::store::oauth::{NewCode, add_code};
use crate::store::users::SignIn;
use crate::store::{after_ms, now_ms};

/// Longest `state` that is carried; it travels in a URL.
const MAX_STATE_BYTES: usize = 2048;

/// A request for approval that may be shown.
pub(crate) struct Asked {
    pub(crate) client: Client,
    pub(crate) redirect_uri: String,
    pub(crate) state: Option<String>,
    pub(crate) challenge: String,
}

/// Why it may not.
enum Refused {
    /// Shown here: the client or its redirect cannot be trusted.
    Here(OAuthError),
    /// Told to the client.
    There { redirect_uri: String, state: Option<String>, error: &'static str, description: &'static str },
}

impl From<OAuthError> for Refused {
    fn from(error: OAuthError) -> Self {
        Refused::Here(error)
    }
}

fn check(app: &App, params: &Params) -> Result<Asked, Refused> {
    let client = app
        .client(params.required("client_id")?)
        .ok_or_else(|| OAuthError::new("invalid_client", "this client is not registered here"))?;
    let redirect_uri = params.required("redirect_uri")?;
    if !client.redirect_uris.iter().any(|known| known == redirect_uri) {
        let why = "'redirect_uri' is none of those that the client registered";
        return Err(OAuthError::invalid_request(why).into());
    }
    let state = params.optional("state").map(str::to_owned);
    if state.as_ref().is_some_and(|state| state.len() > MAX_STATE_BYTES) {
        return Err(OAuthError::invalid_request("'state' is too long").into());
    }
    let refuse = |error, description| {
        let redirect_uri = redirect_uri.to_owned();
        Err(Refused::There { redirect_uri, state: state.clone(), error, description })
    };
    if params.optional("response_type") != Some("code") {
        return refuse("unsupported_response_type", "response_type must be code");
    }
    if params.optional("code_challenge_method") != Some("S256") {
        return refuse("invalid_request", "PKCE is required: code_challenge_method must be S256");
    }
    let Some(challenge) = params.optional("code_challenge").filter(|c| pkce::is_challenge(c)) else {
        return refuse("invalid_request", "code_challenge must be a SHA-256 in base64url");
    };
    if params.optional("scope").is_some_and(|scope| scope != SCOPE) {
        return refuse("invalid_scope", "the one scope is USE_TOOLS");
    }
    Ok(Asked {
        client: client.clone(),
        redirect_uri: redirect_uri.to_owned(),
        challenge: challenge.to_owned(),
        state,
    })
}

fn refused(headers: &HeaderMap, refused: Refused) -> Response {
    match refused {
        Refused::Here(error) => {
            let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
            if accept.contains("text/html") {
                return (error.status, pages::problem("This sign-in cannot go on", &error.description))
                    .into_response();
            }
            error.into_response()
        }
        Refused::There { redirect_uri, state, error, description } => {
            let mut params = vec![("error", error), ("error_description", description)];
            params.extend(state.as_deref().map(|state| ("state", state)));
            leave(&redirect_uri, &params)
        }
    }
}

fn leave(redirect_uri: &str, params: &[(&str, &str)]) -> Response {
    match redirect::with_params(redirect_uri, params) {
        Ok(url) => {
            (StatusCode::SEE_OTHER, [(header::LOCATION, url), (header::CACHE_CONTROL, "no-store".to_owned())])
                .into_response()
        }
        Err(error) => crate::error::ApiError::internal(&error).into_response(),
    }
}

fn from_query(app: &App, query: Option<&str>) -> Result<Asked, Refused> {
    let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned();
    check(app, &Params::once(pairs)?)
}

/// `GET /auth/authorize`: the sign-in form, or Approve and Deny. Both post with the same query.
pub(crate) async fn show(
    State(app): State<App>,
    browser: Option<SignIn>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let asked = match from_query(&app, query.as_deref()) {
        Ok(asked) => asked,
        Err(error) => return refused(&headers, error),
    };
    let here = format!("/auth/authorize?{}", query.unwrap_or_default());
    match browser {
        None => pages::sign_in::page(&app, &headers, &here, None),
        Some(browser) => {
            let source = redirect::csp_source(&asked.redirect_uri);
            pages::allowing_form_to(source, pages::approve(&browser, &asked, &here))
        }
    }
}

/// `POST /auth/authorize?…` with `csrf` and `decision` `approve` or `deny`.
pub(crate) async fn decide(
    State(app): State<App>,
    browser: Option<SignIn>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    form: Form,
) -> Response {
    let asked = match from_query(&app, query.as_deref()) {
        Ok(asked) => asked,
        Err(error) => return refused(&headers, error),
    };
    let Some(browser) = browser.filter(|browser| form.has_csrf(&browser.csrf)) else {
        return pages::stale_form();
    };
    let state = asked.state.as_deref().map(|state| ("state", state));
    match form.get("decision") {
        Some("approve") => match issue_code(&app, &browser, &asked).await {
            Ok(code) => {
                let mut params = vec![("code", code.expose())];
                params.extend(state);
                leave(&asked.redirect_uri, &params)
            }
            Err(error) => error.into_response(),
        },
        Some(_) | None => {
            let mut params = vec![("error", "access_denied")];
            params.extend(state);
            leave(&asked.redirect_uri, &params)
        }
    }
}

async fn issue_code(app: &App, browser: &SignIn, asked: &Asked) -> Result<Secret, OAuthError> {
    let code = Secret::random("dhc_").map_err(crate::store::StoreError::from)?;
    let new = NewCode {
        code: code.hash(),
        user: browser.user.clone(),
        client_id: asked.client.id.clone(),
        redirect_uri: asked.redirect_uri.clone(),
        scope: SCOPE.to_owned(),
        challenge: asked.challenge.clone(),
        expires_at: after_ms(now_ms(), app.options.timings.code_ttl),
    };
    app.store.run(move |db: &Transaction<'_>| add_code(db, &new)).await?;
    Ok(code)
}
