//! The one owner of all commands of this process, and what callers hold of a single one.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::env::command_env;
use crate::error::ExecError;
use crate::lineage::Mark;
use crate::resolve::invocation;
use crate::spec::CommandSpec;
use crate::{supervisor, sys};

/// Process trees at one time, those in the background counted. Far above the ten commands at once that the
/// executor admits; it bounds what an agent can leave behind that starts a background process with each
/// command.
pub const MAX_TREES: usize = 128;

/// All process trees of this process. Cheap to clone; when the last clone goes, everything is killed.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    registry: Arc<Registry>,
    backend: sys::Backend,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.kill(|_| true);
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("trees", &self.0.registry.len()).finish_non_exhaustive()
    }
}

/// A process that outlived its command in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Who started the command it comes from.
    pub owner: String,
    /// Its process id.
    pub pid: u32,
    /// Its own name, as the OS gives it.
    pub name: String,
    /// The command it comes from, as that was asked for.
    pub command: String,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Decoded from UTF-8, invalid sequences replaced.
    pub stdout: String,
    /// As stdout; ends with [`TRUNCATION_MARK`](crate::TRUNCATION_MARK) when something was dropped.
    pub stderr: String,
    /// The program's own; −signal when a signal ended it; −1 when it timed out.
    pub exit_code: i32,
    /// The timeout ended it.
    pub timed_out: bool,
    /// A cancel or kill ended it.
    pub cancelled: bool,
    /// From its start to this answer.
    pub duration: Duration,
    /// Some output was dropped.
    pub output_truncated: bool,
}

impl Host {
    /// One for each process.
    ///
    /// # Errors
    /// [`ExecError::NotSupervisable`] when [`supervisor::run_if_asked`] was not called; [`ExecError::Io`]
    /// when the OS lacks what process trees need (`/proc` on Linux) or no thread can be started.
    pub fn new() -> Result<Host, ExecError> {
        Host::with(None)
    }

    /// As [`Host::new`]; all commands get `mark`, where the OS has such: see [`lineage`](crate::lineage).
    ///
    /// # Errors
    /// As [`Host::new`].
    pub fn with_mark(mark: Mark) -> Result<Host, ExecError> {
        Host::with(Some(mark))
    }

    fn with(mark: Option<Mark>) -> Result<Host, ExecError> {
        if !supervisor::is_ready() {
            return Err(ExecError::NotSupervisable);
        }
        let registry = Arc::new(Registry::default());
        let backend = sys::Backend::new(Arc::clone(&registry), mark)?;
        Ok(Host(Arc::new(Inner { registry, backend })))
    }

    /// Starts a command on `owner`'s account (the id of a session). Returns when it runs.
    ///
    /// # Errors
    /// See [`ExecError`]; nothing is left running then.
    pub fn start(&self, owner: &str, spec: CommandSpec) -> Result<Running, ExecError> {
        spec.check()?;
        let env = command_env(&spec.env);
        let invocation = invocation(&spec.program, &env, spec.cwd.path())?;
        let entry = self.0.registry.add(owner, spec.program.display())?;
        let launch = sys::Launch { invocation, env, cwd: spec.cwd };
        let attended = match self.0.backend.launch(&entry, launch) {
            Ok(attended) => attended,
            Err(error) => {
                self.0.registry.remove(&entry);
                return Err(if entry.is_cancelled() { ExecError::Stopped } else { error });
            }
        };
        let started = Instant::now();
        let limits =
            Limits { started, deadline: started.checked_add(spec.timeout), output: spec.output_limit };
        Ok(Running { host: self.clone(), entry, attended: Some(attended), limits })
    }

    /// Kills all of `owner`'s processes, in the background too, and returns when they are dead. A command of
    /// theirs that is being started right now does not come to run; the caller sees to it that no further one
    /// is asked for.
    pub fn kill_owner(&self, owner: &str) {
        self.0.kill(|entry| entry.owner == owner);
    }

    /// Kills everything and returns when it is dead. From any thread, at any time: it takes no lock that
    /// anything holds for longer than a look into a map.
    pub fn kill_all(&self) {
        for entry in self.0.registry.select(|_| true) {
            entry.cancelled.store(true, Ordering::SeqCst);
        }
        self.0.backend.sweep();
        self.0.kill(|_| true);
    }

    /// Whether commands get a mark by which what they leave behind is known in later runs.
    #[must_use]
    pub fn is_marking(&self) -> bool {
        self.0.backend.is_marking()
    }

    /// Whether the process `pid` is a command, or was started by one: of this host, or (on Linux, by its mark) of
    /// any one, an earlier run's too. Knows what each OS knows: on Windows all that is in a job of ours, on macOS
    /// what is in a command's process group or was seen below it.
    #[must_use]
    pub fn is_command(&self, pid: u32) -> bool {
        self.0.backend.holds(&self.0.registry.select(|_| true), pid)
    }

