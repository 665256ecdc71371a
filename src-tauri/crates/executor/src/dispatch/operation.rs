//! The steps of every request on a session, in one place: granted? paused? ask, run, log, answer. A capability supplies an
//! [`Operation`]; it cannot leave a step out, because it is never called before them and never answers by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use protocol::{ErrorCode, ErrorPayload, MessageType, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::errors;
use super::record::Record;
use crate::connection::{Incoming, Line, Slot, send_status};
use crate::consent::{self, Approved, Scope};
use crate::events::Event;
use crate::limits::{Rate, RetryAfter};
use crate::machine::{Machine, cancelled};
use crate::session::{DataConnection, Session};

/// Details of an audit record.
pub(crate) type Details = Map<String, Value>;

/// The details that a `json!({…})` literal stands for.
pub(crate) fn details(value: Value) -> Details {
    match value {
        Value::Object(details) => details,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// What one request runs with.
pub(crate) struct Call {
    pub(crate) connection: Arc<DataConnection>,
    pub(crate) request_id: String,
    pub(crate) stop: CancellationToken,
}

impl Call {
    pub(crate) fn session(&self) -> &Session {
        &self.connection.session
    }

    /// Whether its connection, its session or everything was told to end. The kill switch sets the last of these before it kills,
    /// so that what it kills does not look like an answer, and nothing starts behind its back.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.stop.is_cancelled() || self.session().stop.is_cancelled()
    }

    pub(crate) fn limits(&self) -> protocol::Limits {
        self.connection.limits
    }
}

/// What the person must agree to before it runs.
pub(crate) struct Asks {
    pub(crate) capability: consent::Capability,
    pub(crate) view: consent::ActionView,
    pub(crate) program: consent::ProgramMatch,
}

/// One of a rate. Dropped before it is kept, it is given back: a refused request does not count.
#[must_use = "what is carried out keeps it"]
pub(crate) struct Counted {
    machine: Arc<Machine>,
    rate: fn(&Machine) -> &Rate,
    taken: Option<std::time::Instant>,
}

impl Counted {
    /// Takes one.
    ///
    /// # Errors
    ///
    /// When there will be one.
    pub(crate) fn take(call: &Call, rate: fn(&Machine) -> &Rate) -> Result<Self, RetryAfter> {
        let machine = call.session().machine.clone();
        let now = std::time::Instant::now();
        rate(&machine).try_acquire(now)?;
        Ok(Self { machine, rate, taken: Some(now) })
    }

    fn keep(mut self) {
        self.taken = None;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(taken) = self.taken {
            (self.rate)(&self.machine).give_back(taken);
        }
    }
}

/// How an operation ended.
pub(crate) struct Done<R> {
    pub(crate) result: Result<R, ErrorPayload>,
    /// Details that are known only now.
    pub(crate) details: Details,
    /// Further fields of the record's result.
    pub(crate) extra: Details,
    pub(crate) exit_code: Option<i32>,
}

impl<R> From<Result<R, ErrorPayload>> for Done<R> {
    fn from(result: Result<R, ErrorPayload>) -> Self {
        Done { result, details: Map::new(), extra: Map::new(), exit_code: None }
    }
}

/// An action that went through the consent step and is about to happen. It comes from the consent step's approval and from
/// nowhere else, and an operation cannot run without: what runs is the very value that was approved.
pub(crate) struct ApprovedAction<P> {
    params: P,
    program_of_rule: Option<String>,
}

impl<P> ApprovedAction<P> {
    /// Uses up the approval, unless the kill switch has ended it.
    fn begin(approved: Approved<P>) -> Result<Self, ErrorPayload> {
        let by_rule = approved.facts().scope == Some(Scope::Rule);
        let program =
            approved.program().filter(|_| by_rule).and_then(|path| path.to_str()).map(str::to_owned);
        let params = approved.take().map_err(|_| cancelled())?;
        Ok(Self { params, program_of_rule: program })
    }

    /// The file that a rule allowed, when it was a rule.
    pub(crate) fn program_of_rule(&self) -> Option<String> {
        self.program_of_rule.clone()
    }

    pub(crate) fn into_params(self) -> P {
        self.params
    }
}

/// One request type of a session.
pub(crate) trait Operation: 'static {
    type Params: DeserializeOwned + Serialize + Send + Sync + 'static;
    type Response: Serialize + Send;
    const KIND: MessageType;
    /// The log's name of its start, for what could end this program before its own record is written.
    const STARTS: Option<&'static str> = None;

    /// What the log says of the request: sizes and shapes, never contents.
    fn details(params: &Self::Params, call: &Call) -> Details;

    /// What is asked for.
    ///
    /// # Errors
    ///
    /// When the request makes no sense; it is then not shown to anybody.
    fn asks(params: &Self::Params, call: &Call) -> Result<Asks, ErrorPayload>;

    /// Takes one of a rate that is the machine's, before anybody is asked: a flood must not bury the person in prompts.
    /// What is then not carried out gives it back.
    ///
    /// # Errors
    ///
    /// When the rate is used up.
    fn count(_call: &Call) -> Result<Option<Counted>, ErrorPayload> {
        Ok(None)
    }

    /// Limits that are the machine's, looked at once the action is approved.
    ///
    /// # Errors
    ///
    /// When one is met.
    fn admit(_call: &Call) -> Result<Box<dyn Send>, ErrorPayload> {
        Ok(Box::new(()))
    }

    /// Whether [`Operation::at_once`] ever answers.
    const AT_ONCE: bool = false;

    /// Does it, on a thread that must not wait for anything, if that can be done; else does nothing.
    fn at_once(_params: &Self::Params, _call: &Call) -> Option<Self::Response> {
        None
    }

    /// About how many bytes the answer has as JSON, where that is worth knowing beforehand; else 0.
    fn json_bytes(_response: &Self::Response) -> usize {
        0
    }

    /// Called with the bytes of an answer once it is written as JSON, on the thread of [`Operation::run`].
    fn answered(_bytes: usize) {}

    /// Does it. Blocks; looks at `call.stop` where it takes long.
    fn run(action: ApprovedAction<Self::Params>, call: &Call) -> Done<Self::Response>;
}

