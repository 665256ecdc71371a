//! The loop of an open connection.

use std::future::Future;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::SplitStream;
use protocol::{
    ErrorCode, ErrorPayload, Frame, FrameError, MessageType, SessionRevoked, Version, encode, parse_payload,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::alarm::Alarm;
use super::dial::Socket;
use super::handshake::{close_parts, close_with};
use super::line::{Line, NotAdmitted, Slot, Timings};
use super::writer::write;
use crate::limits;

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// By the platform's close frame, or without one (`None`).
    Closed { code: Option<u16>, reason: String },
    /// By SESSION_REVOKED.
    Revoked { reason: String },
    /// By us: disconnect, detach, kill, exit.
    Stopped,
    /// By us: no request for too long.
    Idle,
}

/// A request whose envelope was read and that was admitted.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) id: String,
    pub(crate) kind: MessageType,
    bytes: Bytes,
    payload: Range<usize>,
}

impl Incoming {
    /// The payload's JSON.
    pub(crate) fn payload(&self) -> &str {
        // The envelope's parser has seen it as UTF-8; an empty text then fails to parse, and is answered.
        std::str::from_utf8(&self.bytes[self.payload.clone()]).unwrap_or_default()
    }
}

/// What serves the requests of one connection.
pub(crate) trait Service: Send + Sync + 'static {
    /// Answers an admitted request. Called at once, polled on a task of its own; for the first time it may be polled on
    /// another.
    fn serve(
        self: Arc<Self>,
        line: Arc<Line>,
        slot: Slot,
        incoming: Incoming,
        stop: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Whether a request of this type, if it is not long, is worth a first look before it becomes a task: one that waits
    /// for nothing is then over. Until it first waits it holds up the reading of the connection.
    fn is_often_over_at_once(&self, _kind: MessageType) -> bool {
        false
    }

    /// A request that was not admitted is audited.
    fn refused(&self, id: &str, kind: MessageType, error: &ErrorPayload);

    /// The payload of STATUS.
    fn status(&self, line: &Line) -> protocol::Status;

    /// Since when no request came; `None` where a connection does not idle out.
    fn idle_since(&self) -> Option<Instant>;
}

/// How long requests in flight have to end after the connection has. Killing their processes takes milliseconds; a system
/// call that hangs is left behind, and its result is dropped.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest frame, in bytes, whose request is looked at on the reader's task. Parsing one of megabytes takes a while.
const SHORT: usize = 16 << 10;

/// Frames that wait for the writer, besides those that keep their slots.
pub(super) const QUEUED_FRAMES: usize = 2;

/// Serves until the connection ends or `stop` says so. When it returns, nothing of the connection's requests runs.
pub(crate) async fn serve(
    socket: Socket,
    service: Arc<dyn Service>,
    places: limits::Connection,
    negotiated: Version,
    timings: Timings,
    stop: &CancellationToken,
) -> End {
    let (sink, stream) = socket.split();
    let (out, queue) = mpsc::channel(QUEUED_FRAMES);
    let (pinged, ping_written) = watch::channel(None);
    let over = CancellationToken::new();
    let line = Line::new(places, out, over.clone());
    let mut reader =
        Reader { stream, service, line, negotiated, timings, ping_written, requests: JoinSet::new(), odd: 0 };
    // On the same task: what comes in wakes both ends of a socket, and a second task costs the wake-up of a second thread.
    let mut writer = pin!(write(sink, queue, pinged, over.clone()));
    let mut written = None;
    let end = {
        let mut reading = pin!(reader.run(stop));
        loop {
            tokio::select! {
                biased; // what the reader has answered goes out at once
                end = &mut reading => break end,
                sink = &mut writer, if written.is_none() => written = Some(sink),
            }
        }
    };
    over.cancel();
    let drained = async { while reader.requests.join_next().await.is_some() {} };
    if timeout(DRAIN_TIMEOUT, drained).await.is_err() {
        warn!("a request did not end with its connection; its result is dropped");
    }
    let Reader { stream, line, .. } = reader;
    drop(line);
    let sink = match written {
        Some(sink) => sink,
        None => writer.await,
    };
    if let Some(sink) = sink
        && let Ok(mut socket) = sink.reunite(stream)
    {
        let close = match &end {
            End::Revoked { .. } => Some((protocol::close::REVOKED, "revoked".to_owned())),
            End::Stopped | End::Idle => Some((1000, String::new())),
            End::Closed { .. } => None,
        };
        match close {
            Some((code, reason)) => close_with(&mut socket, code, reason).await,
            None => drop(timeout(Duration::from_secs(1), socket.close(None)).await),
        }
    }
    end
}

