//! Linux: a supervisor process for each command, and a hunt through `/proc` that needs no help from it.

#![allow(unsafe_code)]

mod hunt;
mod launch;
mod mark;
pub(crate) mod memory;
mod order;
mod proc;
mod process;
mod spare;
pub(crate) mod supervisor;
mod sweep;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use self::hunt::{Hunt, PATIENCE, Root};
use self::launch::Ready;
use self::mark::Lineage;
use self::process::{Supervisor, known_supervisors};
use self::spare::Spare;
use self::sweep::Sweep;
use crate::error::ExecError;
use crate::host::{Entry, Limits, Outcome, Registry};
use crate::lineage::Mark;
use crate::resolve::Invocation;
use crate::spec::Cwd;
use crate::unix::{self, Duties, Hands, Monitor, Sink, Wake};

pub(crate) use crate::unix::Attended;

/// What to start.
pub(crate) struct Launch {
    pub(crate) invocation: Invocation,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Cwd,
}

/// The supervisor of one tree.
pub(crate) struct Tree {
    pub(crate) wake: Wake,
    supervisor: Mutex<Option<Supervisor>>,
}

impl Tree {
    pub(crate) fn new() -> io::Result<Tree> {
        Ok(Tree { wake: Wake::new()?, supervisor: Mutex::new(None) })
    }

    /// Wakes the thread that waits for the command.
    pub(crate) fn interrupt(&self) {
        self.wake.raise();
    }

    fn supervisor(&self) -> MutexGuard<'_, Option<Supervisor>> {
        self.supervisor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn root(&self) -> Option<Root> {
        self.supervisor().as_ref().map(Supervisor::root)
    }

    fn needs_killing(&self) -> bool {
        self.supervisor().as_ref().is_some_and(|supervisor| !supervisor.is_finished())
    }
}

/// Every command's supervisor is a child of this process.
pub(crate) struct Backend {
    /// On all of them; none where that is not possible.
    mark: Option<Mark>,
    spare: Arc<Spare>,
    sink: Sink,
    monitor: Monitor,
}

impl Backend {
    pub(crate) fn new(registry: Arc<Registry>, mark: Option<Mark>) -> Result<Backend, ExecError> {
        // Without /proc no tree can be killed for certain.
        Root::of(rustix::process::getpid().as_raw_nonzero().get())?;
        // What a killed supervisor leaves behind comes to us rather than to init.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(io::Error::from)?;
        let mark = mark.filter(|_| mark::can_mark());
        let spare = Arc::new(Spare::new(mark));
        let janitor = Janitor { registry, spare: Arc::clone(&spare) };
        Ok(Backend { mark, spare, sink: Sink::new()?, monitor: Monitor::start(janitor)? })
    }

    /// Starts the command on a supervisor; the spare one when there is one.
    pub(crate) fn launch(&self, entry: &Entry, launch: Launch) -> Result<Attended, ExecError> {
        let attended = self.launch_on_any(entry, launch);
        if attended.is_err() {
            kill(&[entry]);
        }
        self.spare.want();
        self.monitor.wake();
        attended
    }

    fn launch_on_any(&self, entry: &Entry, launch: Launch) -> Result<Attended, ExecError> {
        let ready = Ready::new(launch)?;
        if let Some(spare) = self.spare.take()
            && let Some(attended) = ready.run_on(spare, entry)?
        {
            return Ok(attended);
        }
        match ready.run_on(Supervisor::start(self.mark)?, entry)? {
            Some(attended) => Ok(attended),
            None if entry.is_cancelled() => Err(ExecError::Stopped),
            None => Err(io::Error::other("the supervisor of the command was killed").into()),
        }
    }

    pub(crate) fn attend(&self, entry: &Arc<Entry>, mut attended: Attended, limits: &Limits) -> Outcome {
        let hands = LinuxHands { entry };
        let outcome = unix::attend(entry, &mut attended, limits, &self.sink, &hands);
        self.leave(entry, attended);
        outcome
    }

    /// Nobody waits for the tree any more.
    pub(crate) fn leave(&self, entry: &Arc<Entry>, attended: Attended) {
        entry.answered.store(true, Ordering::SeqCst);
        self.monitor.take(entry, attended);
    }

    pub(crate) fn kill(&self, entries: &[Arc<Entry>]) {
        let entries: Vec<&Entry> = entries.iter().map(Arc::as_ref).collect();
        kill(&entries);
    }

