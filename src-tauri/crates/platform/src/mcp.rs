//! The tools for any MCP client: `POST /mcp`, streamable HTTP without sessions of its own.
//!
//! A bearer token says whose machines; a cookie never does, so a web page cannot reach this with a person's browser. Which
//! chat session is meant stands in the URL (`/mcp?session=ID`; then the list holds what may be called now) or in each
//! call's `session_id`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as McpTool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};

use crate::app::App;
use crate::auth;
use crate::error::ApiError;
use crate::oauth::endpoint;
use crate::sessions::owned;
use crate::store::sessions::{self, Session, Target};
use crate::store::users::UserId;
use crate::tools::{self, TOOLS, Tool, ToolError};

/// Sessions named to a client that asks for its machines.
const SESSIONS_LISTED: u32 = 50;

pub(crate) fn routes(app: &App, max_body: usize) -> Router<App> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(max_body)
        // Rebinding a name needs a browser's own authority; here every request brings a token.
        .disable_allowed_hosts()
        .with_cancellation_token(app.stopping.clone());
    let server = Server { app: app.clone() };
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    Router::new()
        .route_service("/mcp", service)
        .layer(middleware::from_fn_with_state(app.clone(), authenticate))
}

/// Whom the token stands for, and the session in the URL.
#[derive(Clone)]
struct Asker {
    user: UserId,
    session: Option<String>,
}

async fn authenticate(State(app): State<App>, mut request: Request, next: Next) -> Response {
    if !app.options.features.local_executor {
        return ApiError::feature_off().into_response();
    }
    let access = match auth::bearer(request.headers()) {
        Some(token) => auth::access_token(&app, token).await,
        None => Err(ApiError::unauthorized()),
    };
    match access {
        Ok(access) => {
            let query = request.uri().query().unwrap_or_default();
            let session = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "session");
            let session = session.map(|(_, id)| id.into_owned());
            request.extensions_mut().insert(Asker { user: access.user, session });
            next.run(request).await
        }
        Err(error) => {
            let mut response = error.into_response();
            // Where a client learns how to get a token (RFC 9728, 5.1).
            let metadata = endpoint(&app, "/.well-known/oauth-protected-resource/mcp");
            if let Ok(value) = HeaderValue::from_str(&format!("Bearer resource_metadata=\"{metadata}\"")) {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
            }
            response
        }
    }
}

#[derive(Clone)]
struct Server {
    app: App,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("deskhand-platform", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Tools run on the person's own computer, in the folder of one chat session. Call \
                 local_pc_list_machines for the machines and sessions there are; give session_id with every other \
                 call unless the URL names the session. The person may be asked before a tool runs.",
            )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let asker = asker(&context)?;
        let tools = match &asker.session {
            None => TOOLS.iter().map(|tool| listed(tool, true)).collect(),
            Some(id) => {
                let session = self.session(&asker, id).await.map_err(protocol_error)?;
                tools::offered(&self.app, &session).into_iter().map(|tool| listed(tool, false)).collect()
            }
        };
        Ok(ListToolsResult { tools, ..ListToolsResult::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asker = asker(&context)?;
        let Some(tool) = tools::named(&request.name) else {
            return Err(ErrorData::invalid_params("there is no such tool", None));
        };
        let called = self.call(&asker, tool, request.arguments.unwrap_or_default()).await;
        Ok(CallToolResponse::Complete(match called {
            Ok(value) => success(value),
            Err(error) => CallToolResult::structured_error(json!(error)),
        }))
    }
}

impl Server {
    async fn session(&self, asker: &Asker, id: &str) -> Result<Session, ToolError> {
        owned(&self.app, id, &asker.user).await.map_err(|error| ToolError::new(error.code, error.message))
    }

    async fn call(&self, asker: &Asker, tool: &Tool, mut arguments: JsonObject) -> Result<Value, ToolError> {
        let given = arguments.remove("session_id");
        if let Some(answer) = tool.run_here(&self.app, &asker.user) {
            return self.with_sessions(asker, answer).await;
        }
        let id = match (&asker.session, &given) {
            (Some(id), None) => id,
            (None, Some(Value::String(id))) => id,
            (Some(id), Some(Value::String(same))) if id == same => id,
            (Some(_), Some(_)) => {
                return Err(ToolError::arguments("session_id differs from the session in the URL"));
            }
            (None, None | Some(_)) => {
                return Err(ToolError::arguments("session_id is missing; local_pc_list_machines names them"));
            }
        };
        let session = self.session(asker, id).await?;
        tools::run(&self.app, &session, tool, arguments).await
    }

    /// A client that is new here learns which sessions it may name.
    async fn with_sessions(&self, asker: &Asker, mut answer: Value) -> Result<Value, ToolError> {
        let user = asker.user.clone();
        let found = self.app.store.run(move |db| sessions::of_user(db, &user, SESSIONS_LISTED)).await;
        let found = found.map_err(|error| {
            let error = ApiError::from(error);
            ToolError::new(error.code, error.message)
        })?;
        let local = found.iter().filter_map(|session| match &session.target {
            Target::Cloud => None,
            Target::Local(binding) => Some(json!({
                "session_id": session.id, "machine_id": binding.machine_id, "folder": binding.allowed_root,
            })),
        });
        answer["sessions"] = local.collect();
        Ok(answer)
    }
}

fn asker(context: &RequestContext<RoleServer>) -> Result<Asker, ErrorData> {
    let asker = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Asker>()).cloned();
    asker.ok_or_else(|| ErrorData::internal_error("the request lost its token", None))
}

fn protocol_error(error: ToolError) -> ErrorData {
    ErrorData::invalid_params(error.message, None)
}

/// A tool as MCP lists it; with `session_id` when the URL does not name the session.
fn listed(tool: &Tool, names_session: bool) -> McpTool {
    let mut schema = (tool.schema)();
    if names_session && !tool.runs_here() {
        schema["properties"]["session_id"] = json!({ "type": "string", "description": "The chat session" });
        if let Some(required) = schema["required"].as_array_mut() {
            required.push(json!("session_id"));
        }
    }
    let schema = match schema {
        Value::Object(schema) => schema,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    };
    McpTool::new(tool.name, tool.description, schema)
}

/// A picture goes as a picture, so that the model sees it; anything else as JSON.
fn success(mut value: Value) -> CallToolResult {
    let picture = value.as_object_mut().and_then(|map| map.remove("image_base64"));
    let Some(Value::String(picture)) = picture else { return CallToolResult::structured(value) };
    let kind = value["mime_type"].as_str().unwrap_or_default().to_owned();
    let mut result = CallToolResult::structured(value);
    result.content.insert(0, ContentBlock::image(picture, kind));
    result
}
