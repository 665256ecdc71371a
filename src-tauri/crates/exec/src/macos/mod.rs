//! macOS: a process group for each command, and a walk of the process table for what has left it.
//!
//! There is no subreaper here. What a walk has seen once is remembered, so a process that is seen before its
//! parent ends stays known; the monitor walks twice a second for that. One that has left its group *and* lost
//! its parent between two walks gets away.

#![allow(unsafe_code)]

mod table;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use self::table::Process;
use crate::error::ExecError;
use crate::host::{Entry, Limits, Outcome, Registry};
use crate::lineage::Mark;
use crate::resolve::Invocation;
use crate::spec::Cwd;
use crate::unix::{self, Duties, Hands, Monitor, Notice, Pipes, Sink, Wake, Words, spawn, spawn_failure};

pub(crate) use crate::unix::Attended;

/// How often the process table is walked while commands run.
const WALK_EVERY: Duration = Duration::from_millis(500);

/// Nothing that can be killed survives this long but a process in an uninterruptible system call.
const PATIENCE: Duration = Duration::from_secs(5);

/// Then the killing starts, whether everything has been stopped or not.
const STOP_PASSES: usize = 100;

/// What to start.
pub(crate) struct Launch {
    pub(crate) invocation: Invocation,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Cwd,
}

/// The processes of one command, as far as they are known.
pub(crate) struct Tree {
    pub(crate) wake: Wake,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The command itself and its process group. Its number stays taken, by a zombie at the least, until the
    /// tree is empty.
    command: Option<i32>,
    /// All that were ever seen, by number, with the start that tells them from a later process of that number.
    seen: HashMap<i32, u64>,
}

impl Tree {
    pub(crate) fn new() -> io::Result<Tree> {
        Ok(Tree { wake: Wake::new()?, known: Mutex::default() })
    }

    /// Wakes the thread that waits for the command.
    pub(crate) fn interrupt(&self) {
        self.wake.raise();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its live processes, and whether one is among them that no walk before has seen.
    fn walk(&self, table: &[Process]) -> (Vec<Process>, bool) {
        let mut known = self.known();
        let Some(command) = known.command else { return (Vec::new(), false) };
        let mut fresh = false;
        loop {
            let mut grown = false;
            for process in table {
                let is_known = |pid| known.seen.contains_key(&pid) || pid == command;
                let belongs = process.group == command || process.pid == command || is_known(process.parent);
                if belongs && known.seen.insert(process.pid, process.started) != Some(process.started) {
                    grown = true;
                }
            }
            fresh |= grown;
            if !grown {
                break;
            }
        }
        // A number that is taken by somebody else now, or by nobody, names no member any more.
        let now: HashMap<i32, u64> = table.iter().map(|process| (process.pid, process.started)).collect();
        known.seen.retain(|pid, started| now.get(pid) == Some(started));
        let alive =
            table.iter().filter(|process| known.seen.contains_key(&process.pid) && !process.is_zombie);
        (alive.cloned().collect(), fresh)
    }
}

/// Not told by the OS.
pub(crate) fn is_inside_command() -> bool {
    false
}

/// Not told by the OS without what a [`Host`](crate::Host) has seen.
pub(crate) fn is_marked(_pid: u32) -> bool {
    false
}

/// Nothing tells them from other processes of the person.
pub(crate) fn end_survivors(_mark: Mark) -> usize {
    0
}

fn strike(processes: &[Process], signals: &[Signal]) {
    for pid in processes.iter().filter_map(|process| Pid::from_raw(process.pid)) {
        for signal in signals {
            // Gone already, or somebody else's: nothing to be done about either.
            let _ = kill_process(pid, *signal);
        }
    }
}

/// Stops everything first, so that nothing forks away, then kills, and looks again until nothing is left.
fn kill(entries: &[&Entry]) {
    let deadline = Instant::now() + PATIENCE;
    let mut signals = [Signal::STOP];
    for pass in 0.. {
        let table = table::read();
        let mut alive = Vec::new();
        let mut fresh = false;
        for entry in entries {
            let (members, new) = entry.tree.walk(&table);
            alive.extend(members);
            fresh |= new;
        }
        // Those of other users cannot be signalled.
        alive.retain(Process::is_ours);
        if alive.is_empty() || Instant::now() > deadline {
            return;
        }
        strike(&alive, &signals);
        if signals == [Signal::KILL] {
            // There is no event for the end of somebody else's child.
            thread::sleep(Duration::from_millis(1));
        }
        if (pass > 0 && !fresh) || pass >= STOP_PASSES {
            signals = [Signal::KILL];
        }
    }
}

pub(crate) struct Backend {
    sink: Sink,
    monitor: Monitor,
}

impl Backend {
    pub(crate) fn new(registry: Arc<Registry>, _mark: Option<Mark>) -> Result<Backend, ExecError> {
        Ok(Backend { sink: Sink::new()?, monitor: Monitor::start(Walker { registry })? })
    }

