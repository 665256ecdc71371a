//! Tools of a session.

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};

use super::body::{JsonBody, UrlPath};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::sessions::owned;
use crate::tools::{self, Tool};

/// `GET /api/copilot/sessions/{id}/tools`.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    UrlPath(id): UrlPath<String>,
) -> Result<Json<Value>, ApiError> {
    let session = owned(&app, &id, &caller.user).await?;
    let tools: Vec<_> = tools::offered(&app, &session).into_iter().map(Tool::describe).collect();
    Ok(Json(json!({ "tools": tools })))
}

/// `POST /api/copilot/sessions/{id}/tools/{name}`.
pub(crate) async fn call(
    State(app): State<App>,
    caller: Caller,
    UrlPath((id, name)): UrlPath<(String, String)>,
    JsonBody(arguments): JsonBody<Map<String, Value>>,
) -> Result<Json<Value>, ApiError> {
    let session = owned(&app, &id, &caller.user).await?;
    let tool = tools::named(&name).ok_or_else(|| ApiError::not_found("tool"))?;
    Ok(Json(match tools::run(&app, &session, tool, arguments).await {
        Ok(result) => json!({ "tool": name, "ok": true, "result": result }),
        Err(error) => json!({ "tool": name, "ok": false, "error": error }),
    }))
}
