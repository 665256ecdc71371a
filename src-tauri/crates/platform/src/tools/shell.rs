//! `bash_exec`.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::{CommandResult, ExecuteCommand, MessageType, ShellName};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Call, ToolError, ToolResult, arguments};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exec {
    command: Option<String>,
    argv: Option<Vec<String>>,
    #[serde(default)]
    shell: ShellName,
    cwd: Option<String>,
    timeout_seconds: Option<f64>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

pub(super) async fn exec(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let Exec { command, argv, shell, cwd, timeout_seconds, env } = arguments(args)?;
    if command.is_some() == argv.is_some() {
        return Err(ToolError::arguments("give exactly one of command and argv"));
    }
    if timeout_seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite())) {
        return Err(ToolError::arguments("timeout_seconds must be above 0"));
    }
    let most = call.app.options.limits.command_timeout_seconds;
    let extra = Duration::try_from_secs_f64(timeout_seconds.unwrap_or(most).min(most)).unwrap_or_default();
    let request = ExecuteCommand { command, argv, shell, cwd, timeout_seconds, env };
    let result: CommandResult = call.request(MessageType::ExecuteCommand, &request, extra).await?;
    serde_json::to_value(result).map_err(|error| ToolError::new("INTERNAL_ERROR", error.to_string()))
}