    /// Kills all that any command has started, before it is asked which tree it is of. What is held by supervisors is
    /// still to be killed in order.
    pub(crate) fn sweep(&self) {
        if let Some(mark) = self.mark {
            Sweep::of(mark, known_supervisors()).kill();
        }
    }

    /// Nothing runs any more: no process of ours needs to be there.
    pub(crate) fn rest(&self) {
        self.spare.retire();
    }

    pub(crate) fn is_marking(&self) -> bool {
        self.mark.is_some()
    }

    /// Whether it belongs to one of these trees. Descent is the caller's to follow; what it does not show, the mark does.
    pub(crate) fn holds(&self, entries: &[Arc<Entry>], pid: u32) -> bool {
        let roots: Vec<Root> = entries.iter().filter_map(|entry| entry.tree.root()).collect();
        is_marked(pid) || Hunt::below(&roots).members().contains(&pid.cast_signed())
    }

    pub(crate) fn members(&self, entry: &Entry) -> Vec<(u32, String)> {
        let Some(root) = entry.tree.root() else { return Vec::new() };
        let members = Hunt::below(&[root]).members();
        members.into_iter().map(|pid| (pid.unsigned_abs(), proc::name(pid))).collect()
    }
}

pub(crate) fn is_inside_command() -> bool {
    Lineage::ours() != Lineage::Free
}

pub(crate) fn is_marked(pid: u32) -> bool {
    // One that cannot be looked at any more has ended, and the OS hides only what others have started.
    let lineage = i32::try_from(pid).map_or(Lineage::Free, |pid| Lineage::of(pid).unwrap_or(Lineage::Free));
    lineage != Lineage::Free && !is_inside_command()
}

pub(crate) fn end_survivors(mark: Mark) -> usize {
    if is_inside_command() {
        return 0;
    }
    // Of this process there are none: nothing of the installation runs.
    let mut sweep = Sweep::of(mark, BTreeSet::new());
    sweep.kill();
    sweep.found()
}

/// Kills what the supervisors hold, then the supervisors; and where one was killed by its command, what came
/// to us through that.
fn kill(entries: &[&Entry]) {
    let entries: Vec<&Entry> = entries.iter().copied().filter(|entry| entry.tree.needs_killing()).collect();
    let roots: Vec<Root> = entries.iter().filter_map(|entry| entry.tree.root()).collect();
    if roots.is_empty() {
        return;
    }
    // Stopped, it starts nothing that the hunt could miss.
    each_supervisor(&entries, |supervisor| supervisor.signal(Signal::STOP));
    let mut hunt = Hunt::below(&roots);
    let all_dead = hunt.kill();
    each_supervisor(&entries, Supervisor::end);
    let deadline = Instant::now() + PATIENCE;
    each_supervisor(&entries, |supervisor| supervisor.reap(deadline));
    let mut lost_since = None;
    each_supervisor(&entries, |supervisor| {
        if supervisor.was_lost() || !all_dead {
            let earlier = lost_since.unwrap_or(u64::MAX);
            lost_since = Some(supervisor.ordered().min(earlier));
        }
    });
    hunt.bury();
    if let Some(since) = lost_since {
        Hunt::orphans(since).kill();
    }
    each_supervisor(&entries, Supervisor::finish);
}

fn each_supervisor(entries: &[&Entry], mut act: impl FnMut(&mut Supervisor)) {
    for entry in entries {
        if let Some(supervisor) = entry.tree.supervisor().as_mut() {
            act(supervisor);
        }
    }
}

struct LinuxHands<'a> {
    entry: &'a Entry,
}

impl Hands for LinuxHands<'_> {
    fn ask_to_stop(&self) {
        if let Some(root) = self.entry.tree.root() {
            Hunt::below(&[root]).terminate();
        }
    }

    fn kill(&self) {
        kill(&[self.entry]);
    }

    fn nudge(&self) {
        if let Some(supervisor) = self.entry.tree.supervisor().as_ref() {
            supervisor.signal(Signal::CONT);
        }
    }
}

/// What the monitor's thread does here.
struct Janitor {
    registry: Arc<Registry>,
    spare: Arc<Spare>,
}

impl Duties for Janitor {
    fn ended(&mut self, entry: &Entry, done: bool) {
        if !done {
            // It was killed, by us or by the command.
            kill(&[entry]);
        }
        each_supervisor(&[entry], |supervisor| {
            supervisor.signal(Signal::KILL);
            supervisor.reap(Instant::now() + PATIENCE);
            supervisor.finish();
        });
        self.registry.remove(entry);
    }

    fn tick(&mut self) -> Option<Duration> {
        self.spare.tend()
    }
}
