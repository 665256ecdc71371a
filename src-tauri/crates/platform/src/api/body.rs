//! Bodies and URLs, with errors in the API's form.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::{header, request::Parts};
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::error::ApiError;

/// A JSON body; an empty one counts as `{}`.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let kind =
            request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let is_json =
            kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json");
        let bytes = Bytes::from_request(request, app)
            .await
            .map_err(|e| ApiError::new(e.status(), "invalid_request", e.body_text()))?;
        if bytes.is_empty() {
            return parse(b"{}");
        }
        if !is_json {
            return Err(ApiError::new(
                axum::http::StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "invalid_request",
                "send application/json",
            ));
        }
        parse(&bytes)
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<JsonBody<T>, ApiError> {
    serde_json::from_slice(bytes)
        .map(JsonBody)
        .map_err(|error| ApiError::bad_request(format!("the body does not fit: {error}")))
}

/// The variable parts of the path.
pub(crate) struct UrlPath<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for UrlPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let path = Path::from_request_parts(parts, app).await;
        path.map(|Path(value)| Self(value)).map_err(|error| ApiError::bad_request(error.body_text()))
    }
}

/// The query.
pub(crate) struct UrlQuery<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for UrlQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let query = Query::from_request_parts(parts, app).await;
        query.map(|Query(value)| Self(value)).map_err(|error| ApiError::bad_request(error.body_text()))
    }
}
