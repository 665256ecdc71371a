//! Starting supervisors, and commands on them.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::Launch;
use super::hunt::Root;
use super::order::{self, ARGUMENT, TITLE, Words};
use super::proc::strike;
use crate::error::ExecError;
use crate::host::Entry;
use crate::spec::Cwd;
use crate::unix::{Attended, Notice, Pipes, Stage, spawn_failure};

/// A command that has not begun to run by then hangs in the start itself: its program or folder is on a file system that does
/// not answer.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// A supervisor that does not answer may be stopped.
const NUDGE_EVERY: Duration = Duration::from_millis(100);

/// All supervisors of this process that are not yet reaped: several hosts in one process (tests) must not take one another's for
/// orphans.
static SUPERVISORS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn supervisors() -> MutexGuard<'static, BTreeSet<i32>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn known_supervisors() -> BTreeSet<i32> {
    supervisors().clone()
}

/// A supervisor process: a child of ours, not reaped by anybody else.
pub(super) struct Supervisor {
    root: Root,
    control: Option<OwnedFd>,
    reaped: bool,
}

impl Supervisor {
    /// Starts one from our own executable. It waits for its order.
    pub(super) fn start() -> io::Result<Supervisor> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0(TITLE).arg(ARGUMENT).env_clear();
        // Set in an AppImage, and needed to load this executable. It is no secret, and goes no further.
        if let Some(libraries) = std::env::var_os("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        let pid = child.id().cast_signed();
        supervisors().insert(pid);
        // A child that is not yet reaped has an entry in /proc, dead or alive.
        let root = Root::of(pid)?;
        Ok(Supervisor { root, control: Some(ours.into()), reaped: false })
    }

    pub(super) fn root(&self) -> Root {
        self.root
    }

    pub(super) fn signal(&self, signal: Signal) {
        if !self.reaped {
            strike(self.root.pid, &[signal], |stat| stat.started == self.root.started);
        }
    }

    /// Whether it still waits for its order.
    pub(super) fn is_waiting(&self) -> bool {
        let Some(control) = &self.control else { return false };
        let mut fds = [PollFd::new(control, PollFlags::IN)];
        poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }

    /// Takes it out of the process table once it is dead, at the latest at `deadline`.
    pub(super) fn reap(&mut self, deadline: Instant) {
        let Some(pid) = Pid::from_raw(self.root.pid) else { return };
        while !self.reaped {
            match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_micros(100)),
                Ok(None) => return,
                Err(Errno::INTR) => {}
                Ok(Some(_)) | Err(_) => {
                    self.reaped = true;
                    supervisors().remove(&self.root.pid);
                }
            }
        }
    }

    /// One that is not needed.
    pub(super) fn dismiss(mut self) {
        self.signal(Signal::KILL);
        self.reap(Instant::now() + super::PATIENCE);
    }
}

/// A command ready to be ordered.
pub(super) struct Ready {
    words: Words,
    cwd: Cwd,
    program: String,
}

impl Ready {
    pub(super) fn new(launch: Launch) -> Result<Ready, ExecError> {
        let words = Words::of(&launch)?;
        let stat = rustix::fs::fstat(&launch.cwd.dir).map_err(io::Error::from)?;
        if stat.st_nlink == 0 {
            return Err(ExecError::CwdUnavailable { path: launch.cwd.path });
        }
        let program =
            launch.invocation.argv.first().map_or_else(String::new, |p| p.to_string_lossy().into_owned());
        Ok(Ready { words, cwd: launch.cwd, program })
    }

    /// Runs the command on `supervisor`, which becomes the entry's. None: the supervisor had been killed before it read the order, and
    /// another one may get it. On an error the caller kills the entry's tree.
    pub(super) fn run_on(
        &self,
        mut supervisor: Supervisor,
        entry: &Entry,
    ) -> Result<Option<Attended>, ExecError> {
        let control = supervisor.control.take();
        let former = entry.tree.supervisor().replace(supervisor);
        if let Some(former) = former {
            former.dismiss();
        }
        let control = control.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        // A kill that came before this line saw no supervisor, and left the flag; one that comes after it sees the
        // supervisor. Only now is there an order, so what was to die never begins.
        if entry.is_cancelled() {
            return Err(ExecError::Stopped);
        }
        let (pipes, stdout, stderr) = Pipes::new()?;
        match order::send(&control, &self.words, &stdout, &stderr, &self.cwd.dir) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
            sent => sent?,
        }
        drop((stdout, stderr));
        match first_notice(entry, &control) {
            Ok(Some(Notice::Started(pid))) => {
                entry.pid.store(pid.unsigned_abs(), Ordering::SeqCst);
                Ok(Some(Attended { control, pipes, done: false }))
            }
            Ok(Some(Notice::Failed(stage, errno))) => Err(self.failure(stage, errno)),
            Ok(Some(Notice::Exited(_) | Notice::Done) | None) => {
                Err(ExecError::Io(io::Error::other("the supervisor of the command ended")))
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn failure(&self, stage: Stage, errno: i32) -> ExecError {
        let errno = Errno::from_raw_os_error(errno);
        match stage {
            Stage::Cwd => ExecError::CwdUnavailable { path: self.cwd.path.clone() },
            Stage::Order => ExecError::Io(errno.into()),
            Stage::Spawn => spawn_failure(&self.program, errno),
        }
    }
}

fn first_notice(entry: &Entry, control: &OwnedFd) -> io::Result<Option<Notice>> {
    let deadline = Instant::now() + START_PATIENCE;
    let nudge = rustix::event::Timespec::try_from(NUDGE_EVERY).ok();
    loop {
        match Notice::receive(control) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut fds = [PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN)];
        if poll(&mut fds, nudge.as_ref()) == Ok(0)
            && let Some(supervisor) = entry.tree.supervisor().as_ref()
        {
            supervisor.signal(Signal::CONT);
        }
    }
}
