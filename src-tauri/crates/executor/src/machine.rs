//! What every connection of this machine shares: the log, the consent, the commands, the limits, the state of things.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use audit::{AuditLog, Entry, Outcome, Permit};
use jail::RootOptions;
use protocol::{Capability, Channel, ErrorCode, ErrorPayload, Limits, MachineId, MessageType, Status};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use crate::config::{Config, Dirs, Platform};
use crate::connection::{Delays, Line, Renewing, Sockets, Timings};
use crate::consent::{Action, Approved, Consent, Denied, Reason, Scope, Withdrawal};
use crate::control::{Browsable, GrantKey, Sessions};
use crate::dispatch::{Asks, Call, Details, details, errors};
use crate::events::{ConnectionState, Event};
use crate::limits::{Bound, Permit as Place, Rate, Slots};
use crate::oauth::TokenSource;
use crate::session::Session;

/// Unknown payload keys that are remembered as logged. A platform that invents more is no longer listened to.
const MAX_NOTED_KEYS: usize = 256;

/// See the module.
pub(crate) struct Machine {
    pub(crate) id: MachineId,
    pub(crate) version: &'static str,
    pub(crate) arch: &'static str,
    pub(crate) platform: Platform,
    pub(crate) dirs: Dirs,
    pub(crate) timings: Timings,
    pub(crate) started: Instant,
    pub(crate) audit: AuditLog,
    pub(crate) commands: exec::Host,
    pub(crate) consent: Arc<Consent>,
    pub(crate) tokens: TokenSource,
    pub(crate) renewing: Renewing,
    pub(crate) sockets: Sockets,
    pub(crate) sessions: Sessions,
    pub(crate) grants: GrantKey,
    pub(crate) slots: Slots,
    pub(crate) command_places: Bound,
    pub(crate) command_rate: Rate,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) config: RwLock<Arc<Config>>,
    pub(crate) state: State,
}

/// What changes while the machine runs.
pub(crate) struct State {
    connection: Mutex<ConnectionState>,
    /// Every connection's and every session's token is below it. Cut by the kill switch and by `disconnect`.
    everything: Mutex<CancellationToken>,
    control_limits: Mutex<Option<Limits>>,
    paused: AtomicU8,
    noted_keys: Mutex<HashSet<String>>,
}

/// Who paused everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PausedBy {
    Nobody = 0,
    /// The person.
    Person = 1,
    /// The log, which could not be written.
    Log = 2,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for State {
    fn default() -> Self {
        Self {
            connection: Mutex::new(ConnectionState::Off { reason: "not connected yet".to_owned() }),
            everything: Mutex::default(),
            control_limits: Mutex::default(),
            paused: AtomicU8::new(PausedBy::Nobody as u8),
            noted_keys: Mutex::default(),
        }
    }
}

/// Configuration and state.
impl Machine {
    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn root_options(&self) -> RootOptions {
        self.dirs.root_options()
    }

    pub(crate) fn browsable(&self) -> Browsable {
        let config = self.config();
        Browsable { roots: config.roots(), home: config.browse_home, options: self.root_options() }
    }

    pub(crate) fn delays(&self) -> Delays {
        let reconnect = &self.config().reconnect;
        // Checked when the configuration was read.
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Delays {
            base: seconds(reconnect.base_seconds),
            max: seconds(reconnect.max_seconds),
            jitter: seconds(reconnect.jitter_seconds),
        }
    }

    pub(crate) fn connection(&self) -> ConnectionState {
        lock(&self.state.connection).clone()
    }

    pub(crate) fn set_connection(&self, state: ConnectionState) {
        *lock(&self.state.connection) = state.clone();
        self.emit(|| Event::Connection { state });
    }

    /// As [`Machine::set_connection`], for a link that may have been told to stop meanwhile: whoever did says what holds.
    pub(crate) fn set_connection_unless(&self, stop: &CancellationToken, state: ConnectionState) {
        let mut connection = lock(&self.state.connection);
        if !stop.is_cancelled() {
            *connection = state.clone();
            drop(connection);
            self.emit(|| Event::Connection { state });
        }
    }

