//! What the executor tells (events, a status report) and what it can be told (commands). The tray, the window,
//! notifications and `deskhand status --watch` read the one stream and send the one set; they share no other state.

use serde::{Deserialize, Serialize};

/// Something that happened. Sent to every subscriber; one that is too slow loses the oldest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The control connection changed its state.
    Connection {
        /// The new state.
        state: ConnectionState,
    },
    /// A session's data connection is up.
    SessionOpened {
        /// The session.
        session_id: String,
        /// Its folder.
        root: String,
    },
    /// A session's data connection is gone.
    SessionClosed {
        /// The session.
        session_id: String,
        /// Why, in words.
        reason: String,
    },
    /// A request was admitted.
    RequestStarted {
        /// Its session; none on control.
        session_id: Option<String>,
        /// Its envelope id.
        request_id: String,
        /// Its message type.
        op: String,
    },
    /// A request was answered, or cancelled.
    RequestFinished {
        /// Its session; none on control.
        session_id: Option<String>,
        /// Its envelope id.
        request_id: String,
        /// Its message type.
        op: String,
        /// The error code it was answered with.
        error_code: Option<String>,
        /// How long it took.
        duration_ms: u64,
    },
    /// A consent prompt is waiting for an answer.
    PromptOpened {
        /// The prompt.
        prompt_id: String,
        /// The session that asks.
        session_id: String,
        /// The capability it asks for.
        capability: String,
    },
    /// A consent prompt was settled.
    PromptClosed {
        /// The prompt.
        prompt_id: String,
        /// How, in words.
        decision: String,
    },
    /// A rule or a setting refused a request; nobody was asked.
    RefusedByRule {
        /// The session.
        session_id: String,
        /// The capability it was refused.
        capability: String,
    },
    /// A session was paused after too many denials; `deskhand resume` lets it go on.
    SessionPaused {
        /// The session.
        session_id: String,
    },
    /// Everything is paused, or goes on.
    Paused {
        /// Whether it is paused now.
        paused: bool,
        /// Why, when it was not the person.
        reason: Option<String>,
    },
    /// The kill switch was thrown and has finished.
    Killed {
        /// From the trigger until nothing was left.
        took_ms: u64,
    },
    /// Something that a person should see.
    Warning {
        /// In words, with what to do.
        message: String,
    },
}

/// Where the control connection stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ConnectionState {
    /// Off, and stays so until told to connect.
    Off {
        /// Why, in words.
        reason: String,
    },
    /// Dialling, or greeting.
    Connecting,
    /// Greeted.
    Connected {
        /// The platform's name for this connection.
        connection_id: String,
    },
    /// Waiting before the next try.
    Waiting {
        /// Until then.
        seconds: f64,
        /// What ended the last one, in words.
        reason: String,
    },
    /// The person must sign in again.
    SignedOut {
        /// Why, in words.
        reason: String,
    },
    /// Given up; only `connect` tries again.
    Halted {
        /// Why, in words with what to do.
        reason: String,
    },
}

/// What the executor can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Connect, and stay connected.
    Connect,
    /// Close every connection and stay off. Gentle: requests in flight are cancelled, background commands end.
    Disconnect,
    /// Keep the connections, refuse every request.
    Pause,
    /// End a pause: of everything, or of one session that was paused after denials.
    Resume {
        /// Only this one.
        session_id: Option<String>,
    },
    /// The kill switch.
    Stop,
    /// End one chat, as the platform would: its data connection closes, what it runs ends.
    EndSession {
        /// The chat.
        session_id: String,
    },
    /// Start a new audit log file.
    RotateLog,
    /// Delete closed audit log files, once the log has a record of it.
    PruneLog {
        /// Only those closed longer ago than this.
        older_than_seconds: u64,
    },
    /// Read the configuration again.
    ReloadConfig,
}

/// A command that could not be carried out; the message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CommandFailed(pub String);

/// The executor's state at one moment: `deskhand status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// This product's version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// This machine.
    pub machine_id: String,
    /// What the machine picker shows.
    pub display_name: String,
    /// The platform.
    pub platform_url: String,
    /// The control connection.
    pub connection: ConnectionState,
    /// Whether every request is refused.
    pub paused: bool,
    /// Since the process started.
    pub uptime_seconds: u64,
    /// Active sessions.
    pub sessions: Vec<SessionReport>,
    /// Consent prompts waiting.
    pub prompts: u32,
    /// Requests in flight on all connections.
    pub in_flight: u32,
    /// Requests that wait for the machine's ceiling.
    pub queue_depth: u32,
    /// The audit log's file.
    pub audit_log: String,
    /// Its size.
    pub audit_log_bytes: u64,
}

/// One active session in a [`StatusReport`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// The session.
    pub session_id: String,
    /// Its folder.
    pub root: String,
    /// Whether its data connection is up.
    pub connected: bool,
    /// Paused after denials.
    pub paused: bool,
    /// Requests in flight.
    pub in_flight: u32,
    /// Since its last request.
    pub idle_seconds: u64,
    /// Processes that outlived their command: `pid name`.
    pub background: Vec<String>,
}
