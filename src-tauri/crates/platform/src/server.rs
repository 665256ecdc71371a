//! All routes together, and what holds for every one of them.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, header};
use tokio::net::TcpListener;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::app::App;
use crate::error::ApiError;
use crate::{api, mcp, oauth, pages, relay};

/// A body of a tool call: a file of the wire's size as base64, and its escapes. What OAuth and forms take is smaller.
const MAX_BODY: usize = 24 * 1024 * 1024;
const MAX_SMALL_BODY: usize = 64 * 1024;

fn router(app: App) -> Router {
    let small = Router::new().merge(oauth::routes()).merge(pages::routes());
    let routes = Router::new()
        .merge(api::routes(&app).layer(DefaultBodyLimit::max(MAX_BODY)))
        .merge(small.layer(DefaultBodyLimit::max(MAX_SMALL_BODY)))
        .merge(mcp::routes(&app, MAX_BODY))
        .merge(relay::routes());
    let fixed = |name: HeaderName, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
    };
    routes
        .fallback(async || ApiError::not_found("route"))
        .layer(fixed(header::CONTENT_SECURITY_POLICY, pages::POLICY))
        .layer(fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(fixed(header::REFERRER_POLICY, "no-referrer"))
        .layer(fixed(header::CACHE_CONTROL, "no-store"))
        .with_state(app)
}

/// Serves until the platform stops.
pub(crate) async fn serve(app: App, listener: TcpListener) {
    let stopping = app.stopping.clone();
    let served = axum::serve(listener, router(app)).with_graceful_shutdown(stopping.cancelled_owned()).await;
    if let Err(error) = served {
        tracing::error!(%error, "the server ended");
    }
}
