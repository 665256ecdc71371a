//! What callers put into the log, and the settings of a log.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::anchor::Anchor;

/// One event to record. `seq`, `ts`, the identity and the chain are the log's to add.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The session it belongs to, if any.
    pub session_id: Option<String>,
    /// The envelope id of the request, or `None` for our own events.
    pub request_id: Option<String>,
    /// The operation: `FILE_READ`, `SHIM_START`, …
    pub op: Cow<'static, str>,
    /// Sizes and shapes of what was asked, never contents. The table of keys by `op` is the caller's contract.
    pub details: Map<String, Value>,
    /// How it went.
    pub result: Outcome,
}

impl Entry {
    /// An event of our own (no session, no request) that went well.
    #[must_use]
    pub fn event(op: impl Into<Cow<'static, str>>, details: Map<String, Value>) -> Self {
        Self { session_id: None, request_id: None, op: op.into(), details, result: Outcome::success(0) }
    }
}

/// A record's `result`: `{ok, exit_code, duration_ms, error_code, …extra}`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Whether the operation did what it was asked.
    pub ok: bool,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// Milliseconds from start to end.
    pub duration_ms: u64,
    /// The wire's error code; `CANCELLED` for a cancelled request.
    pub error_code: Option<String>,
    /// More fields beside these four; one named like one of them is left out.
    pub extra: Map<String, Value>,
}

impl Outcome {
    /// Went well.
    #[must_use]
    pub fn success(duration_ms: u64) -> Self {
        Self { ok: true, duration_ms, ..Self::default() }
    }

    /// Failed with a wire error code.
    #[must_use]
    pub fn failure(error_code: impl Into<String>, duration_ms: u64) -> Self {
        Self { ok: false, duration_ms, error_code: Some(error_code.into()), ..Self::default() }
    }
}

/// Who writes: the same in every record. Each is cut at 256 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The machine's id at the platform.
    pub machine_id: String,
    /// Our version.
    pub shim_version: String,
}

/// Settings of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// A file that would grow beyond this many bytes is rotated first. Default 64 MiB.
    pub rotate_bytes: u64,
    /// A file whose first record is older than this is rotated before the next record. Default 30 days.
    pub rotate_age: Duration,
    /// Longest time a record stays unsynced. Default 50 ms. Each sync costs the disk a flush.
    pub sync_every: Duration,
    /// A record that the log must hold, known from outside of its folder; a log without it gets a `LOG_REPAIRED` record
    /// that says so. Default none.
    pub anchor: Option<Anchor>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rotate_bytes: 64 << 20,
            rotate_age: Duration::from_secs(30 * 24 * 60 * 60),
            sync_every: Duration::from_millis(50),
            anchor: None,
        }
    }
}

/// What opening or recovering a log had to mend. Each is in the log as a `LOG_REPAIRED` record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The last line was incomplete (power loss) and was moved to a file of its own.
    Torn {
        /// Name of that file, beside the log.
        file: String,
        /// Its size.
        bytes: u64,
    },
    /// Records known to have been written are gone: the log was cut, deleted or replaced by an older one.
    RecordsMissing {
        /// `seq` of the last one known.
        known_seq: u64,
        /// Its `hmac`.
        known_hmac: String,
    },
    /// The last line is not one of ours (changed, or written with another key): the file was set aside as it is and
    /// a new one started.
    SetAside {
        /// Name it has now, beside the log.
        file: String,
    },
    /// Writing had failed and works again.
    WriteFailed {
        /// The failure.
        error: String,
    },
}

/// `details.reason` of a [`Repair::RecordsMissing`]; verification counts it as a problem.
pub(crate) const RECORDS_MISSING: &str = "records_missing";

impl Repair {
    /// The record of it.
    pub(crate) fn entry(&self) -> Entry {
        let details = match self {
            Self::Torn { file, bytes } => json!({"reason": "torn", "torn_file": file, "torn_bytes": bytes}),
            Self::RecordsMissing { known_seq, known_hmac } => {
                json!({"reason": RECORDS_MISSING, "known_seq": known_seq, "known_hmac": known_hmac})
            }
            Self::SetAside { file } => json!({"reason": "unverifiable", "file": file}),
            Self::WriteFailed { error } => json!({"reason": "write_failed", "error": error}),
        };
        let details = match details {
            Value::Object(map) => map,
            other => Map::from_iter([("repair".to_owned(), other)]),
        };
        Entry::event("LOG_REPAIRED", details)
    }
}