    /// Capabilities that the person switched on and that work now, of those that a connection of this kind may offer.
    pub(crate) fn offers(&self, channel: Channel) -> Vec<Capability> {
        let mut offers = vec![Capability::Files];
        if channel == Channel::Control {
            offers.push(Capability::DirectoryBrowse);
        }
        if self.config().capabilities.shell && exec::resolve_shell(exec::Shell::Auto).is_ok() {
            offers.push(Capability::Shell);
        }
        offers
    }

    /// Whether the person has it switched on at this moment, whatever was offered and granted before.
    pub(crate) fn is_on(&self, capability: Capability) -> bool {
        let on = &self.config().capabilities;
        match capability {
            Capability::Files | Capability::DirectoryBrowse => true,
            Capability::Shell => on.shell,
            Capability::ComputerUse => on.computer_use.any(),
            Capability::LocalLlm => on.local_llm,
            Capability::Recording => on.recording,
            Capability::HardwareSerial | Capability::HardwareUsb | Capability::HardwareGpio => on.hardware,
        }
    }

    /// A token that ends when everything must.
    pub(crate) fn everything(&self) -> CancellationToken {
        lock(&self.state.everything).child_token()
    }

    /// Ends everything that is under way. What starts afterwards is not touched.
    pub(crate) fn cut(&self) {
        std::mem::take(&mut *lock(&self.state.everything)).cancel();
    }

    /// Ends one chat. False when there is none of that name.
    pub(crate) fn stop_session(&self, session_id: &str) -> bool {
        let ending: Vec<_> =
            self.sessions.active().into_iter().filter(|session| session.id.as_str() == session_id).collect();
        ending.iter().for_each(|session| session.stop.cancel());
        !ending.is_empty()
    }

    /// Tells whoever listens. The event is made only when somebody does.
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        if self.events.receiver_count() > 0 {
            // All receivers may have gone meanwhile.
            let _ = self.events.send(event());
        }
    }
}

/// Limits.
impl Machine {
    fn own_limits(&self) -> Limits {
        let config = self.config();
        Limits {
            max_file_size_bytes: config.max_file_size_bytes,
            command_timeout_seconds: config.command_timeout_seconds as f64,
            max_concurrent: u32::try_from(config.max_concurrent).unwrap_or(u32::MAX),
        }
    }

    /// The smallest of ours, control's and this connection's.
    pub(crate) fn limits_with(&self, acknowledged: Limits, is_control: bool) -> Limits {
        let limits = self.own_limits().min(acknowledged);
        match *lock(&self.state.control_limits) {
            Some(control) if !is_control => limits.min(control),
            Some(_) | None => limits,
        }
    }

    /// A control connection is up: its limits hold for the machine, and data connections of the one before end.
    pub(crate) fn control_connected(&self, limits: Limits) {
        *lock(&self.state.control_limits) = Some(limits);
        self.slots.set_ceiling(limits.max_concurrent as usize);
        self.sessions.stop_all();
    }

    pub(crate) fn command_place(&self) -> Option<Place> {
        self.command_places.try_enter()
    }

    pub(crate) fn status_of(&self, line: &Line) -> Status {
        Status {
            in_flight: line.in_flight(),
            max_concurrent: line.max_concurrent(),
            queue_depth: u32::try_from(self.slots.queue_depth()).unwrap_or(u32::MAX),
            audit_log_bytes: self.audit.size_bytes(),
            uptime_seconds: self.started.elapsed().as_secs(),
        }
    }

    /// Logs the payload keys that we do not know, each once.
    pub(crate) fn note_unknown_keys(&self, kind: MessageType, keys: &[String]) {
        for key in keys {
            let mut noted = lock(&self.state.noted_keys);
            if noted.len() < MAX_NOTED_KEYS && noted.insert(format!("{kind} {key}")) {
                let key: String = key.chars().take(100).collect();
                debug!(%kind, %key, "ignored a payload key that this version does not know");
            }
        }
    }
}

