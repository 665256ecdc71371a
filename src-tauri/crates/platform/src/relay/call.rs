//! One request on one connection: from a typed payload to a checked answer.

use std::time::Duration;

use protocol::{Capability, ErrorCode, ErrorPayload, MAX_FRAME_BYTES, MessageType, Request, parse_payload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;

use super::{Checked, Line, Outgoing, SendError};

/// Why a request has no good answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The machine is not connected.
    #[error("the machine is not connected; start Deskhand there, or connect it")]
    Offline,
    /// The connection ended before the request left: it did not run.
    #[error("the machine lost its connection before the request was sent; it did not run")]
    NotSent,
    /// The connection ended after the request left, or the answer did not come in time.
    #[error("the machine did not confirm; look whether it happened before repeating it")]
    Unconfirmed {
        /// A write of a file's content.
        write: bool,
    },
    /// As before, for a request that changes nothing.
    #[error("the machine did not answer in time; try again")]
    NoAnswer,
    /// All slots of the machine stayed taken.
    #[error("the machine is busy; try again in a moment")]
    Busy,
    /// The request is over the frame limit.
    #[error("the request is over {} MiB; send less at a time", MAX_FRAME_BYTES >> 20)]
    TooLarge,
    /// The machine did not offer what the request needs.
    #[error("the machine has '{0}' switched off; it is switched on there, not here")]
    NotGranted(Capability),
    /// The machine said no.
    #[error("{}", .0.message)]
    Refused(ErrorPayload),
    /// The answer breaks the contract.
    #[error("the machine's answer breaks the contract: {0}")]
    Misbehaved(String),
}

impl CallError {
    /// The code that programs and agents see.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            CallError::Offline => "MACHINE_OFFLINE",
            CallError::NotSent => "MACHINE_LOST",
            CallError::Unconfirmed { write: true } => "WRITE_UNCONFIRMED",
            CallError::Unconfirmed { write: false } => "OP_UNCONFIRMED",
            CallError::NoAnswer => "NO_ANSWER",
            CallError::Busy => "MACHINE_BUSY",
            CallError::TooLarge => "REQUEST_TOO_LARGE",
            CallError::NotGranted(_) => "CAPABILITY_NOT_GRANTED",
            CallError::Refused(error) => error.code.as_str(),
            CallError::Misbehaved(_) => "MACHINE_MISBEHAVED",
        }
    }
}

/// What [`once`] says on top of [`CallError`].
pub(crate) enum Outcome<A> {
    Done(A),
    /// The connection ended; whether the request had left.
    Gone {
        sent: bool,
    },
    Failed(CallError),
}

/// How long a request may wait for a slot, and for its answer after that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) room: Duration,
    pub(crate) answer: Duration,
}

/// Sends a request on this connection and no other, and checks the answer.
pub(crate) async fn call<A>(
    line: &dyn Line,
    kind: MessageType,
    payload: &impl Serialize,
    patience: Patience,
) -> Result<A, CallError>
where
    A: DeserializeOwned + Checked,
{
    match once(line, kind, payload, patience).await {
        Outcome::Done(answer) => Ok(answer),
        Outcome::Gone { sent: false } => Err(CallError::NotSent),
        Outcome::Gone { sent: true } => Err(unconfirmed(kind)),
        Outcome::Failed(error) => Err(error),
    }
}

/// What to say when a request left and nothing came back.
pub(crate) fn unconfirmed(kind: MessageType) -> CallError {
    match kind.request() {
        Some(request) if request.idempotent => CallError::NoAnswer,
        Some(_) | None => CallError::Unconfirmed { write: kind == MessageType::FileWrite },
    }
}

/// As [`call`], telling a lost connection apart, for those who can go on with the next one.
pub(crate) async fn once<A>(
    line: &dyn Line,
    kind: MessageType,
    payload: &impl Serialize,
    patience: Patience,
) -> Outcome<A>
where
    A: DeserializeOwned + Checked,
{
    let Some(request) = kind.request() else {
        return Outcome::Failed(CallError::Misbehaved(format!("{kind} is no request")));
    };
    if !line.facts().granted.contains(&request.capability) {
        return Outcome::Failed(CallError::NotGranted(request.capability));
    }
    let Ok(payload) = to_raw_value(payload) else { return Outcome::Failed(CallError::TooLarge) };
    let deadline = tokio::time::Instant::now() + patience.room;
    loop {
        let room = deadline.saturating_duration_since(tokio::time::Instant::now());
        let outgoing = Outgoing { kind, payload: payload.clone(), room, patience: patience.answer };
        let answer = match line.send(outgoing).await {
            Ok(answer) => read(request, answer.kind, &answer.payload),
            Err(SendError::NotSent) => return Outcome::Gone { sent: false },
            Err(SendError::Lost) => return Outcome::Gone { sent: true },
            Err(SendError::TimedOut) => return Outcome::Failed(unconfirmed(kind)),
            Err(SendError::Busy) => return Outcome::Failed(CallError::Busy),
            Err(SendError::TooLarge) => return Outcome::Failed(CallError::TooLarge),
        };
        match answer {
            Ok(answer) => return Outcome::Done(answer),
            // Turned away for want of a slot, so it did not run; its frame says that there is none now.
            Err(CallError::Refused(error)) if is_full(&error) && !room.is_zero() => {}
            Err(error) => return Outcome::Failed(error),
        }
    }
}

/// All slots are taken, in contrast to paused or too often.
fn is_full(error: &ErrorPayload) -> bool {
    let says = |key| error.details.as_ref().is_some_and(|details| details.contains_key(key));
    error.code == ErrorCode::ShimOverloaded
        && says("max_concurrent")
        && !says("reason")
        && !says("retry_after_seconds")
}

fn read<A>(
    request: &Request,
    kind: Option<MessageType>,
    payload: &serde_json::value::RawValue,
) -> Result<A, CallError>
where
    A: DeserializeOwned + Checked,
{
    if kind == Some(MessageType::Error) {
        return Err(match parse_payload::<ErrorPayload>(payload) {
            Ok(error) => CallError::Refused(error.value),
            Err(error) => CallError::Misbehaved(format!("ERROR, field '{}'", error.field)),
        });
    }
    if kind != Some(request.response) {
        return Err(CallError::Misbehaved(format!(
            "{} was not answered by {}",
            request.kind, request.response
        )));
    }
    let answer = parse_payload::<A>(payload)
        .map_err(|error| CallError::Misbehaved(format!("{}, field '{}'", request.response, error.field)))?;
    answer
        .value
        .check()
        .map_err(|field| CallError::Misbehaved(format!("{}, field '{field}'", request.response)))?;
    Ok(answer.value)
}
