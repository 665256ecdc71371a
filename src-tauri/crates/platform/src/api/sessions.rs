//! Chat sessions.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{JsonBody, UrlPath, UrlQuery};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::sessions::{LocalTarget, create_cloud, create_local, owned};
use crate::store::sessions::{self as stored, Message, Session, Target};

/// Sessions on a list, and messages on a page, at most.
const PAGE: u32 = 100;

/// Body of `POST /api/chat/sessions`.
#[derive(Debug, Deserialize)]
pub(crate) struct NewSession {
    execution_target: NewTarget,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum NewTarget {
    Cloud,
    Local(LocalTarget),
}

/// A session without its grant.
pub(crate) fn session(session: &Session) -> Value {
    let target = match &session.target {
        Target::Cloud => json!({ "kind": "cloud" }),
        Target::Local(binding) => json!({
            "kind": "local",
            "machine_id": binding.machine_id,
            "allowed_root": binding.allowed_root,
            "fingerprint": binding.fingerprint,
            "revision": binding.revision,
        }),
    };
    json!({ "id": session.id, "execution_target": target, "created_at": seconds(session.created_at) })
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

/// `POST /api/chat/sessions`.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    JsonBody(new): JsonBody<NewSession>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let made = match new.execution_target {
        NewTarget::Cloud => create_cloud(&app, &caller.user).await?,
        NewTarget::Local(target) => create_local(&app, &caller.user, target).await?,
    };
    Ok((StatusCode::CREATED, Json(session(&made))))
}

/// `GET /api/chat/sessions`.
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Value>, ApiError> {
    let found = app.store.run(move |db| stored::of_user(db, &caller.user, PAGE)).await?;
    let sessions: Vec<_> = found.iter().map(session).collect();
    Ok(Json(json!({ "sessions": sessions })))
}

/// Which messages: the newest, or those before one.
#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    limit: Option<u32>,
    before: Option<i64>,
}

fn message(message: &Message) -> Value {
    json!({
        "seq": message.seq,
        "role": "tool",
        "tool": message.tool,
        "ok": message.error.is_none(),
        "error": message.error,
        "created_at": seconds(message.created_at),
    })
}

/// `GET /api/chat/sessions/{id}`.
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    UrlPath(id): UrlPath<String>,
    UrlQuery(page): UrlQuery<Page>,
) -> Result<Json<Value>, ApiError> {
    let found = owned(&app, &id, &caller.user).await?;
    let (key, limit) = (found.id.clone(), page.limit.unwrap_or(PAGE).clamp(1, PAGE));
    let messages = app.store.run(move |db| stored::messages(db, &key, page.before, limit)).await?;
    let mut answer = session(&found);
    answer["messages"] = messages.iter().map(message).collect();
    answer["next_before"] = json!(messages.first().map(|m| m.seq).filter(|seq| *seq > 1));
    Ok(Json(answer))
}

/// `DELETE /api/chat/sessions/{id}`.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    UrlPath(id): UrlPath<String>,
) -> Result<StatusCode, ApiError> {
    crate::sessions::delete(&app, &id, &caller.user).await?;
    Ok(StatusCode::NO_CONTENT)
}
