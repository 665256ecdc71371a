//! The HTTP API: machines, sessions, tools.
//!
//! | route | body → answer |
//! |---|---|
//! | `GET /api/copilot/executors` | → `{executors: [Machine]}` |
//! | `POST /api/copilot/executors/{machine_id}/directories` | `{expected_connection_id, browse_id?, directory_ref?, cursor?}` → a page of folders |
//! | `POST /api/chat/sessions` | `{execution_target}` → 201, `Session` |
//! | `GET /api/chat/sessions` | → `{sessions: [Session]}`, newest first |
//! | `GET /api/chat/sessions/{id}?limit=&before=` | → `Session` with `messages` and `next_before` |
//! | `DELETE /api/chat/sessions/{id}` | → 204 |
//! | `GET /api/copilot/sessions/{id}/executor` | → `{kind: "shim", …}` or `{kind: "none", reason}` |
//! | `POST /api/copilot/sessions/{id}/executor/consent` | `{approved, expected_machine_id, expected_features_coarse, expected_features}` → `{approved}` |
//! | `GET /api/copilot/sessions/{id}/tools` | → `{tools: [{name, description, input_schema}]}`, those that may be called now |
//! | `POST /api/copilot/sessions/{id}/tools/{name}` | the tool's arguments → `{tool, ok: true, result}` or `{tool, ok: false, error: {code, message, details?}}` |
//!
//! Errors are `{error, message, details?}`. A tool that ran and failed is no error of the route: it answers 200 with
//! `ok: false`, because its text is for the agent.

mod body;
mod executors;
mod presence;
mod sessions;
mod tools;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use protocol::ErrorCode;

use crate::app::App;
use crate::error::ApiError;
use crate::relay::CallError;

pub(crate) use executors::{Browse, list_folders, machine};
pub(crate) use presence::{Decision, decide, is_approved, presence};

pub(crate) fn routes(app: &App) -> Router<App> {
    Router::new()
        .route("/api/copilot/executors", get(executors::list))
        .route("/api/copilot/executors/{machine_id}/directories", post(executors::directories))
        .route("/api/chat/sessions", get(sessions::list).post(sessions::create))
        .route("/api/chat/sessions/{id}", get(sessions::show).delete(sessions::delete))
        .route("/api/copilot/sessions/{id}/executor", get(presence::show))
        .route("/api/copilot/sessions/{id}/executor/consent", post(presence::consent))
        .route("/api/copilot/sessions/{id}/tools", get(tools::list))
        .route("/api/copilot/sessions/{id}/tools/{name}", post(tools::call))
        .layer(middleware::from_fn_with_state(app.clone(), feature_switch))
}

/// Everything local is off together; what is in the cloud does not exist here either.
async fn feature_switch(State(app): State<App>, request: Request, next: Next) -> Response {
    if app.options.features.local_executor {
        next.run(request).await
    } else {
        ApiError::feature_off().into_response()
    }
}

impl From<CallError> for ApiError {
    /// Stale or refused by the machine's state: 409. Its fault: 502. Too slow: 504. Busy: 503.
    fn from(error: CallError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        let status = match &error {
            CallError::Offline => StatusCode::CONFLICT,
            CallError::NotSent | CallError::Misbehaved(_) => StatusCode::BAD_GATEWAY,
            CallError::Unconfirmed { .. } | CallError::NoAnswer => StatusCode::GATEWAY_TIMEOUT,
            CallError::Busy => StatusCode::SERVICE_UNAVAILABLE,
            CallError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            CallError::NotGranted(_) => StatusCode::FORBIDDEN,
            CallError::Refused(error) => refusal(error.code),
        };
        let details = match error {
            CallError::Refused(error) => error.details,
            CallError::Offline
            | CallError::NotSent
            | CallError::Misbehaved(_)
            | CallError::Unconfirmed { .. }
            | CallError::NoAnswer
            | CallError::Busy
            | CallError::TooLarge
            | CallError::NotGranted(_) => None,
        };
        Self { status, code: code.to_owned(), message, details }
    }
}

/// The codes that folder and session requests end with; any other one has no place in an answer to those.
fn refusal(code: ErrorCode) -> StatusCode {
    if code == ErrorCode::ShimOverloaded {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    let of_state = [
        ErrorCode::DirectoryReferenceInvalid,
        ErrorCode::DirectoryUnavailable,
        ErrorCode::SessionAlreadyActive,
        ErrorCode::SessionNotAttached,
        ErrorCode::SessionRevisionMismatch,
        ErrorCode::RootGrantInvalid,
    ];
    if of_state.contains(&code) { StatusCode::CONFLICT } else { StatusCode::BAD_GATEWAY }
}
