//! What the pages are given. The field names are those of `ui/src/lib/contract.ts`.

use serde::Serialize;

use crate::config::{Capabilities, Consent, Rates, Rule};
use crate::events::{ConnectionState, SessionReport};

/// The one word that the tray icon and the Home page show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mood {
    /// Not connected, and nothing is wrong with that.
    Off,
    /// Connected; nothing happens.
    Connected,
    /// A chat is doing something.
    Working,
    /// An agent sees the screen or types.
    InControl,
    /// A workflow is being recorded.
    Recording,
    /// Everything is refused until resumed.
    Paused,
    /// It should be connected and is not, or the log cannot be written.
    Trouble,
}

/// Where signing in stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SignIn {
    /// Nobody is.
    SignedOut,
    /// The browser is open.
    Waiting {
        /// Its page, to be opened again or copied.
        url: String,
    },
    /// The last attempt came to nothing.
    Failed {
        /// Why, and what to do.
        message: String,
    },
    /// Somebody is.
    SignedIn {
        /// Who; platforms need not say.
        account: Option<String>,
    },
}

/// An active chat.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chat {
    /// As `deskhand status` has it.
    #[serde(flatten)]
    pub session: SessionReport,
    /// What it does at this moment, in a sentence.
    pub doing: Option<String>,
}

/// The keys of the kill switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shortcut {
    /// As a person reads them: `Ctrl+Alt+Shift+Escape`.
    pub keys: String,
    /// Another program has them, or the desktop has no such keys; then they do nothing.
    pub taken: bool,
}

/// Everything that the tray and the Home page show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// This product's version.
    pub version: String,
    /// The platform's name for people.
    pub platform_host: String,
    /// Its address.
    pub platform_url: String,
    /// What the platform's machine picker shows.
    pub display_name: String,
    /// In one word.
    pub mood: Mood,
    /// In one sentence.
    pub mood_text: String,
    /// The control connection.
    pub connection: ConnectionState,
    /// Whether every request is refused.
    pub paused: bool,
    /// Who is signed in.
    pub sign_in: SignIn,
    /// What is active.
    pub chats: Vec<Chat>,
    /// Consent prompts waiting.
    pub prompts: u32,
    /// Whether the desktop shows our tray icon.
    pub has_tray: bool,
    /// Of the kill switch.
    pub shortcut: Shortcut,
    /// Whether the first-run screens are still to be shown.
    pub first_run: bool,
}

/// What an activity row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum Kind {
    Read,
    Write,
    Shell,
    Screen,
    Input,
    Clipboard,
    Record,
    Connection,
    Settings,
    Other,
}

/// Which records are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Of one chat.
    pub session_id: Option<String>,
    /// Of one kind.
    pub kind: Option<Kind>,
}

/// How much there is to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActivitySummary {
    /// Records that the filter lets through.
    pub total: usize,
    /// Every chat in the log, the latest first.
    pub sessions: Vec<String>,
}

/// One record of the audit log, as people read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActivityRow {
    /// Among those the filter lets through; 0 is the newest.
    pub index: usize,
    /// Its number in its file.
    pub seq: u64,
    /// When it was written: RFC 3339, UTC.
    pub time: String,
    /// The chat; none for our own events.
    pub session_id: Option<String>,
    /// What it is about.
    pub kind: Kind,
    /// What happened.
    pub sentence: String,
    /// Whether it went well.
    pub ok: bool,
    /// How it ended, in words.
    pub result: String,
    /// How long it took; none for events.
    pub duration_ms: Option<u64>,
}

/// Whether the log's chain holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Nothing is wrong.
    pub ok: bool,
    /// Records that verify.
    pub records: u64,
    /// Files read.
    pub files: usize,
    /// What is wrong, a sentence each.
    pub problems: Vec<String>,
}

/// A folder the agent may be given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Folder {
    /// As written in the configuration, `~` expanded.
    pub path: String,
    /// Whether it can be.
    pub usable: bool,
    /// Why not; or what to think about.
    pub reason: Option<String>,
}

/// What the operating system lets us do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Permission {
    /// Names it.
    pub id: &'static str,
    /// For people.
    pub name: &'static str,
    /// How it stands.
    pub state: PermissionState,
    /// In a sentence.
    pub detail: String,
    /// Whether there is a page of the system's settings to open.
    pub can_open: bool,
}

/// How a permission stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum PermissionState {
    Ok,
    Warning,
    Missing,
}

/// What can be set, as it holds now.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the keys of config.toml, see `config::Config`")]
pub struct Settings {
    pub platform_url: String,
    pub display_name: String,
    pub browse_home: bool,
    pub trash: bool,
    pub max_concurrent: usize,
    pub command_timeout_seconds: u64,
    pub max_file_size_bytes: u64,
    pub capabilities: Capabilities,
    pub consent: Consent,
    pub rules: Vec<Rule>,
    pub rates: Rates,
    pub recording: Retention,
    pub local_llm_url: String,
    /// The operating system starts the app when the person logs in.
    pub start_at_login: bool,
    pub appearance: super::Appearance,
    /// The keys of the kill switch.
    pub shortcut: String,
    /// Keys that a variable or a flag fixes.
    pub overridden: Vec<String>,
    /// Capabilities that this version has.
    pub works: Vec<&'static str>,
}

/// How long recordings stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the keys of config.toml")]
pub struct Retention {
    pub keep: u32,
    pub keep_days: u32,
}

/// Whom this program talks to, and what it is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct About {
    /// This product's version.
    pub version: &'static str,
    /// Every host that is ever contacted.
    pub hosts: Vec<Host>,
    /// Of everything that is built in.
    pub licences: Vec<Licence>,
    /// Where the configuration is.
    pub config_dir: String,
    /// Where the audit log is.
    pub log_dir: String,
}

/// A host that is contacted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// In words.
    pub what_for: &'static str,
}

/// A part that others wrote.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, Serialize)]
pub struct Licence {
    /// The part.
    pub name: String,
    /// Its version.
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
}
