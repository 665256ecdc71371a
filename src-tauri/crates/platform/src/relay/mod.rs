//! The relay: sockets of machines, and requests through them.
//!
//! [`Presence`] and [`Line`] are the seam: handlers and tools know these two traits only, so that a second
//! implementation can carry them between processes. In this process [`LocalPresence`] holds the sockets themselves.

mod answers;
mod call;
mod handshake;
mod link;
mod presence;
mod socket;

use std::sync::Arc;
use std::time::Duration;

use axum::{Router, routing::any};
use futures_util::future::BoxFuture;
use protocol::{Capability, Hello, MachineId, MessageType, SessionId};
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::app::App;
use crate::secret::TokenHash;
use crate::store::oauth::FamilyId;
use crate::store::users::UserId;

pub(crate) use answers::Checked;
pub(crate) use call::{CallError, Outcome, Patience, call, once, unconfirmed};
pub(crate) use presence::LocalPresence;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/ws/local-executor", any(socket::control))
        .route("/ws/local-executor/{session_id}", any(socket::data))
}

/// Which machines are connected.
pub(crate) trait Presence: Send + Sync {
    /// The control connections of a user's machines.
    fn machines(&self, user: &UserId) -> Vec<Arc<dyn Line>>;
    /// The control connection of one machine.
    fn machine(&self, user: &UserId, machine: &MachineId) -> Option<Arc<dyn Line>>;
    /// The data connection of a session.
    fn session(&self, session: &SessionId) -> Option<Arc<dyn Line>>;
    /// Ticks whenever one of the answers above changes.
    fn changes(&self) -> watch::Receiver<u64>;
    /// Tells connections that they are revoked, and ends them.
    fn revoke(&self, whose: &Whose);
}

/// The way to one connection of a machine.
pub(crate) trait Line: Send + Sync {
    /// What its handshake settled.
    fn facts(&self) -> &Facts;
    /// Sends a request once there is room for it, and waits for its answer.
    fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<Answer, SendError>>;
}

/// What a handshake settled.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) connection_id: String,
    pub(crate) user: UserId,
    pub(crate) hello: Hello,
    /// Offered and granted.
    pub(crate) granted: Vec<Capability>,
    /// `None` on control.
    pub(crate) session: Option<SessionId>,
    /// Seconds since the epoch.
    pub(crate) connected_at: f64,
}

/// A request on its way out.
pub(crate) struct Outgoing {
    pub(crate) kind: MessageType,
    pub(crate) payload: Box<RawValue>,
    /// How long to wait for a free slot.
    pub(crate) room: Duration,
    /// How long to wait for the answer after that.
    pub(crate) patience: Duration,
}

/// An answer as it came; nothing of its payload is checked yet.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) kind: Option<MessageType>,
    pub(crate) payload: Box<RawValue>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendError {
    /// The connection ended before the request left.
    NotSent,
    /// The connection ended after the request left: it may have run.
    Lost,
    /// No answer in time: it may still run.
    TimedOut,
    /// No free slot in time.
    Busy,
    /// Over the frame limit.
    TooLarge,
}

/// Whose connections are revoked.
#[derive(Debug)]
pub(crate) enum Whose {
    /// Everything that came from one approval.
    Family(FamilyId),
    /// One access token's.
    Token(TokenHash),
    /// One session's.
    Session(SessionId),
}
