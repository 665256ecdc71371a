//! An open connection in service: reading, admission, writing, heartbeats, and the end of everything that is in flight.
//!
//! The reader never waits for a request: it parses the envelope, admits it or refuses it, and reads on, so that PING is
//! answered and a close is seen whatever the requests do. Memory is bounded by the slots: a response keeps its slot until
//! the writer has room for it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::{ErrorCode, ErrorPayload, MessageType, Response};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::limits;

/// How often the contract wants what. Tests shorten them.
#[derive(Debug, Clone, Copy)]
pub struct Timings {
    /// Between WebSocket pings.
    pub ping_every: Duration,
    /// For the pong to come back.
    pub pong_within: Duration,
    /// Between STATUS messages.
    pub status_every: Duration,
    /// A session without a request for this long is stopped.
    pub idle_after: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            ping_every: Duration::from_secs(20),
            pong_within: Duration::from_secs(10),
            status_every: Duration::from_secs(30),
            idle_after: Duration::from_secs(10 * 60),
        }
    }
}

/// What the writer is given.
#[derive(Debug)]
pub(crate) enum Out {
    /// A frame of ours.
    Text(String),
    /// A WebSocket ping.
    Ping,
}

/// The write side of a line, and its slots. Shared by the reader and the requests.
#[derive(Debug)]
pub(crate) struct Line {
    places: limits::Connection,
    ids: Mutex<HashSet<String>>,
    out: mpsc::Sender<Out>,
    /// Ends with the connection; every request has a child of it.
    pub(crate) over: CancellationToken,
}

/// One of the connection's `max_concurrent` places. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    line: Arc<Line>,
    id: String,
    admitted: Option<limits::Admitted>,
}

/// Why a request was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// Every slot is taken.
    Full,
    /// A request of this id is in flight.
    Duplicate,
}

impl Line {
    pub(crate) fn new(
        places: limits::Connection,
        out: mpsc::Sender<Out>,
        over: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self { places, ids: Mutex::default(), out, over })
    }

    pub(crate) fn admit(self: &Arc<Self>, id: &str) -> Result<Slot, NotAdmitted> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.contains(id) {
            return Err(NotAdmitted::Duplicate);
        }
        let admitted = self.places.try_admit().map_err(|_| NotAdmitted::Full)?;
        ids.insert(id.to_owned());
        Ok(Slot { line: self.clone(), id: id.to_owned(), admitted: Some(admitted) })
    }

    pub(crate) fn in_flight(&self) -> u32 {
        number(self.places.in_flight())
    }

    pub(crate) fn max_concurrent(&self) -> u32 {
        number(self.places.max_concurrent())
    }

    pub(crate) fn free(&self) -> u32 {
        number(self.places.pending_capacity())
    }

    /// Queues a frame that takes no slot. Waits for the writer; false when the connection is over.
    pub(crate) async fn send(&self, text: String) -> bool {
        tokio::select! {
            sent = self.out.send(Out::Text(text)) => sent.is_ok(),
            () = self.over.cancelled() => false,
        }
    }

    /// Whether a frame would have to wait for the writer.
    pub(crate) fn is_queue_full(&self) -> bool {
        self.out.capacity() == 0
    }

    /// Queues a ping, unless the writer is busy: then there is traffic anyway.
    pub(crate) fn ping(&self) {
        let _ = self.out.try_send(Out::Ping);
    }

    /// Refuses a request that was not admitted.
    pub(crate) async fn refuse(&self, id: &str, error: ErrorPayload) -> bool {
        match Response::encode(MessageType::Error, id, &error) {
            Ok(response) => self.send(response.with_capacity(self.free())).await,
            Err(error) => {
                warn!(%error, "an error could not be written");
                false
            }
        }
    }

    pub(crate) fn overloaded(&self) -> ErrorPayload {
        let max = self.max_concurrent();
        ErrorPayload::new(
            ErrorCode::ShimOverloaded,
            format!(
                "{max} requests are in flight on this connection, the most it takes; wait for one to end"
            ),
        )
        .with("max_concurrent", max)
    }
}

