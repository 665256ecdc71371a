//! Windows: a job object for each command, which nothing in it can leave and which dies with the last handle
//! to it, ours.

#![allow(unsafe_code)]

mod attend;
mod handles;
mod job;
mod launch;
mod order;
pub(crate) mod supervisor;

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use self::handles::Event;
use self::job::Job;
use crate::error::ExecError;
use crate::host::{Entry, Limits, Outcome, Registry};
use crate::lineage::Mark;
use crate::resolve::Invocation;
use crate::spec::Cwd;

pub(crate) use self::attend::Attended;

/// From CTRL_BREAK to the end of the job: wire.md, "Commands".
const STOP_GRACE: Duration = Duration::from_secs(2);

/// How long the answer waits for pipes that a background process holds open: wire.md, "Decided details".
const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// A terminated job is empty well before; only a process stuck in a driver is not.
const PATIENCE: Duration = Duration::from_secs(5);

/// Not told by the OS.
pub(crate) fn is_inside_command() -> bool {
    false
}

/// Not told by the OS without the jobs, which a [`Host`](crate::Host) has.
pub(crate) fn is_marked(_pid: u32) -> bool {
    false
}

/// There are none: a job ends with the process that made it.
pub(crate) fn end_survivors(_mark: Mark) -> usize {
    0
}

/// What to start.
pub(crate) struct Launch {
    pub(crate) invocation: Invocation,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Cwd,
}

/// The job of one command.
pub(crate) struct Tree {
    job: Job,
    /// Wakes the thread that waits for the command.
    interrupt: Event,
    /// Tells the supervisor to send CTRL_BREAK.
    stop: Event,
}

impl Tree {
    pub(crate) fn new() -> io::Result<Tree> {
        Ok(Tree { job: Job::new()?, interrupt: Event::new()?, stop: Event::new()? })
    }

    pub(crate) fn interrupt(&self) {
        self.interrupt.set();
    }
}

/// Nothing is shared between commands here but the list of them.
pub(crate) struct Backend {
    registry: Arc<Registry>,
}

impl Backend {
    pub(crate) fn new(registry: Arc<Registry>, _mark: Option<Mark>) -> Result<Backend, ExecError> {
        Ok(Backend { registry })
    }

    pub(crate) fn launch(&self, entry: &Arc<Entry>, launch: Launch) -> Result<Attended, ExecError> {
        self.forget_empty();
        let attended = launch::launch(entry, &launch);
        if attended.is_err() {
            kill(&[Arc::clone(entry)]);
        }
        attended
    }

    pub(crate) fn attend(&self, entry: &Arc<Entry>, mut attended: Attended, limits: &Limits) -> Outcome {
        let outcome = attended.attend(entry, limits);
        self.leave(entry, attended);
        outcome
    }

    /// Nobody waits for the tree any more. The threads that read its pipes go on until those close.
    pub(crate) fn leave(&self, entry: &Arc<Entry>, _attended: Attended) {
        entry.answered.store(true, Ordering::SeqCst);
        self.forget_empty();
    }

    pub(crate) fn kill(&self, entries: &[Arc<Entry>]) {
        kill(entries);
        self.forget_empty();
    }

    /// There are no marks here.
    pub(crate) fn sweep(&self) {}

    /// Nothing is kept ready here.
    pub(crate) fn rest(&self) {}

    /// None is needed: a job ends with this process.
    pub(crate) fn is_marking(&self) -> bool {
        false
    }

    /// Whether it is in one of these jobs. A job within, which a command may make, counts as a part of it.
    pub(crate) fn holds(&self, entries: &[Arc<Entry>], pid: u32) -> bool {
        let Ok(process) = handles::open(pid) else { return false };
        entries.iter().any(|entry| entry.tree.job.holds(&process))
    }

    pub(crate) fn members(&self, entry: &Entry) -> Vec<(u32, String)> {
        entry.tree.job.members()
    }

    fn forget_empty(&self) {
        let over = |entry: &Entry| entry.answered.load(Ordering::SeqCst) && entry.tree.job.is_empty();
        for entry in self.registry.select(|entry| entry.answered.load(Ordering::SeqCst)) {
            if over(&entry) {
                self.registry.remove(&entry);
            }
        }
    }
}

fn kill(entries: &[Arc<Entry>]) {
    let deadline = Instant::now() + PATIENCE;
    for entry in entries {
        entry.tree.job.terminate();
    }
    // A job has no event for being empty that needs no thread of its own.
    while !entries.iter().all(|entry| entry.tree.job.is_empty()) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
        for entry in entries {
            entry.tree.job.terminate();
        }
    }
}
