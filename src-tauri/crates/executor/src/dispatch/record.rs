//! The audit record of one request, filled in as its steps go by.

use audit::{Entry, Outcome};
use protocol::{ErrorPayload, MessageType};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::operation::{Details, elapsed_ms};

/// A record in the making.
pub(crate) struct Record {
    op: &'static str,
    session_id: Option<String>,
    request_id: String,
    started: Instant,
    details: Details,
}

impl Record {
    pub(crate) fn new(
        kind: MessageType,
        session_id: Option<&str>,
        request_id: &str,
        started: Instant,
    ) -> Self {
        Self {
            op: audit_op(kind),
            session_id: session_id.map(str::to_owned),
            request_id: request_id.to_owned(),
            started,
            details: Map::new(),
        }
    }

    /// Adds details.
    pub(crate) fn details(&mut self, details: Details) {
        self.details.extend(details);
    }

    /// The details up to now.
    pub(crate) fn so_far(&self) -> &Details {
        &self.details
    }

    /// The path that the request named first.
    pub(crate) fn path(&self) -> Option<&str> {
        ["path", "src", "cwd"].iter().find_map(|key| self.details.get(*key)).and_then(Value::as_str)
    }

    /// Under another name, where success has its own.
    pub(crate) fn named(mut self, op: Option<&'static str>) -> Self {
        if let Some(op) = op {
            self.op = op;
        }
        self
    }

    pub(crate) fn succeeded(self, exit_code: Option<i32>, extra: Details) -> Entry {
        self.entry(true, exit_code, None, extra)
    }

    /// As failed, or as cancelled with its connection.
    pub(crate) fn failed(self, error: &ErrorPayload, cancelled: bool) -> Entry {
        let code = if cancelled { "CANCELLED" } else { error.code.as_str() };
        self.entry(false, None, Some(code.to_owned()), Map::new())
    }

    fn entry(self, ok: bool, exit_code: Option<i32>, error_code: Option<String>, extra: Details) -> Entry {
        Entry {
            session_id: self.session_id,
            request_id: Some(self.request_id),
            op: self.op.into(),
            details: self.details,
            result: Outcome { ok, exit_code, duration_ms: elapsed_ms(self.started), error_code, extra },
        }
    }
}

/// The log's name of a request: its message type, but for the folder listing.
fn audit_op(kind: MessageType) -> &'static str {
    match kind {
        MessageType::DirectoryListRequest => "DIRECTORY_LIST",
        other => other.as_str(),
    }
}
