//! The tools an agent may call. One table serves the HTTP route and MCP.
//!
//! A call goes: is the session local → is its machine there, or can it be restored → is the tool's own feature granted →
//! for computer use, did the person approve it for this machine → run → log name and outcome, never content.

mod computer;
mod edit;
mod error;
mod files;
mod grep;
mod paths;
mod schema;
mod search;
mod shell;
mod table;

use std::time::Duration;

use futures_util::future::BoxFuture;
use protocol::{Capability, Coarse, Hello, MessageType};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::api::{is_approved, machine};
use crate::app::App;
use crate::relay::{Checked, Facts, Patience};
use crate::sessions::{call_session, line_of};
use crate::store::sessions::{self, Binding, Session, Target};
use crate::store::users::UserId;

pub(crate) use error::ToolError;
pub(crate) use table::{TOOLS, named};

/// What a tool returns: JSON for the agent.
pub(crate) type ToolResult = Result<Value, ToolError>;

/// One tool.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// JSON Schema of the arguments.
    pub(crate) schema: fn() -> Value,
    needs: Needs,
    run: Run,
}

/// How a tool runs.
enum Run {
    /// On the session's machine.
    There(for<'a> fn(&'a Call<'a>, Map<String, Value>) -> BoxFuture<'a, ToolResult>),
    /// On this platform.
    Here(fn(&App, &UserId) -> Value),
}

/// What must be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing, not even a machine.
    Nothing,
    Capability(Capability),
    /// Computer use, and one fine feature of it.
    Fine(&'static str),
    /// Computer use, and one group of features.
    Coarse(Coarse),
}

impl Needs {
    fn met_by(self, facts: &Facts) -> bool {
        let computer_use = facts.granted.contains(&Capability::ComputerUse);
        match self {
            Needs::Nothing => true,
            Needs::Capability(capability) => facts.granted.contains(&capability),
            Needs::Fine(feature) => computer_use && has_fine(&facts.hello, feature),
            Needs::Coarse(group) => computer_use && facts.hello.computer_use_features_coarse.contains(&group),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Needs::Nothing => "nothing",
            Needs::Capability(capability) => capability.as_str(),
            Needs::Fine(feature) => feature,
            Needs::Coarse(group) => group.as_str(),
        }
    }

    fn is_computer_use(self) -> bool {
        match self {
            Needs::Nothing | Needs::Capability(_) => false,
            Needs::Fine(_) | Needs::Coarse(_) => true,
        }
    }
}

fn has_fine(hello: &Hello, feature: &str) -> bool {
    hello.computer_use_features.iter().any(|known| known == feature)
}

impl Tool {
    /// Whether it needs no session.
    pub(crate) fn runs_here(&self) -> bool {
        matches!(self.run, Run::Here(_))
    }

    /// The answer of a tool that needs no session.
    pub(crate) fn run_here(&self, app: &App, user: &UserId) -> Option<Value> {
        match self.run {
            Run::Here(run) => Some(run(app, user)),
            Run::There(_) => None,
        }
    }

    /// As listed to programs.
    pub(crate) fn describe(&self) -> Value {
        json!({ "name": self.name, "description": self.description, "input_schema": (self.schema)() })
    }
}

/// One call under way.
pub(crate) struct Call<'a> {
    app: &'a App,
    session: &'a Session,
    binding: &'a Binding,
    /// As the machine greeted when the call began.
    hello: Hello,
}

impl Call<'_> {
    /// One request to the machine; `extra` is what it may take by itself, such as a command's timeout.
    async fn request<A>(
        &self,
        kind: MessageType,
        payload: &impl Serialize,
        extra: Duration,
    ) -> Result<A, ToolError>
    where
        A: DeserializeOwned + Checked,
    {
        let timings = &self.app.options.timings;
        let patience = Patience { room: timings.capacity_wait, answer: timings.request_timeout + extra };
        call_session(self.app, self.session, self.binding, kind, payload, patience)
            .await
            .map_err(|error| ToolError::of_call(error, &self.binding.allowed_root))
    }

    /// A part of a tool that has a feature of its own.
    fn needs(&self, feature: &'static str) -> Result<(), ToolError> {
        if has_fine(&self.hello, feature) { Ok(()) } else { Err(ToolError::not_granted(feature)) }
    }
}

/// The arguments in their own type.
fn arguments<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| ToolError::arguments(error.to_string()))
}

/// The tools that may be called in a session now. While its machine is away that is what needs no switch there.
pub(crate) fn offered(app: &App, session: &Session) -> Vec<&'static Tool> {
    let Target::Local(binding) = &session.target else {
        return TOOLS.iter().filter(|tool| tool.needs == Needs::Nothing).collect();
    };
    let line = app.presence.session(&session.id);
    let line = line.or_else(|| app.presence.machine(&session.user, &binding.machine_id));
    let may = |tool: &&Tool| match &line {
        Some(line) => tool.needs.met_by(line.facts()),
        None => matches!(tool.needs, Needs::Nothing | Needs::Capability(Capability::Files)),
    };
    TOOLS.iter().filter(may).collect()
}

/// Calls a tool in a session, and logs its name and outcome.
pub(crate) async fn run(
    app: &App,
    session: &Session,
    tool: &Tool,
    arguments: Map<String, Value>,
) -> ToolResult {
    let result = attempt(app, session, tool, arguments).await;
    let error = result.as_ref().err().map(|error| error.code.clone());
    let (id, name) = (session.id.clone(), tool.name);
    let logged = app.store.run(move |db| sessions::log(db, &id, name, error.as_deref())).await;
    if let Err(error) = logged {
        tracing::error!(error = &error as &dyn std::error::Error, "a tool call could not be logged");
    }
    result
}

async fn attempt(app: &App, session: &Session, tool: &Tool, arguments: Map<String, Value>) -> ToolResult {
    let run = match tool.run {
        Run::Here(run) => return Ok(run(app, &session.user)),
        Run::There(run) => run,
    };
    let Target::Local(binding) = &session.target else {
        return Err(ToolError::new("CLOUD_SESSION", "this chat runs in the cloud; it has no machine"));
    };
    let line = line_of(app, session, binding, false)
        .await
        .map_err(|error| ToolError::of_call(error, &binding.allowed_root))?;
    if !tool.needs.met_by(line.facts()) {
        return Err(ToolError::not_granted(tool.needs.name()));
    }
    let hello = line.facts().hello.clone();
    if tool.needs.is_computer_use() {
        let approved = is_approved(app, session, &hello)
            .await
            .map_err(|error| ToolError::new(error.code, error.message))?;
        if !approved {
            let why = "computer use is not approved for this chat and machine; ask the person to approve it on the \
                       platform's console page";
            return Err(ToolError::new("CONSENT_REQUIRED", why));
        }
    }
    run(&Call { app, session, binding, hello }, arguments).await
}

fn list_machines(app: &App, user: &UserId) -> Value {
    let machines: Vec<_> = app.presence.machines(user).iter().map(|line| machine(line.facts())).collect();
    json!({ "machines": machines })
}
