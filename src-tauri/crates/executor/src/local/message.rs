//! What is said over the local socket: one JSON object a line, each request answered by one line (`watch` by many).

use serde::{Deserialize, Serialize};

use crate::events::{Command, Event, StatusReport};

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// `{"request":"status"}` → [`Answer::Status`].
    Status,
    /// `{"request":"standing"}` → [`Answer::Standing`].
    Standing,
    /// `{"request":"watch"}` → [`Answer::Status`], then [`Answer::Event`] for each event until the client leaves.
    Watch,
    /// `{"request":"command","command":"pause"}` → [`Answer::Done`].
    Command(Command),
}

/// What the server says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The state at this moment.
    Status {
        /// All of it.
        report: Box<StatusReport>,
    },
    /// Who asks.
    Standing {
        /// The person, and not a command of an agent's.
        person: bool,
    },
    /// The command was carried out.
    Done {
        /// How long the kill switch took, where it has reported back.
        took_ms: Option<u64>,
    },
    /// Something happened.
    Event {
        /// What.
        event: Event,
    },
    /// The client reads too slowly: so many events were dropped.
    Missed {
        /// How many.
        events: u64,
    },
    /// It was not done.
    Refused {
        /// The kind of refusal.
        code: Refusal,
        /// Why, with what to do.
        message: String,
    },
}

/// Why a request was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Not a request: no JSON, unknown, too long, or none came in time.
    BadRequest,
    /// The agent's own commands may not ask for this.
    Forbidden,
    /// All slots are taken.
    Busy,
    /// The executor did not answer in time.
    NoAnswer,
    /// The executor could not do it.
    Failed,
}

impl Answer {
    pub(super) fn refused(code: Refusal, message: impl Into<String>) -> Self {
        Self::Refused { code, message: message.into() }
    }
}
