//! An active session: one chat of the platform, on one folder, over one data connection.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jail::RootDir;
use protocol::{Capability, ErrorPayload, Limits, MessageType, SessionId, Status};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::{Incoming, Line, Service, Slot};
use crate::dispatch::{self, errors};
use crate::events::SessionReport;
use crate::machine::Machine;

/// A session from its activation to its end. Data connections come and go below it.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// Opened once; every file operation goes through this handle.
    pub(crate) root: RootDir,
    pub(crate) revision: u64,
    pub(crate) machine: Arc<Machine>,
    /// Ends the session.
    pub(crate) stop: CancellationToken,
    /// Ends with everything: the kill switch, `disconnect`, exit.
    pub(crate) over: CancellationToken,
    root_path: String,
    last_request: Mutex<Instant>,
    connected: AtomicBool,
    in_flight: AtomicU32,
}

impl Session {
    pub(crate) fn new(id: SessionId, root: RootDir, revision: u64, machine: Arc<Machine>) -> Arc<Self> {
        let over = machine.everything();
        let root_path = root.path().to_string_lossy().into_owned();
        Arc::new(Self {
            id,
            root,
            revision,
            stop: over.child_token(),
            over,
            machine,
            root_path,
            last_request: Mutex::new(Instant::now()),
            connected: AtomicBool::new(false),
            in_flight: AtomicU32::new(0),
        })
    }

    /// The folder's canonical path. It is UTF-8: other folders cannot be attached.
    pub(crate) fn root_path(&self) -> &str {
        &self.root_path
    }

    /// A request came, or ended.
    pub(crate) fn touch(&self) {
        *self.last_request.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(crate) fn last_request(&self) -> Instant {
        *self.last_request.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_connected(&self, connected: bool) {
        self.connected.store(connected, Ordering::Release);
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Acquire)
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Acquire)
    }

    /// What `status` says of it.
    pub(crate) fn report(&self) -> SessionReport {
        let survivors = self.machine.commands.survivors();
        let mine = survivors.into_iter().filter(|s| s.owner == self.id.as_str());
        SessionReport {
            session_id: self.id.to_string(),
            root: self.root_path.clone(),
            connected: self.is_connected(),
            paused: self.machine.consent.is_paused(self.id.as_str()),
            in_flight: self.in_flight(),
            idle_seconds: self.last_request().elapsed().as_secs(),
            background: mine.map(|s| format!("{} {}", s.pid, s.command)).collect(),
        }
    }
}

/// One data connection of a session, with what its handshake settled.
pub(crate) struct DataConnection {
    pub(crate) session: Arc<Session>,
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) limits: Limits,
}

impl DataConnection {
    /// Whether the platform may ask for this at all.
    pub(crate) fn granted(&self, kind: MessageType) -> Result<(), ErrorPayload> {
        let Some(request) = kind.request() else { return Ok(()) };
        let capability = request.capability;
        if self.capabilities.contains(&capability) && self.session.machine.is_on(capability) {
            return Ok(());
        }
        Err(errors::not_granted(capability, &self.capabilities))
    }
}

impl Service for DataConnection {
    fn serve(
        self: Arc<Self>,
        line: Arc<Line>,
        slot: Slot,
        incoming: Incoming,
        stop: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        /// Counts the request for as long as it is in flight, however it ends.
        struct InFlight(Arc<Session>);
        impl Drop for InFlight {
            fn drop(&mut self) {
                self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
            }
        }
        self.session.in_flight.fetch_add(1, Ordering::AcqRel);
        let counted = InFlight(self.session.clone());
        let served = dispatch::serve_data(self, line, slot, incoming, stop);
        Box::pin(async move {
            let _counted = counted;
            served.await;
        })
    }

    fn is_often_over_at_once(&self, kind: MessageType) -> bool {
        dispatch::is_often_over_at_once(kind)
    }

    fn refused(&self, id: &str, kind: MessageType, error: &ErrorPayload) {
        self.session.touch();
        self.session.machine.record_refused(Some(self.session.id.as_str()), id, kind, error);
    }

    fn status(&self, line: &Line) -> Status {
        self.session.machine.status_of(line)
    }

    fn idle_since(&self) -> Option<Instant> {
        Some(self.session.last_request())
    }
}