/// A warning for the 1st, 2nd, 4th, 8th … odd frame of a connection: a platform that sends nothing else must not fill the disk
/// with what is said about it.
macro_rules! log_some {
    ($count:ident, $($rest:tt)*) => {
        if $count.is_power_of_two() {
            warn!($count, $($rest)*);
        }
    };
}

struct Reader {
    stream: SplitStream<Socket>,
    service: Arc<dyn Service>,
    line: Arc<Line>,
    negotiated: Version,
    timings: Timings,
    ping_written: watch::Receiver<Option<Instant>>,
    requests: JoinSet<()>,
    odd: u64,
}

impl Reader {
    async fn run(&mut self, stop: &CancellationToken) -> End {
        let start = Instant::now();
        let (mut next_ping, mut next_status) =
            (start + self.timings.ping_every, start + self.timings.status_every);
        let mut pong_due: Option<Instant> = None;
        let far = start + Duration::from_secs(u32::MAX.into());
        let (mut heartbeat, mut patience) = (Alarm::at(next_ping), Alarm::at(far));
        loop {
            // While a request runs there is no idle time; its end wakes this loop.
            let idle_since = self.service.idle_since().filter(|_| self.requests.is_empty());
            let idle_at = idle_since.map(|since| since + self.timings.idle_after);
            heartbeat.no_later_than(next_ping.min(next_status));
            patience.no_later_than(pong_due.unwrap_or(far).min(idle_at.unwrap_or(far)));
            tokio::select! {
                biased;
                () = stop.cancelled() => return End::Stopped,
                changed = self.ping_written.changed() => match changed {
                    Ok(()) => {
                        let written = *self.ping_written.borrow_and_update();
                        // A later ping does not give the peer more time for an earlier one.
                        pong_due = pong_due.or(written.map(|at| at + self.timings.pong_within));
                    }

                    Err(_) => return End::Closed { code: None, reason: "writing failed".to_owned() },
                },
                now = heartbeat.rings() => {
                    if now >= next_ping {
                        next_ping = now + self.timings.ping_every;
                        self.line.ping();
                    }
                    if now >= next_status {
                        next_status = now + self.timings.status_every;
                        send_status(&*self.service, &self.line).await;
                    }
                }
                message = self.stream.next() => {
                    pong_due = None; // whatever comes shows that the peer lives
                    match message {
                        Some(Ok(message)) => if let Some(end) = self.message(message).await { return end },
                        Some(Err(error)) => return End::Closed { code: None, reason: error.to_string() },
                        None => return End::Closed { code: None, reason: String::new() },
                    }
                }
                now = patience.rings() => {
                    if pong_due.is_some_and(|due| now >= due) {
                        return End::Closed { code: None, reason: "no pong: the platform is gone".to_owned() };
                    }
                    if idle_at.is_some_and(|at| now >= at) {
                        return End::Idle;
                    }
                }
                Some(_) = self.requests.join_next(), if !self.requests.is_empty() => {}
            }
        }
    }

    /// Counts a frame that is worth a line in the diagnostics.
    fn odd_frame(&mut self) -> u64 {
        self.odd += 1;
        self.odd
    }

    async fn message(&mut self, message: Message) -> Option<End> {
        match message {
            Message::Text(text) => self.frame(text.into()).await,
            Message::Binary(bytes) => self.frame(bytes).await,
            Message::Close(frame) => {
                let (code, reason) = close_parts(frame);
                Some(End::Closed { code, reason })
            }
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => None,
        }
    }

    async fn frame(&mut self, bytes: Bytes) -> Option<End> {
        let frame = match Frame::parse(&bytes) {
            Ok(frame) => frame,
            Err(FrameError::Unanswerable(problem)) => {
                let count = self.odd_frame();
                log_some!(count, %problem, "dropped a frame that nobody can be told about");
                return None;
            }
            Err(error) => {
                let answer = ErrorPayload::new(ErrorCode::InternalError, error.to_string());
                let (id, answer) = match error {
                    FrameError::Malformed { id, field, .. } => (id, answer.with("field", field)),
                    FrameError::EndlessId { begins } => {
                        (protocol::new_id(), answer.with("field", "id").with("id_begins", begins))
                    }
                    FrameError::Unanswerable(_) => return None,
                };
                self.line.refuse(&id, answer).await;
                return None;
            }
        };
        if let Some(text) = &frame.unreadable_version {
            let count = self.odd_frame();
            log_some!(count, version = %text, "a frame's version is unreadable; taken as the negotiated one");
        }
        if let Some(version) = frame.version.filter(|v| v.major != self.negotiated.major) {
            let count = self.odd_frame();
            log_some!(count, %version, "dropped a frame of another major version");
            return None;
        }
        let id = frame.id.into_owned();
        let Some(kind) = MessageType::named(&frame.kind) else {
            let shown: String = frame.kind.chars().take(64).collect();
            let error = ErrorPayload::new(
                ErrorCode::FeatureNotSupported,
                format!("this program does not know the message type '{shown}'; an update may"),
            );
            self.line.refuse(&id, error.with("reason", "unknown message type")).await;
            return None;
        };
        match kind {
            MessageType::Ping => {
                if let Ok(pong) = encode(MessageType::Pong, &id, None, &serde_json::json!({})) {
                    self.line.send(pong).await;
                }
                None
            }
            MessageType::SessionRevoked => {
                let reason = parse_payload::<SessionRevoked>(frame.payload).map(|p| p.value.reason);
                Some(End::Revoked { reason: reason.unwrap_or_else(|_| "unknown".to_owned()) })
            }
            kind if kind.request().is_some() => {
                let payload = range_within(&bytes, frame.payload.get());
                self.request(id, kind, bytes, payload).await;
                None
            }
            kind => {
                debug!(%kind, "ignored a message that asks for nothing");
                None
            }
        }
    }