    /// Starts the command. It runs only once it is known, and not when it is to die already.
    pub(crate) fn launch(&self, entry: &Arc<Entry>, launch: Launch) -> Result<Attended, ExecError> {
        let stat = rustix::fs::fstat(&launch.cwd.dir).map_err(io::Error::from)?;
        if stat.st_nlink == 0 {
            return Err(ExecError::CwdUnavailable { path: launch.cwd.path });
        }
        let words = Words::of(&launch)?;
        let (pipes, stdout, stderr) = Pipes::new()?;
        let (control, report) = UnixStream::pair()?;
        let pid = spawn(&words, &stdout, &stderr, &launch.cwd.dir).map_err(|errno| {
            let program = launch.invocation.argv.first();
            spawn_failure(&program.map_or_else(String::new, |p| p.to_string_lossy().into_owned()), errno)
        })?;
        entry.tree.known().command = Some(pid);
        entry.pid.store(pid.unsigned_abs(), Ordering::SeqCst);
        let theirs = Arc::clone(entry);
        let reaper = thread::Builder::new().name("exec-reaper".to_owned());
        if let Err(error) = reaper.spawn(move || reap(&theirs, pid, &report.into())) {
            kill(&[entry]);
            return Err(error.into());
        }
        if entry.is_cancelled() {
            kill(&[entry]);
            return Err(ExecError::Stopped);
        }
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::CONT);
        }
        self.monitor.wake();
        Ok(Attended { control: control.into(), pipes, done: false })
    }

    pub(crate) fn attend(&self, entry: &Arc<Entry>, mut attended: Attended, limits: &Limits) -> Outcome {
        let outcome = unix::attend(entry, &mut attended, limits, &self.sink, &MacHands { entry });
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

    /// There are no marks here.
    pub(crate) fn sweep(&self) {}

    /// Nothing is kept ready here.
    pub(crate) fn rest(&self) {}

    /// The OS lets nobody look at the limits of another process.
    pub(crate) fn is_marking(&self) -> bool {
        false
    }

    /// Whether it is in the process group of one of these, below one, or was so when it was last seen.
    pub(crate) fn holds(&self, entries: &[Arc<Entry>], pid: u32) -> bool {
        let table = table::read();
        entries.iter().any(|entry| {
            let (members, _) = entry.tree.walk(&table);
            members.iter().any(|process| process.pid.unsigned_abs() == pid)
        })
    }

    pub(crate) fn members(&self, entry: &Entry) -> Vec<(u32, String)> {
        let (members, _) = entry.tree.walk(&table::read());
        members.into_iter().map(|process| (process.pid.unsigned_abs(), process.name)).collect()
    }
}

/// Reports the end of the command, and keeps its number taken until the tree is empty.
fn reap(entry: &Entry, pid: i32, report: &OwnedFd) {
    let Some(id) = Pid::from_raw(pid) else { return };
    let status = waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    let code = status.ok().flatten().and_then(|status| {
        status.exit_status().or_else(|| status.terminating_signal().map(|signal| -signal))
    });
    Notice::Exited(code.unwrap_or(-1)).send(report);
    while !entry.tree.walk(&table::read()).0.is_empty() {
        thread::sleep(WALK_EVERY);
    }
    let _ = waitid(WaitId::Pid(id), WaitIdOptions::EXITED);
    entry.tree.known().command = None;
    Notice::Done.send(report);
}

struct MacHands<'a> {
    entry: &'a Entry,
}

impl Hands for MacHands<'_> {
    fn ask_to_stop(&self) {
        let (members, _) = self.entry.tree.walk(&table::read());
        strike(&members, &[Signal::TERM, Signal::CONT]);
    }

    fn kill(&self) {
        kill(&[self.entry]);
    }

    /// The end is reported by a thread of ours, which nobody can stop.
    fn nudge(&self) {}
}

/// What the monitor's thread does here.
struct Walker {
    registry: Arc<Registry>,
}

impl Duties for Walker {
    fn ended(&mut self, entry: &Entry, _done: bool) {
        self.registry.remove(entry);
    }

    fn tick(&mut self) -> Option<Duration> {
        let trees = self.registry.select(|_| true);
        if trees.is_empty() {
            return None;
        }
        let table = table::read();
        for entry in &trees {
            entry.tree.walk(&table);
        }
        Some(WALK_EVERY)
    }
}
