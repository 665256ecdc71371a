//! Unsolicited messages.

use serde::{Deserialize, Serialize};

/// Payload of `STATUS`: the executor's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Requests admitted on this connection and not answered yet.
    pub in_flight: u32,
    /// The most it admits.
    pub max_concurrent: u32,
    /// Requests of all sessions that were admitted and wait for the machine's ceiling.
    pub queue_depth: u32,
    /// Size of the current audit log.
    pub audit_log_bytes: u64,
    /// Since the process started.
    pub uptime_seconds: u64,
}

/// Payload of `SESSION_REVOKED`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRevoked {
    /// `another_shim_connected`, `user_revoked`, `platform_shutdown`, or one we do not know yet.
    pub reason: String,
    /// The machine that has the session now.
    #[serde(default)]
    pub new_shim_machine_id: Option<String>,
}

/// Payload of `ACK`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// Always true: a failure is an `ERROR`.
    pub ok: bool,
    /// Computer use only: `confirmed` or `unverifiable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// `APP_LAUNCH` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl Ack {
    /// The plain acknowledgement.
    #[must_use]
    pub fn ok() -> Self {
        Self { ok: true, ..Self::default() }
    }
}