    async fn request(&mut self, id: String, kind: MessageType, bytes: Bytes, payload: Option<Range<usize>>) {
        match self.line.admit(&id) {
            Ok(slot) => {
                let (bytes, payload) = match payload {
                    Some(range) => (bytes, range),
                    None => (Bytes::from_static(b"{}"), 0..2), // an absent payload
                };
                let incoming = Incoming { id, kind, bytes, payload };
                let stop = self.line.over.child_token();
                let look = incoming.bytes.len() <= SHORT && self.service.is_often_over_at_once(kind);
                if look && self.line.is_queue_full() {
                    // Else the answer would have to wait, and for that become a task.
                    tokio::task::yield_now().await;
                }
                let mut serving = self.service.clone().serve(self.line.clone(), slot, incoming, stop);
                if !look || !is_over_at_once(&mut serving).await {
                    self.requests.spawn(serving);
                }
            }
            Err(NotAdmitted::Full) => {
                let error = self.line.overloaded();
                self.service.refused(&id, kind, &error);
                self.line.refuse(&id, error).await;
            }
            Err(NotAdmitted::Duplicate) => {
                let count = self.odd_frame();
                log_some!(count, %kind, "refused a second request with the id of one in flight");
                let error = duplicate(&id);
                self.service.refused(&id, kind, &error);
                // Under the id itself it would pass for the first one's answer.
                self.line.refuse(&protocol::new_id(), error).await;
            }
        }
    }
}

/// The answer to a second request with the id of one in flight. The contract answers under the request's id, and that
/// answer is the first one's alone; so this goes out under an id of our own, and says which it means.
fn duplicate(id: &str) -> ErrorPayload {
    ErrorPayload::new(
        ErrorCode::InternalError,
        "a request with this id is in flight already; this second one was not carried out: give each its own id",
    )
    .with("reason", "duplicate_id")
    .with("duplicate_of", id)
}

/// Looks once whether a request is over without waiting. One that fails is over as well, as it would be on its own task.
async fn is_over_at_once(serving: &mut Pin<Box<dyn Future<Output = ()> + Send>>) -> bool {
    std::future::poll_fn(|context| {
        let looked = catch_unwind(AssertUnwindSafe(|| serving.as_mut().poll(context).is_ready()));
        Poll::Ready(looked.unwrap_or(true))
    })
    .await
}

/// Sends STATUS.
pub(crate) async fn send_status(service: &dyn Service, line: &Line) {
    let status = service.status(line);
    match encode(MessageType::Status, &protocol::new_id(), Some(line.free()), &status) {
        Ok(text) => drop(line.send(text).await),
        Err(error) => warn!(%error, "STATUS could not be written"),
    }
}

/// Where `part` lies in `whole`, when it is a part of it.
fn range_within(whole: &[u8], part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let range = start..start.checked_add(part.len())?;
    (range.end <= whole.len()).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_that_waits_goes_on_as_a_task_and_one_that_does_not_is_over() {
        let (go, wait) = tokio::sync::oneshot::channel::<u8>();
        let (done, seen) = tokio::sync::oneshot::channel();
        let mut waits: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            let told = wait.await.unwrap();
            done.send(told).unwrap();
        });
        assert!(!is_over_at_once(&mut waits).await);
        let task = tokio::spawn(waits);
        go.send(7).unwrap();
        assert_eq!(seen.await.unwrap(), 7);
        task.await.unwrap();
        let mut does_not: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async {});
        assert!(is_over_at_once(&mut does_not).await);
    }

    #[tokio::test]
    async fn a_request_that_fails_at_once_does_not_take_its_connection_with_it() {
        let mut fails: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async { panic!("a test") });
        assert!(is_over_at_once(&mut fails).await);
    }
}
