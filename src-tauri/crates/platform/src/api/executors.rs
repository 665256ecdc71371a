//! A user's machines and their folders.

use axum::Json;
use axum::extract::State;
use protocol::{DirectoryListRequest, DirectoryListResponse, MachineId, MessageType};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{JsonBody, UrlPath};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::relay::{CallError, Facts, Line, call};
use crate::sessions::{control_patience, current};
use crate::store::users::UserId;

/// A machine as programs and pages see it.
pub(crate) fn machine(facts: &Facts) -> Value {
    let hello = &facts.hello;
    json!({
        "machine_id": hello.machine_id,
        "connection_id": facts.connection_id,
        "display_name": hello.display_name,
        "platform": hello.platform,
        "arch": hello.arch,
        "shim_version": hello.shim_version,
        "protocol_version": hello.protocol_version,
        "screen_resolution": hello.screen_resolution,
        "capabilities": facts.granted,
        "computer_use_features": hello.computer_use_features,
        "computer_use_features_coarse": hello.computer_use_features_coarse,
        "local_llm_models": hello.local_llm_models,
        "recording_channels": hello.recording_channels,
        "recording_routes": hello.recording_routes,
        "connected_at": facts.connected_at,
    })
}

/// `GET /api/copilot/executors`.
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Json<Value> {
    let machines: Vec<_> =
        app.presence.machines(&caller.user).iter().map(|line| machine(line.facts())).collect();
    Json(json!({ "executors": machines }))
}

/// What to list: nothing but the connection starts a browse.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Browse {
    pub(crate) expected_connection_id: String,
    #[serde(default)]
    pub(crate) browse_id: Option<String>,
    #[serde(default)]
    pub(crate) directory_ref: Option<String>,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// `POST /api/copilot/executors/{machine_id}/directories`.
pub(crate) async fn directories(
    State(app): State<App>,
    caller: Caller,
    UrlPath(machine): UrlPath<MachineId>,
    JsonBody(browse): JsonBody<Browse>,
) -> Result<Json<Value>, ApiError> {
    let (line, folders) = list_folders(&app, &caller.user, &machine, browse).await?;
    let mut answer = serde_json::to_value(folders).map_err(|error| ApiError::internal(&error))?;
    answer["machine_id"] = json!(machine);
    answer["connection_id"] = json!(line.facts().connection_id);
    Ok(Json(answer))
}

/// One page of folders, over the connection that the caller has in mind.
pub(crate) async fn list_folders(
    app: &App,
    user: &UserId,
    machine: &MachineId,
    browse: Browse,
) -> Result<(std::sync::Arc<dyn Line>, DirectoryListResponse), ApiError> {
    if browse.browse_id.is_some() != browse.directory_ref.is_some() {
        return Err(ApiError::bad_request("send browse_id and directory_ref together, or neither"));
    }
    if browse.cursor.is_some() && browse.browse_id.is_none() {
        return Err(ApiError::bad_request("a cursor needs browse_id and directory_ref"));
    }
    let line = current(app, user, machine, &browse.expected_connection_id)?;
    let request = DirectoryListRequest {
        browse_id: browse.browse_id,
        directory_ref: browse.directory_ref,
        cursor: browse.cursor,
    };
    let folders: DirectoryListResponse =
        call(&*line, MessageType::DirectoryListRequest, &request, control_patience(app)).await?;
    let continues = request.browse_id.as_ref().is_none_or(|browse| *browse == folders.browse_id);
    if !continues {
        return Err(CallError::Misbehaved("the folders are of another browse".to_owned()).into());
    }
    Ok((line, folders))
}