impl Slot {
    /// Waits for one of the machine's slots, in turn with other sessions; `None` when `stop` came first.
    pub(crate) async fn turn(&self, stop: &CancellationToken) -> Option<limits::Running> {
        self.admitted.as_ref()?.run(stop).await.ok()
    }

    /// Sends the response and gives the slot back just before, so that the caller may use it at once. Returns whether all
    /// slots were taken until then: the contract wants a STATUS after that.
    pub(crate) async fn answer(mut self, response: Response) -> bool {
        let line = self.line.clone();
        let permit = tokio::select! {
            permit = line.out.reserve() => permit,
            () = line.over.cancelled() => return false,
        };
        let (Ok(permit), Some(freed)) = (permit, self.release()) else { return false };
        permit.send(Out::Text(response.with_capacity(number(freed.pending_capacity))));
        freed.was_full
    }

    fn release(&mut self) -> Option<limits::Freed> {
        let admitted = self.admitted.take()?;
        self.line.ids.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        Some(admitted.free())
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Ack, Frame};

    use super::*;

    fn line(max: usize) -> (Arc<Line>, mpsc::Receiver<Out>) {
        let (out, written) = mpsc::channel(2);
        let places = limits::Slots::new(8).session("s", max);
        (Line::new(places, out, CancellationToken::new()), written)
    }

    fn ack(id: &str) -> Response {
        Response::encode(MessageType::Ack, id, &Ack::ok()).unwrap()
    }

    fn capacity(out: Option<Out>) -> Option<u32> {
        match out {
            Some(Out::Text(text)) => Frame::parse(text.as_bytes()).unwrap().pending_capacity,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn slots_are_counted_and_the_capacity_is_what_is_left_after_the_frame() {
        let (line, mut written) = line(2);
        let (a, b) = (line.admit("a").unwrap(), line.admit("b").unwrap());
        assert_eq!(line.admit("c").unwrap_err(), NotAdmitted::Full);
        assert!(line.refuse("c", line.overloaded()).await);
        assert_eq!(capacity(written.recv().await), Some(0));
        assert!(a.answer(ack("a")).await, "from full to one free");
        assert_eq!(capacity(written.recv().await), Some(1));
        assert!(!b.answer(ack("b")).await);
        assert_eq!(capacity(written.recv().await), Some(2));
    }

    #[tokio::test]
    async fn a_duplicate_in_flight_is_told_apart() {
        let (line, _written) = line(2);
        let slot = line.admit("a").unwrap();
        assert_eq!(line.admit("a").unwrap_err(), NotAdmitted::Duplicate);
        drop(slot);
        assert!(line.admit("a").is_ok(), "an id may be used again");
    }

    #[tokio::test]
    async fn a_response_waits_with_its_slot_while_the_writer_is_stuck() {
        let (line, mut written) = line(3);
        let slots: Vec<_> = ["a", "b", "c"].iter().map(|id| line.admit(id).unwrap()).collect();
        let answers: Vec<_> =
            slots.into_iter().zip(["a", "b", "c"]).map(|(s, id)| tokio::spawn(s.answer(ack(id)))).collect();
        while line.in_flight() > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(line.in_flight(), 1, "two frames are queued, the third keeps its slot");
        for _ in 0..3 {
            written.recv().await;
        }
        for answer in answers {
            answer.await.unwrap();
        }
        assert_eq!(line.in_flight(), 0);
    }

    #[tokio::test]
    async fn nothing_waits_on_a_connection_that_is_over() {
        let (line, written) = line(3);
        let slots: Vec<_> = ["a", "b", "c"].iter().map(|id| line.admit(id).unwrap()).collect();
        let answers: Vec<_> = slots.into_iter().map(|s| tokio::spawn(s.answer(ack("x")))).collect();
        line.over.cancel();
        for answer in answers {
            answer.await.unwrap();
        }
        drop(written);
        assert!(!line.send(String::new()).await);
    }
}