    /// The processes that live on in the background after their command has ended.
    pub fn survivors(&self) -> Vec<Survivor> {
        let ended: Vec<_> =
            self.0.registry.select(|entry| entry.answered.load(Ordering::SeqCst)).into_iter().collect();
        let mut survivors = Vec::new();
        for entry in &ended {
            survivors.extend(self.0.backend.members(entry).into_iter().map(|(pid, name)| Survivor {
                owner: entry.owner.clone(),
                pid,
                name,
                command: entry.command.clone(),
            }));
        }
        survivors
    }
}

impl Inner {
    fn kill(&self, which: impl Fn(&Entry) -> bool) {
        let doomed = self.registry.select(&which);
        for entry in &doomed {
            entry.cancelled.store(true, Ordering::SeqCst);
        }
        if self.registry.len() == doomed.len() {
            self.backend.rest();
        }
        self.backend.kill(&doomed);
    }
}

/// A command that was started. Dropping it kills the tree.
pub struct Running {
    host: Host,
    entry: Arc<Entry>,
    attended: Option<sys::Attended>,
    limits: Limits,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("pid", &self.pid()).finish_non_exhaustive()
    }
}

impl Running {
    /// A handle by which another thread ends it.
    pub fn canceller(&self) -> Canceller {
        Canceller { host: self.host.clone(), entry: Arc::clone(&self.entry) }
    }

    /// The process id of the command itself; 0 when it never told.
    pub fn pid(&self) -> u32 {
        self.entry.pid.load(Ordering::SeqCst)
    }

    /// Waits until the command has ended and its pipes are closed (at most 2 s longer), or it timed out or was
    /// killed.
    pub fn wait(mut self) -> Outcome {
        self.entry.waiting.store(true, Ordering::SeqCst);
        #[expect(clippy::expect_used, reason = "taken here, which consumes the command, and in drop")]
        let attended = self.attended.take().expect("a command is waited for once");
        self.host.0.backend.attend(&self.entry, attended, &self.limits)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(attended) = self.attended.take() {
            self.entry.cancelled.store(true, Ordering::SeqCst);
            self.host.0.backend.kill(&[Arc::clone(&self.entry)]);
            self.host.0.backend.leave(&self.entry, attended);
        }
    }
}

/// Ends one command from any thread.
#[derive(Clone)]
pub struct Canceller {
    host: Host,
    entry: Arc<Entry>,
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("command", &self.entry.id).finish_non_exhaustive()
    }
}

impl Canceller {
    /// Kills the tree. While a thread is in [`Running::wait`], that thread does it and this returns at once;
    /// else this kills, and returns when the tree is dead. After the command has ended it does nothing: what
    /// lives on belongs to the owner.
    pub fn cancel(&self) {
        if self.entry.answered.load(Ordering::SeqCst) {
            return;
        }
        self.entry.cancelled.store(true, Ordering::SeqCst);
        self.entry.tree.interrupt();
        if !self.entry.waiting.load(Ordering::SeqCst) {
            self.host.0.backend.kill(&[Arc::clone(&self.entry)]);
        }
    }
}

/// The bounds of one command.
pub(crate) struct Limits {
    pub(crate) started: Instant,
    /// None: so far away that the clock cannot say it.
    pub(crate) deadline: Option<Instant>,
    pub(crate) output: usize,
}

/// One process tree, from before its first process is there until the last one is gone.
pub(crate) struct Entry {
    id: u64,
    owner: String,
    command: String,
    /// Of the command itself, once it runs.
    pub(crate) pid: AtomicU32,
    /// It is to die, or has died, by a cancel or kill.
    cancelled: AtomicBool,
    /// A thread is in `wait` and will notice `cancelled`.
    waiting: AtomicBool,
    /// `wait` has its answer: whatever lives is in the background.
    pub(crate) answered: AtomicBool,
    pub(crate) tree: sys::Tree,
}

impl Entry {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }
}

/// The entries of all trees. Its lock is held for a look or a change of the map, never while anything waits.
#[derive(Default)]
pub(crate) struct Registry {
    trees: Mutex<HashMap<u64, Arc<Entry>>>,
    last: AtomicU64,
}

impl Registry {
    fn trees(&self) -> MutexGuard<'_, HashMap<u64, Arc<Entry>>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Entered before anything is started, so that a kill at any time finds it.
    fn add(&self, owner: &str, command: String) -> Result<Arc<Entry>, ExecError> {
        let entry = Arc::new(Entry {
            id: self.last.fetch_add(1, Ordering::Relaxed),
            owner: owner.to_owned(),
            command,
            pid: AtomicU32::new(0),
            cancelled: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            answered: AtomicBool::new(false),
            tree: sys::Tree::new()?,
        });
        let mut trees = self.trees();
        if trees.len() >= MAX_TREES {
            return Err(ExecError::TooMany { running: trees.len(), limit: MAX_TREES });
        }
        trees.insert(entry.id, Arc::clone(&entry));
        Ok(entry)
    }

    pub(crate) fn remove(&self, entry: &Entry) {
        self.trees().remove(&entry.id);
    }

    pub(crate) fn select(&self, which: impl Fn(&Entry) -> bool) -> Vec<Arc<Entry>> {
        self.trees().values().filter(|entry| which(entry)).map(Arc::clone).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.trees().len()
    }
}
