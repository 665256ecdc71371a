//! The token, revocation and introspection endpoints.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::body::Params;
use super::{OAuthError, SCOPE, no_store, pkce};
use crate::app::App;
use crate::relay::Whose;
use crate::secret;
use crate::store::oauth::{self as stored, Exchange, Revoked, TokenKind};

/// `POST /api/oauth/token`: `grant_type` `authorization_code` (`code, redirect_uri, client_id, code_verifier`) or
/// `refresh_token` (`refresh_token, client_id`) → `{access_token, token_type, expires_in, refresh_token, scope}`.
pub(crate) async fn token(State(app): State<App>, params: Params) -> Result<Response, OAuthError> {
    let exchange = match params.required("grant_type")? {
        "authorization_code" => redeem(&app, &params).await?,
        "refresh_token" => rotate(&app, &params).await?,
        _ => {
            let known = "use authorization_code or refresh_token";
            return Err(OAuthError::new("unsupported_grant_type", known));
        }
    };
    let invalid = |why| Err(OAuthError::new("invalid_grant", why));
    match exchange {
        Exchange::Minted(minted) => {
            let body = json!({
                "access_token": minted.access.expose(),
                "token_type": "Bearer",
                "expires_in": app.options.timings.access_token_ttl.as_secs(),
                "refresh_token": minted.refresh.expose(),
                "scope": minted.scope,
            });
            Ok(no_store(Json(body).into_response()))
        }
        Exchange::Invalid => invalid("it is unknown, expired, revoked, or was issued for something else"),
        Exchange::Reused(family) => {
            app.revoke_connections(&Whose::Family(family));
            invalid("it was used before; everything that came from the same approval is revoked now")
        }
    }
}

fn client<'a>(app: &App, params: &'a Params) -> Result<&'a str, OAuthError> {
    let id = params.required("client_id")?;
    match app.client(id) {
        Some(_) => Ok(id),
        None => Err(OAuthError::new("invalid_client", "this client is not registered here")),
    }
}

async fn redeem(app: &App, params: &Params) -> Result<Exchange, OAuthError> {
    let client_id = client(app, params)?.to_owned();
    let code = secret::hash(params.required("code")?);
    let redirect_uri = params.required("redirect_uri")?.to_owned();
    let verifier = params.required("code_verifier")?;
    if !pkce::is_verifier(verifier) {
        let form = "'code_verifier' must have 43 to 128 characters of A-Z a-z 0-9 - . _ ~";
        return Err(OAuthError::invalid_request(form));
    }
    let challenge = pkce::challenge(verifier);
    let timings = app.options.timings;
    let work = move |db: &rusqlite::Transaction<'_>| {
        stored::redeem(db, &code, &client_id, &redirect_uri, &challenge, &timings)
    };
    Ok(app.store.run(work).await?)
}

async fn rotate(app: &App, params: &Params) -> Result<Exchange, OAuthError> {
    let client_id = client(app, params)?.to_owned();
    let refresh = secret::hash(params.required("refresh_token")?);
    if params.optional("scope").is_some_and(|scope| scope != SCOPE) {
        return Err(OAuthError::new("invalid_scope", format!("the one scope is {SCOPE}")));
    }
    let timings = app.options.timings;
    Ok(app.store.run(move |db| stored::rotate(db, &refresh, &client_id, &timings)).await?)
}

/// `POST /api/oauth/revoke` (RFC 7009): `token`, and optionally `client_id`. 200 also when there was nothing to revoke.
pub(crate) async fn revoke(State(app): State<App>, params: Params) -> Result<Response, OAuthError> {
    let token = secret::hash(params.required("token")?);
    let client_id = params.optional("client_id").map(str::to_owned);
    match app.store.run(move |db| stored::revoke(db, &token, client_id.as_deref())).await? {
        Revoked::Family(family) => app.revoke_connections(&Whose::Family(family)),
        Revoked::Access(token) => app.revoke_connections(&Whose::Token(token)),
        Revoked::Nothing => {}
    }
    Ok(no_store(Json(json!({})).into_response()))
}

/// `POST /api/oauth/introspect` (RFC 7662): `token`, and `client_id` of the client it was issued to. Having the token is
/// what entitles to ask.
pub(crate) async fn introspect(State(app): State<App>, params: Params) -> Result<Response, OAuthError> {
    let token = secret::hash(params.required("token")?);
    let client_id = client(&app, &params)?;
    let found = app.store.run(move |db| stored::active(db, &token)).await?;
    let answer: Value = match found.filter(|token| token.client_id == client_id) {
        None => json!({ "active": false }),
        Some(token) => json!({
            "active": true,
            "client_id": token.client_id,
            "username": token.user_name,
            "sub": token.user.0,
            "scope": token.scope,
            "token_type": match token.kind { TokenKind::Access => "access_token", TokenKind::Refresh => "refresh_token" },
            "iat": token.issued_at / 1000,
            "exp": token.expires_at / 1000,
        }),
    };
    Ok(no_store(Json(answer).into_response()))
}