/// Serves one admitted request from its payload to its answer.
pub(crate) async fn serve<O: Operation>(
    connection: Arc<DataConnection>,
    line: Arc<Line>,
    slot: Slot,
    incoming: Incoming,
    stop: CancellationToken,
) {
    let machine = connection.session.machine.clone();
    let started = Instant::now();
    connection.session.touch();
    let call = Call { connection: connection.clone(), request_id: incoming.id.clone(), stop };
    let session_id = connection.session.id.to_string();
    machine.emit(|| Event::RequestStarted {
        session_id: Some(session_id.clone()),
        request_id: incoming.id.clone(),
        op: O::KIND.to_string(),
    });
    let mut record = Record::new(O::KIND, Some(&session_id), &incoming.id, started);
    let (response, error_code) = match machine.reserve() {
        Err(error) => (encode_error(&incoming.id, &error), Some(error.code.as_str().to_owned())),
        Ok(permit) => match prepare::<O>(&call, &slot, incoming.payload(), &mut record).await {
            Err(error) => {
                let error =
                    machine.write(permit, record.failed(&error, call.is_cancelled())).err().unwrap_or(error);
                (encode_error(&incoming.id, &error), Some(error.code.as_str().to_owned()))
            }
            Ok((approved, held)) => match at_once::<O>(approved, &call) {
                Ok(response) => conclude::<O>(Ok(response).into(), &call, &machine, permit, record),
                Err(approved) => {
                    let machine = machine.clone();
                    let work = move || {
                        let answered = finish::<O>(approved, &call, &machine, permit, record);
                        drop(held);
                        answered
                    };
                    match tokio::task::spawn_blocking(work).await {
                        Ok(answered) => answered,
                        Err(_) => return, // the runtime is shutting down
                    }
                }
            },
        },
    };
    connection.session.touch();
    machine.emit(|| Event::RequestFinished {
        session_id: Some(session_id),
        request_id: incoming.id,
        op: O::KIND.to_string(),
        error_code,
        duration_ms: elapsed_ms(started),
    });
    if let Some(response) = response
        && slot.answer(response).await
    {
        send_status(&*connection, &line).await;
    }
}

/// Everything before the capability: granted, paused, parsed, within its rate, approved, its place, its turn.
async fn prepare<O: Operation>(
    call: &Call,
    slot: &Slot,
    payload: &str,
    record: &mut Record,
) -> Result<(Approved<O::Params>, Box<dyn Send>), ErrorPayload> {
    let session = call.session();
    let machine = &session.machine;
    call.connection.granted(O::KIND)?;
    machine.not_paused()?;
    machine.renewing.not_now()?;
    if machine.consent.is_paused(session.id.as_str()) {
        return Err(errors::chat_paused());
    }
    let parsed = protocol::parse_payload_text::<O::Params>(payload).map_err(errors::bad_payload)?;
    machine.note_unknown_keys(O::KIND, &parsed.unknown_keys);
    let params = parsed.value;
    record.details(O::details(&params, call));
    let asks = O::asks(&params, call)?;
    let counted = O::count(call)?;
    let approved = machine.ask(call, O::KIND, asks, params).await?;
    let place = O::admit(call)?;
    let turn = slot.turn(&call.stop).await.ok_or_else(cancelled)?;
    if let Some(counted) = counted {
        counted.keep();
    }
    Ok((approved, Box::new((place, turn))))
}

