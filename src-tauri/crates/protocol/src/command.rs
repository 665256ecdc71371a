//! Payloads of commands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::payload::null_is_default;

/// Which shell runs a command line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShellName {
    /// bash, else sh; on Windows cmd.
    #[default]
    Auto,
    /// GNU Bash.
    Bash,
    /// POSIX shell.
    Sh,
    /// Z shell.
    Zsh,
    /// PowerShell 7.
    Pwsh,
    /// Windows PowerShell.
    Powershell,
    /// Windows command interpreter.
    Cmd,
}

impl ShellName {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ShellName::Auto => "auto",
            ShellName::Bash => "bash",
            ShellName::Sh => "sh",
            ShellName::Zsh => "zsh",
            ShellName::Pwsh => "pwsh",
            ShellName::Powershell => "powershell",
            ShellName::Cmd => "cmd",
        }
    }
}

/// `EXECUTE_COMMAND`. Exactly one of `command` and `argv`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecuteCommand {
    /// A line for the shell.
    #[serde(default)]
    pub command: Option<String>,
    /// A program and its arguments, without a shell.
    #[serde(default)]
    pub argv: Option<Vec<String>>,
    /// The shell of `command`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub shell: ShellName,
    /// In the session's folder; that folder when null.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Above 0; the negotiated limit holds when it is smaller, or this is null.
    #[serde(default)]
    pub timeout_seconds: Option<f64>,
    /// Added to a clean baseline.
    #[serde(default, deserialize_with = "null_is_default")]
    pub env: BTreeMap<String, String>,
}

/// `COMMAND_RESULT`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    /// What it printed, as UTF-8.
    pub stdout: String,
    /// What it complained, as UTF-8.
    pub stderr: String,
    /// Its status; −1 when it ran out of time, −signal when a signal ended it.
    pub exit_code: i32,
    /// Whether it ran out of time.
    pub timed_out: bool,
    /// How long it ran.
    pub duration_seconds: f64,
    /// Whether output was dropped.
    pub output_truncated: bool,
}
