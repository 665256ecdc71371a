//! OAuth 2.1 for public clients: authorization code with PKCE S256, rotating refresh tokens.

mod authorize;
mod body;
mod pkce;
mod redirect;
mod token;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, extract::State};
use serde_json::{Value, json};

use crate::app::App;
use crate::store::StoreError;

pub(crate) use authorize::Asked;

/// The one scope.
pub(crate) const SCOPE: &str = "USE_TOOLS";

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/auth/authorize", get(authorize::show).post(authorize::decide))
        .route("/api/oauth/token", post(token::token))
        .route("/api/oauth/revoke", post(token::revoke))
        .route("/api/oauth/introspect", post(token::introspect))
        .route("/.well-known/oauth-authorization-server", get(metadata))
        .route("/.well-known/oauth-protected-resource", get(resource))
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
}

/// Authorization server metadata (RFC 8414), so that MCP clients find their way.
async fn metadata(State(app): State<App>) -> Json<Value> {
    let at = |path: &str| endpoint(&app, path);
    Json(json!({
        "issuer": issuer(&app),
        "authorization_endpoint": at("/auth/authorize"),
        "token_endpoint": at("/api/oauth/token"),
        "revocation_endpoint": at("/api/oauth/revoke"),
        "introspection_endpoint": at("/api/oauth/introspect"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "scopes_supported": [SCOPE],
    }))
}

/// Protected resource metadata (RFC 9728).
async fn resource(State(app): State<App>) -> Json<Value> {
    Json(json!({
        "resource": endpoint(&app, "/mcp"),
        "authorization_servers": [issuer(&app)],
        "bearer_methods_supported": ["header"],
        "scopes_supported": [SCOPE],
    }))
}

fn issuer(app: &App) -> String {
    app.url.as_str().trim_end_matches('/').to_owned()
}

/// An absolute URL of this platform.
pub(crate) fn endpoint(app: &App, path: &str) -> String {
    format!("{}{path}", issuer(app))
}

/// An error as RFC 6749, 5.2, words it. Never holds anything that the caller sent.
#[derive(Debug)]
pub(crate) struct OAuthError {
    status: StatusCode,
    error: &'static str,
    description: String,
}

impl OAuthError {
    fn new(error: &'static str, description: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, error, description: description.into() }
    }

    fn invalid_request(description: impl Into<String>) -> Self {
        Self::new("invalid_request", description)
    }
}

impl From<StoreError> for OAuthError {
    fn from(error: StoreError) -> Self {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "an OAuth request failed inside the platform"
        );
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            error: "server_error",
            description: "the platform failed; its log says why".to_owned(),
        }
    }
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.error, "error_description": self.description });
        no_store((self.status, Json(body)).into_response())
    }
}

fn no_store(mut response: Response) -> Response {
    let value = header::HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, value);
    response
}