/// The response and the error code of a request.
type Answered = (Option<Response>, Option<String>);

/// The capability, when it need not wait. The way to a thread that may block, and back, costs more than a small request.
fn at_once<O: Operation>(
    approved: Approved<O::Params>,
    call: &Call,
) -> Result<O::Response, Approved<O::Params>> {
    if !O::AT_ONCE || call.is_cancelled() {
        return Err(approved);
    }
    // What fails here fails again on a thread of its own, and is answered there.
    approved.attempt(|params| catch_unwind(AssertUnwindSafe(|| O::at_once(params, call))).unwrap_or(None))
}

/// The capability, its record and its answer, on one blocking thread.
fn finish<O: Operation>(
    approved: Approved<O::Params>,
    call: &Call,
    machine: &Machine,
    permit: audit::Permit,
    record: Record,
) -> Answered {
    let run = || match ApprovedAction::begin(approved) {
        Ok(action) => O::run(action, call),
        Err(withdrawn) => Err(withdrawn).into(),
    };
    if let Some(op) = O::STARTS
        && let Err(error) = machine.record_start(op, call, record.so_far())
    {
        let unlogged = record.failed(&error, false);
        // The log has failed already; what it refuses is refused.
        drop(machine.write(permit, unlogged));
        return (encode_error(&call.request_id, &error), Some(error.code.as_str().to_owned()));
    }
    let done = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        error!(op = %O::KIND, "an operation panicked");
        Err(ErrorPayload::new(
            ErrorCode::InternalError,
            "this program failed at the request; please report it",
        ))
        .into()
    });
    conclude::<O>(done, call, machine, permit, record)
}

/// The record of what was done, and with it the answer.
fn conclude<O: Operation>(
    done: Done<O::Response>,
    call: &Call,
    machine: &crate::machine::Machine,
    permit: audit::Permit,
    mut record: Record,
) -> Answered {
    record.details(done.details);
    let cancelled = done.result.is_err() && call.is_cancelled();
    let entry = match &done.result {
        Ok(_) => record.succeeded(done.exit_code, done.extra),
        Err(error) => {
            if errors::is_jail_violation(error.code) {
                machine.record_jail_violation(call, O::KIND, error.code, record.path());
            }
            record.failed(error, cancelled)
        }
    };
    let logged_code = entry.result.error_code.clone();
    let result = match machine.write(permit, entry) {
        Ok(()) => done.result,
        Err(unlogged) => Err(unlogged),
    };
    match result {
        Err(error) => {
            (encode_error(&call.request_id, &error), logged_code.or(Some(error.code.as_str().to_owned())))
        }
        Ok(payload) => {
            let response = encode::<O>(&call.request_id, &payload);
            drop(payload);
            O::answered(response.as_ref().map_or(0, Response::len));
            (response, None)
        }
    }
}

fn encode<O: Operation>(id: &str, payload: &O::Response) -> Option<Response> {
    let kind = O::KIND.request().map_or(MessageType::Ack, |request| request.response);
    bounded(kind, id, Response::encode_sized(kind, id, payload, O::json_bytes(payload)))
}

/// A response; one that came out over the frame limit is replaced by an error with the same id, never dropped.
pub(crate) fn encode_bounded<T: Serialize>(kind: MessageType, id: &str, payload: &T) -> Option<Response> {
    bounded(kind, id, Response::encode(kind, id, payload))
}

fn bounded(kind: MessageType, id: &str, response: serde_json::Result<Response>) -> Option<Response> {
    match response {
        Ok(response) if response.len() <= protocol::MAX_FRAME_BYTES => Some(response),
        Ok(response) => {
            let error = ErrorPayload::new(
                ErrorCode::FileTooLarge,
                format!(
                    "the answer has {} bytes, over the frame limit of {}; ask for less at once",
                    response.len(),
                    protocol::MAX_FRAME_BYTES
                ),
            );
            encode_error(
                id,
                &error
                    .with("max_frame_bytes", protocol::MAX_FRAME_BYTES)
                    .with("attempted_bytes", response.len()),
            )
        }
        Err(error) => {
            error!(%error, %kind, "an answer could not be written as JSON");
            encode_error(id, &ErrorPayload::new(ErrorCode::InternalError, "the answer could not be written"))
        }
    }
}

/// The `ERROR` response.
pub(crate) fn encode_error(id: &str, error: &ErrorPayload) -> Option<Response> {
    Response::encode(MessageType::Error, id, error).ok()
}

pub(crate) fn elapsed_ms(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}
