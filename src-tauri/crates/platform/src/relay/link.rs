//! One connection of a machine, seen from those who send requests through it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use protocol::{Frame, MAX_FRAME_BYTES, MessageType, SessionRevoked, Status, encode, new_id, parse_payload};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Answer, Facts, Line, Outgoing, SendError};
use crate::secret::TokenHash;
use crate::store::oauth::FamilyId;

/// Frames between a sender and the socket; there are never more requests than slots anyway.
const OUTBOX: usize = 16;

/// Requests that may wait for a slot of one connection; the next is turned away at once.
const MAX_WAITING: usize = 64;

/// Why and how a connection is ended from our side.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    /// Sent before the close frame.
    pub(crate) revoked: Option<SessionRevoked>,
}

/// One connection.
pub(crate) struct Link {
    facts: Facts,
    pub(crate) family: FamilyId,
    pub(crate) token: TokenHash,
    outbox: mpsc::Sender<String>,
    /// Set once, by whoever ends the connection first. Nothing is sent after it.
    ending: watch::Sender<Option<Ending>>,
    traffic: Mutex<Traffic>,
    /// Rung whenever a slot may have become free.
    room: Notify,
    /// Held by the request that is next, so that they go in order.
    turn: tokio::sync::Mutex<()>,
}

struct Traffic {
    /// Sent and not answered. The receiver may have gone; the slot is taken all the same.
    pending: HashMap<String, oneshot::Sender<Answer>>,
    /// The most requests at once: what we acknowledged, or less when the machine says so.
    limit: u32,
    /// Requests that may still be sent by the machine's last word.
    credit: u32,
    waiting: usize,
}

impl Link {
    pub(crate) fn new(
        facts: Facts,
        family: FamilyId,
        token: TokenHash,
        max_concurrent: u32,
    ) -> (Self, mpsc::Receiver<String>) {
        let (outbox, outgoing) = mpsc::channel(OUTBOX);
        let traffic =
            Traffic { pending: HashMap::new(), limit: max_concurrent, credit: max_concurrent, waiting: 0 };
        let link = Self {
            facts,
            family,
            token,
            outbox,
            ending: watch::Sender::new(None),
            traffic: Mutex::new(traffic),
            room: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
        };
        (link, outgoing)
    }

    /// Ends the connection; the first call decides how.
    pub(crate) fn end(&self, ending: Ending) {
        self.ending.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(ending);
            }
            first
        });
    }

    pub(crate) fn ending(&self) -> watch::Receiver<Option<Ending>> {
        self.ending.subscribe()
    }

    pub(crate) fn is_live(&self) -> bool {
        self.ending.borrow().is_none()
    }

    /// Queues a frame that needs no slot; false when the queue is full, because the machine does not read.
    pub(crate) fn push(&self, text: String) -> bool {
        self.outbox.try_send(text).is_ok()
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a frame of the machine: an answer, or its load.
    pub(crate) fn receive(&self, frame: &Frame<'_>) {
        let kind = frame.message_type();
        let mut traffic = self.traffic();
        if kind == Some(MessageType::Status) {
            if let Ok(status) = parse_payload::<Status>(frame.payload) {
                traffic.limit = traffic.limit.min(status.value.max_concurrent.max(1));
            }
        } else if let Some(waiter) = traffic.pending.remove(&*frame.id) {
            // Whoever asked may have given up; the slot is free now in any case.
            let _ = waiter.send(Answer { kind, payload: frame.payload.to_owned() });
            traffic.credit = traffic.credit.saturating_add(1).min(traffic.limit);
        } else {
            tracing::debug!(kind = &*frame.kind, "a machine sent a frame that nobody asked for");
        }
        // The machine's own word counts for more than our count.
        traffic.credit = frame.pending_capacity.unwrap_or(traffic.credit);
        drop(traffic);
        self.room.notify_waiters();
    }

    fn admit(&self, id: &str) -> Option<oneshot::Receiver<Answer>> {
        let mut traffic = self.traffic();
        let in_flight = u32::try_from(traffic.pending.len()).unwrap_or(u32::MAX);
        if in_flight >= traffic.limit || traffic.credit == 0 {
            return None;
        }
        traffic.credit -= 1;
        let (answer, wait) = oneshot::channel();
        traffic.pending.insert(id.to_owned(), answer);
        Some(wait)
    }

    async fn wait_for_room(&self, id: &str, room: Duration) -> Result<oneshot::Receiver<Answer>, SendError> {
        let _place = Waiting::take(self).ok_or(SendError::Busy)?;
        let deadline = Instant::now() + room;
        tokio::select! {
            biased;
            () = self.ended() => Err(SendError::NotSent),
            wait = timeout_at(deadline, self.next_slot(id)) => wait.map_err(|_| SendError::Busy),
        }
    }

    /// Takes a slot, after those who came before.
    async fn next_slot(&self, id: &str) -> oneshot::Receiver<Answer> {
        let _turn = self.turn.lock().await;
        loop {
            let changed = self.room.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(wait) = self.admit(id) {
                return wait;
            }
            changed.await;
        }
    }

    /// Resolves once the connection is over, or about to be.
    async fn ended(&self) {
        // The sender lives as long as `self`.
        let _ = self.ending.subscribe().wait_for(Option::is_some).await;
    }

    async fn exchange(&self, request: Outgoing) -> Result<Answer, SendError> {
        let id = new_id();
        let Ok(text) = encode(request.kind, &id, None, &request.payload) else {
            return Err(SendError::TooLarge);
        };
        if text.len() > MAX_FRAME_BYTES {
            return Err(SendError::TooLarge);
        }
        let wait = self.wait_for_room(&id, request.room).await?;
        let slot = Slot { link: self, id: &id };
        let queued = tokio::select! {
            biased;
            () = self.ended() => false,
            sent = self.outbox.send(text) => sent.is_ok(),
        };
        if !queued {
            return Err(SendError::NotSent);
        }
        // From here on the slot is the machine's to free, whether somebody still waits or not.
        std::mem::forget(slot);
        tokio::select! {
            biased;
            answer = timeout(request.patience, wait) => match answer {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(_)) => Err(SendError::Lost),
                Err(_) => Err(SendError::TimedOut),
            },
            () = self.ended() => Err(SendError::Lost),
        }
    }
}