/// Pause, consent.
impl Machine {
    pub(crate) fn paused_by(&self) -> PausedBy {
        match self.state.paused.load(Ordering::Acquire) {
            1 => PausedBy::Person,
            2 => PausedBy::Log,
            _ => PausedBy::Nobody,
        }
    }

    /// Pauses everything, or lets it go on.
    pub(crate) fn set_paused(&self, by: PausedBy) {
        let before = self.state.paused.swap(by as u8, Ordering::AcqRel);
        if before != by as u8 {
            let reason = (by == PausedBy::Log).then(|| "the audit log cannot be written".to_owned());
            self.emit(|| Event::Paused { paused: by != PausedBy::Nobody, reason });
        }
    }

    pub(crate) fn not_paused(&self) -> Result<(), ErrorPayload> {
        match self.paused_by() {
            PausedBy::Nobody => Ok(()),
            PausedBy::Person => {
                Err(errors::paused("the person paused this machine; wait until they resume it"))
            }
            PausedBy::Log => Err(unlogged()),
        }
    }

    /// The consent step. A declined or withdrawn prompt, a rule and a chat's pause are each logged.
    pub(crate) async fn ask<P: Serialize>(
        &self,
        call: &Call,
        kind: MessageType,
        asks: Asks,
        params: P,
    ) -> Result<Approved<P>, ErrorPayload> {
        let session = call.session();
        let action = Action {
            session_id: session.id.to_string(),
            request_type: kind.to_string(),
            capability: asks.capability,
            params,
            root: session.root.path().to_owned(),
            view: asks.view,
            program: asks.program,
        };
        let decided = self.consent.decide(action, &call.stop).await;
        let facts = match &decided {
            Ok(approved) => approved.facts(),
            Err(denied) => &denied.facts,
        };
        if facts.scope != Some(Scope::Default) {
            let details = json!({
                "capability": facts.capability.name(), "decision": facts.decision, "scope": facts.scope.map(Scope::name),
                "waited_ms": facts.waited_ms, "prompt_id": facts.prompt_id.map(|id| id.to_string()),
            });
            self.record_request("CONSENT", session.id.as_str(), &call.request_id, details, None);
        }
        decided.map_err(|denied| {
            if denied.reason == Reason::Rule {
                self.emit(|| Event::RefusedByRule {
                    session_id: session.id.to_string(),
                    capability: denied.capability.name().to_owned(),
                });
            }
            declined(&denied)
        })
    }
}

/// The log.
impl Machine {
    /// A place in the log for the record of what is about to be done; without one it is not done.
    pub(crate) fn reserve(&self) -> Result<Permit, ErrorPayload> {
        self.audit.reserve().map_err(|error| self.log_failed(&error))
    }

    pub(crate) fn write(&self, permit: Permit, entry: Entry) -> Result<(), ErrorPayload> {
        permit.write(entry).map_err(|error| self.log_failed(&error))
    }

    fn log_failed(&self, error: &audit::AuditError) -> ErrorPayload {
        error!(%error, "the audit log cannot be written; everything is paused until 'deskhand resume'");
        if self.paused_by() == PausedBy::Nobody {
            self.set_paused(PausedBy::Log);
            let message = format!(
                "The audit log cannot be written ({error}). Nothing runs until it can: see to it, then resume."
            );
            self.emit(|| Event::Warning { message });
        }
        unlogged()
    }

    /// One of our own events. When it cannot be written, everything is paused.
    pub(crate) fn record_own(&self, op: &'static str, session: Option<&str>, log: Value) {
        let mut entry = Entry::event(op, details(log));
        entry.session_id = session.map(str::to_owned);
        if let Err(error) = self.audit.record(entry) {
            self.log_failed(&error);
        }
    }

    fn record_request(
        &self,
        op: &'static str,
        session: &str,
        request: &str,
        log: Value,
        code: Option<ErrorCode>,
    ) {
        let result = match code {
            None => Outcome::success(0),
            Some(code) => Outcome::failure(code.as_str(), 0),
        };
        let entry = Entry {
            session_id: Some(session.to_owned()),
            request_id: Some(request.to_owned()),
            op: op.into(),
            details: details(log),
            result,
        };
        if let Err(error) = self.audit.record(entry) {
            self.log_failed(&error);
        }
    }

