use std::fmt;

use serde::{Deserialize, Serialize};

/// The classes of action that a person decides about (safety.md §3). A request belongs to exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Read, list or stat below the root.
    Read,
    /// Write, move or delete below the root.
    Write,
    /// Run a command.
    Shell,
    /// See the screen, its windows or what stands on them.
    Screen,
    /// Type, click, scroll, focus, launch.
    Input,
    /// Read the clipboard.
    Clipboard,
    /// Record a workflow.
    #[serde(rename = "recording")]
    Record,
}

impl Capability {
    /// Every capability, in the order of the configuration's `[consent]` table.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Write, Self::Shell, Self::Screen, Self::Input, Self::Clipboard, Self::Record];

    /// The name used in `config.toml`, in the audit log and in the `details` of a `CONSENT_REQUIRED` answer.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Shell => "shell",
            Self::Screen => "screen",
            Self::Input => "input",
            Self::Clipboard => "clipboard",
            Self::Record => "recording",
        }
    }

    /// What a standing approval of this capability covers, as the object of "allow this chat to …".
    pub(crate) fn everything(self) -> &'static str {
        match self {
            Self::Read => "read any file",
            Self::Write => "write, move and delete any file",
            Self::Shell => "run any command",
            Self::Screen => "see the screen",
            Self::Input => "type, click and open programs",
            Self::Clipboard => "read the clipboard",
            Self::Record => "record",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
