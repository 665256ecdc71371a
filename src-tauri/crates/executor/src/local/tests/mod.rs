//! Real sockets, real processes, and a stand-in for the executor.

mod attacks;
mod child;
mod hostile;
mod instance;
mod service;
mod survivors;

use std::future::Future;
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;
use tokio::sync::broadcast;

use super::{Host, Instance, Server, Setup};
use crate::events::{Command, CommandFailed, ConnectionState, Event, StatusReport};

/// Remembers what it was told. Rotating the log is what it cannot do.
#[derive(Clone)]
pub(super) struct Fake {
    told: Arc<Mutex<Vec<Command>>>,
    events: broadcast::Sender<Event>,
}

impl Fake {
    pub(super) fn new() -> Self {
        Self { told: Arc::default(), events: broadcast::channel(4).0 }
    }

    pub(super) fn told(&self) -> Vec<Command> {
        self.told.lock().unwrap().clone()
    }
}

impl Host for Fake {
    fn status(&self) -> StatusReport {
        report()
    }

    fn command(&self, command: Command) -> impl Future<Output = Result<(), CommandFailed>> + Send {
        let failed = command == Command::RotateLog;
        self.told.lock().unwrap().push(command);
        async move { if failed { Err(CommandFailed("the disk is full".into())) } else { Ok(()) } }
    }

    fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }
}

pub(super) fn report() -> StatusReport {
    StatusReport {
        version: "0.1.0".into(),
        pid: std::process::id(),
        machine_id: "m".into(),
        display_name: "désk\n1".into(),
        platform_url: "http://127.0.0.1:1".into(),
        connection: ConnectionState::Connected { connection_id: "c".into() },
        paused: false,
        uptime_seconds: 1,
        sessions: Vec::new(),
        prompts: 0,
        in_flight: 0,
        queue_depth: 0,
        audit_log: "audit.log".into(),
        audit_log_bytes: 0,
    }
}

/// A server in a folder of its own.
pub(super) struct Served {
    pub(super) state: tempfile::TempDir,
    pub(super) fake: Fake,
    /// A word for each time the kill switch was thrown.
    pub(super) kills: mpsc::Receiver<()>,
    pub(super) instance: Instance,
    pub(super) server: Server,
}

impl Served {
    pub(super) fn dir(&self) -> &Path {
        self.state.path()
    }

    pub(super) fn new() -> Self {
        Self::on(Handle::current())
    }

    pub(super) fn on(executor: Handle) -> Self {
        let state = tempfile::tempdir().unwrap();
        let fake = Fake::new();
        let (thrown, kills) = mpsc::channel();
        let instance = Instance::claim(state.path()).unwrap();
        let setup = Setup {
            runtime_dir: state.path().to_owned(),
            host: fake.clone(),
            executor,
            stop: Arc::new(move || thrown.send(()).unwrap()),
            is_command: Arc::new(|_| false),
        };
        let server = Server::start(&instance, setup).unwrap();
        Self { state, fake, kills, instance, server }
    }
}