impl Line for Link {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<Answer, SendError>> {
        Box::pin(self.exchange(request))
    }
}

/// A slot for a request that has not left; given back when dropped, also because the caller went away.
struct Slot<'a> {
    link: &'a Link,
    id: &'a str,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut traffic = self.link.traffic();
        traffic.pending.remove(self.id);
        traffic.credit = traffic.credit.saturating_add(1).min(traffic.limit);
        drop(traffic);
        self.link.room.notify_waiters();
    }
}

/// A place among those who wait; given back when dropped.
struct Waiting<'a>(&'a Link);

impl<'a> Waiting<'a> {
    fn take(link: &'a Link) -> Option<Self> {
        let mut traffic = link.traffic();
        if traffic.waiting >= MAX_WAITING {
            return None;
        }
        traffic.waiting += 1;
        Some(Self(link))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.traffic().waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::store::users::UserId;

    fn link(max_concurrent: u32) -> (Link, mpsc::Receiver<String>) {
        let hello = json!({
            "shim_version": "0.1.0", "protocol_version": "1.1", "machine_id": "m", "display_name": "m",
            "platform": "linux", "arch": "x86_64", "screen_resolution": null, "capabilities": [],
            "allowed_root": null, "local_llm_models": [], "hardware_devices": [], "computer_use_features": [],
            "computer_use_features_coarse": [], "recording_channels": [], "recording_routes": [],
        });
        let facts = Facts {
            connection_id: "c".to_owned(),
            user: UserId("u".to_owned()),
            hello: serde_json::from_value(hello).unwrap(),
            granted: Vec::new(),
            session: None,
            connected_at: 0.0,
        };
        Link::new(facts, FamilyId("f".to_owned()), [0; 32], max_concurrent)
    }

    fn ping() -> Outgoing {
        let payload = to_raw_value(&json!({})).unwrap();
        let (room, patience) = (Duration::from_secs(5), Duration::from_secs(5));
        Outgoing { kind: MessageType::FileStat, payload, room, patience }
    }

    #[tokio::test]
    async fn a_caller_who_leaves_before_the_request_left_gives_the_slot_back() {
        let (link, mut outgoing) = link(1);
        while link.push("{}".to_owned()) {}
        assert!(futures_util::FutureExt::now_or_never(link.send(ping())).is_none(), "the queue is full");
        assert!(link.traffic().pending.is_empty());
        assert_eq!(link.traffic().credit, 1);
        outgoing.close();
        assert_eq!(link.send(ping()).await.unwrap_err(), SendError::NotSent);
    }

    #[tokio::test]
    async fn a_request_that_left_keeps_its_slot_until_it_is_answered() {
        let (link, mut outgoing) = link(1);
        assert!(futures_util::FutureExt::now_or_never(link.send(ping())).is_none());
        assert_eq!(link.traffic().pending.len(), 1, "the machine is still at it");
        let sent = outgoing.recv().await.unwrap();
        let id = Frame::parse(sent.as_bytes()).unwrap().id.into_owned();
        let answer = encode(MessageType::Ack, &id, None, &json!({})).unwrap();
        link.receive(&Frame::parse(answer.as_bytes()).unwrap());
        assert!(link.traffic().pending.is_empty());
        assert_eq!(link.traffic().credit, 1);
    }

    #[tokio::test]
    async fn the_sixty_fifth_who_waits_is_turned_away() {
        let (link, _outgoing) = link(1);
        let mut calls: Vec<_> = (0..=MAX_WAITING).map(|_| link.send(ping())).collect();
        for call in &mut calls {
            assert!(futures_util::FutureExt::now_or_never(call).is_none());
        }
        assert_eq!(link.send(ping()).await.unwrap_err(), SendError::Busy);
    }
}
