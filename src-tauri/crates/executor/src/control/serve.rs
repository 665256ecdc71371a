//! The five requests of the control connection, and their steps: granted, paused, parsed, done, logged.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use protocol::{
    Ack, ActivateSession, AttachSession, Capability, Channel, DetachSession, DirectoryListRequest, ErrorCode,
    ErrorPayload, MessageType, Response, RestoreSession, Status,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::browse::Browses;
use super::sessions::browse_error;
use crate::connection::{Incoming, Line, Service, Slot, send_status};
use crate::dispatch::{Details, Record, details, elapsed_ms, encode_bounded, encode_error, errors};
use crate::events::Event;
use crate::machine::Machine;

/// One control connection. Its folder references die with it.
pub(crate) struct ControlConnection {
    machine: Arc<Machine>,
    capabilities: Vec<Capability>,
    browses: Arc<Browses>,
}

/// What a request answers, what the log says of it, and under which name.
struct Answer {
    result: Result<Encode, ErrorPayload>,
    log: Details,
    op: Option<&'static str>,
}

/// Writes the response to an id.
type Encode = Box<dyn FnOnce(&str) -> Option<Response> + Send>;

fn encode<T: Serialize + Send + 'static>(kind: MessageType, payload: T) -> Encode {
    Box::new(move |id| encode_bounded(kind, id, &payload))
}

fn failed(error: ErrorPayload) -> Answer {
    Answer { result: Err(error), log: Map::new(), op: None }
}

impl ControlConnection {
    pub(crate) fn new(machine: Arc<Machine>, capabilities: Vec<Capability>) -> Self {
        Self { machine, capabilities, browses: Arc::default() }
    }

    async fn answer(&self, incoming: &Incoming) -> Answer {
        if let Err(error) = self.admit(incoming.kind) {
            return failed(error);
        }
        match incoming.kind {
            MessageType::DirectoryListRequest => self.list(incoming).await,
            MessageType::AttachSession => match self.parse::<AttachSession>(incoming) {
                Err(error) => failed(error),
                Ok(request) => {
                    let (result, log) =
                        self.machine.sessions.attach(&self.machine, &self.browses, request).await;
                    let op = result.is_ok().then_some("SESSION_ALLOWED_ROOT_SET");
                    Answer { result: result.map(|r| encode(MessageType::SessionAttached, r)), log, op }
                }
            },
            MessageType::ActivateSession => match self.parse::<ActivateSession>(incoming) {
                Err(error) => failed(error),
                Ok(request) => {
                    let (result, log) = self.machine.sessions.activate(&self.machine, request).await;
                    Answer { result: result.map(|r| encode(MessageType::SessionActivated, r)), log, op: None }
                }
            },
            MessageType::RestoreSession => match self.parse::<RestoreSession>(incoming) {
                Err(error) => failed(error),
                Ok(request) => {
                    let (result, log) = self.machine.sessions.restore(&self.machine, request).await;
                    Answer { result: result.map(|r| encode(MessageType::SessionRestored, r)), log, op: None }
                }
            },
            MessageType::DetachSession => match self.parse::<DetachSession>(incoming) {
                Err(error) => failed(error),
                Ok(request) => {
                    let log = self.machine.sessions.detach(&self.machine, request).await;
                    Answer { result: Ok(encode(MessageType::Ack, Ack::ok())), log, op: None }
                }
            },
            other => failed(wrong_channel(other, "control")),
        }
    }

    fn admit(&self, kind: MessageType) -> Result<(), ErrorPayload> {
        let Some(request) = kind.request().filter(|r| r.channel == Channel::Control) else {
            return Err(wrong_channel(kind, "control"));
        };
        if !self.capabilities.contains(&request.capability) {
            return Err(errors::not_granted(request.capability, &self.capabilities));
        }
        self.machine.not_paused()
    }