    /// The start of what could end this program before its record is written.
    pub(crate) fn record_start(
        &self,
        op: &'static str,
        call: &Call,
        log: &Details,
    ) -> Result<(), ErrorPayload> {
        let entry = Entry {
            session_id: Some(call.session().id.to_string()),
            request_id: Some(call.request_id.clone()),
            op: op.into(),
            details: log.clone(),
            result: Outcome::success(0),
        };
        self.audit.record(entry).map_err(|error| self.log_failed(&error))
    }

    /// A request that was turned away before its steps began.
    pub(crate) fn record_refused(
        &self,
        session: Option<&str>,
        id: &str,
        kind: MessageType,
        error: &ErrorPayload,
    ) {
        let entry = Entry {
            session_id: session.map(str::to_owned),
            request_id: Some(id.to_owned()),
            op: kind.as_str().into(),
            details: Map::new(),
            result: Outcome::failure(error.code.as_str(), 0),
        };
        if let Err(error) = self.audit.record(entry) {
            self.log_failed(&error);
        }
    }

    /// An attempt to leave the jail is named apart from the request that made it.
    pub(crate) fn record_jail_violation(
        &self,
        call: &Call,
        kind: MessageType,
        code: ErrorCode,
        path: Option<&str>,
    ) {
        let log = json!({"code": code.as_str(), "path": path, "attempted_op": kind.as_str()});
        self.record_request("JAIL_VIOLATION", call.session().id.as_str(), &call.request_id, log, Some(code));
    }
}

/// Sessions.
impl Machine {
    /// Ends what a session leaves behind: its approvals and its background processes.
    pub(crate) async fn end_session(&self, session: &Session) {
        self.consent.end_session(session.id.as_str());
        self.kill_processes(session.id.as_str()).await;
    }

    /// Kills what runs for a session; returns when it is dead.
    pub(crate) async fn kill_processes(&self, session: &str) {
        let (commands, owner) = (self.commands.clone(), session.to_owned());
        drop(tokio::task::spawn_blocking(move || commands.kill_owner(&owner)).await);
    }

    /// As [`Machine::end_session`], unless the session is active again by the time it would have idled out.
    pub(crate) fn end_unless_restored(self: &Arc<Self>, session: &Arc<Session>) {
        let (machine, session) = (self.clone(), session.clone());
        let (patience, over) = (self.timings.idle_after, session.over.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = over.cancelled() => return, // whoever cut everything has killed the processes too
                () = tokio::time::sleep(patience) => {}
            }
            if !machine.sessions.is_active(&session.id) {
                machine.end_session(&session).await;
            }
        });
    }

    /// Calls `f` once when `token` is cancelled, at once if it is already; not after the guard is dropped.
    pub(crate) fn when_cancelled(token: &CancellationToken, f: impl FnOnce() + Send + 'static) -> Watch {
        let token = token.clone();
        let task = tokio::spawn(async move {
            token.cancelled().await;
            f();
        });
        Watch(task.abort_handle())
    }
}

/// Keeps [`Machine::when_cancelled`] watching.
pub(crate) struct Watch(tokio::task::AbortHandle);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) fn cancelled() -> ErrorPayload {
    ErrorPayload::new(ErrorCode::InternalError, "the request was cancelled with its connection")
}

fn unlogged() -> ErrorPayload {
    ErrorPayload::new(
        ErrorCode::InternalError,
        "the audit log cannot be written, so nothing is done; the person must see to it and resume",
    )
    .with("reason", "audit_log_unavailable")
}

fn declined(denied: &Denied) -> ErrorPayload {
    if denied.withdrawal == Some(Withdrawal::Paused) {
        return errors::chat_paused();
    }
    ErrorPayload::new(ErrorCode::ConsentRequired, denied.to_string())
        .with("reason", denied.reason.name())
        .with("capability", denied.capability.name())
}