    fn parse<T: DeserializeOwned>(&self, incoming: &Incoming) -> Result<T, ErrorPayload> {
        let parsed = protocol::parse_payload_text::<T>(incoming.payload()).map_err(errors::bad_payload)?;
        self.machine.note_unknown_keys(incoming.kind, &parsed.unknown_keys);
        Ok(parsed.value)
    }

    async fn list(&self, incoming: &Incoming) -> Answer {
        let request = match self.parse::<DirectoryListRequest>(incoming) {
            Ok(request) => request,
            Err(error) => return failed(error),
        };
        let log = details(json!({"browse_id": request.browse_id}));
        let (browses, browsable) = (self.browses.clone(), self.machine.browsable());
        let listing = tokio::task::spawn_blocking(move || {
            browses.list(&browsable, &request, std::time::Instant::now())
        })
        .await;
        match listing {
            Err(_) => Answer {
                log,
                ..failed(ErrorPayload::new(ErrorCode::InternalError, "the listing failed; try again"))
            },
            Ok(Err(error)) => Answer { log, ..failed(browse_error(&error)) },
            Ok(Ok(listed)) => {
                let log = details(json!({
                    "browse_id": listed.response.browse_id,
                    "path": listed.path.map(|p| p.to_string_lossy().into_owned()),
                    "entries_returned": listed.response.entries.len(),
                    "truncated": listed.response.truncated,
                }));
                Answer {
                    result: Ok(encode(MessageType::DirectoryListResponse, listed.response)),
                    log,
                    op: None,
                }
            }
        }
    }

    async fn run(self: Arc<Self>, line: Arc<Line>, slot: Slot, incoming: Incoming, stop: CancellationToken) {
        let started = Instant::now();
        let machine = &self.machine;
        let op = incoming.kind.to_string();
        machine.emit(|| Event::RequestStarted {
            session_id: None,
            request_id: incoming.id.clone(),
            op: op.clone(),
        });
        let (response, error_code) = match machine.reserve() {
            Err(error) => (encode_error(&incoming.id, &error), Some(error.code)),
            Ok(permit) => {
                let answer = self.answer(&incoming).await;
                let mut record = Record::new(incoming.kind, session_of(&answer.log), &incoming.id, started);
                record.details(answer.log);
                let entry = match &answer.result {
                    Ok(_) => record.named(answer.op).succeeded(None, Map::new()),
                    Err(error) => record.failed(error, stop.is_cancelled()),
                };
                match machine.write(permit, entry).and(answer.result) {
                    Ok(encode) => (encode(&incoming.id), None),
                    Err(error) => (encode_error(&incoming.id, &error), Some(error.code)),
                }
            }
        };
        machine.emit(|| Event::RequestFinished {
            session_id: None,
            request_id: incoming.id.clone(),
            op,
            error_code: error_code.map(|code| code.as_str().to_owned()),
            duration_ms: elapsed_ms(started),
        });
        if let Some(response) = response
            && slot.answer(response).await
        {
            send_status(&*self, &line).await;
        }
    }
}

/// The session that a control request is about stands in its details.
fn session_of(log: &Details) -> Option<&str> {
    log.get("session_id").and_then(serde_json::Value::as_str)
}

/// A request on the connection that does not serve it.
pub(crate) fn wrong_channel(kind: MessageType, channel: &str) -> ErrorPayload {
    ErrorPayload::new(
        ErrorCode::FeatureNotSupported,
        format!("{kind} is not served on the {channel} connection; send it on the other one"),
    )
    .with("reason", "wrong connection")
}

impl Service for ControlConnection {
    fn serve(
        self: Arc<Self>,
        line: Arc<Line>,
        slot: Slot,
        incoming: Incoming,
        stop: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.run(line, slot, incoming, stop))
    }

    fn refused(&self, id: &str, kind: MessageType, error: &ErrorPayload) {
        self.machine.record_refused(None, id, kind, error);
    }

    fn status(&self, line: &Line) -> Status {
        self.machine.status_of(line)
    }

    fn idle_since(&self) -> Option<Instant> {
        None
    }
}
