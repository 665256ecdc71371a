//! The supervisor's process, as its parent sees it.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::hunt::Root;
use super::mark;
use super::order::{ARGUMENT, TITLE};
use super::proc::{self, Stat, Struck, strike};
use crate::lineage::Mark;
use crate::supervisor;

/// All supervisors of this process that are not yet reaped: several hosts in one process (tests) must not
/// take one another's for orphans.
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
    /// When it got its order, in the unit of [`Root::started`].
    ordered: u64,
    end: Option<End>,
    reaped: bool,
    finished: bool,
}

/// How it came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// By us, or by itself once its tree was empty.
    Orderly,
    /// Something else killed it, and what it held has come to us.
    Lost,
}

impl Supervisor {
    /// Starts one. It waits for its order, and has the mark by the time it can get one.
    pub(super) fn start(mark: Option<Mark>) -> io::Result<Supervisor> {
        let (ours, theirs) = UnixStream::pair()?;
        let program = supervisor::program().map_or_else(
            || "/proc/self/exe".to_owned(),
            |program| format!("/proc/self/fd/{}", program.file.as_raw_fd()),
        );
        let mut command = Command::new(program);
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
        let supervisor = Supervisor {
            root,
            control: Some(ours.into()),
            ordered: root.started,
            end: None,
            reaped: false,
            finished: false,
        };
        if let Some(Err(error)) = mark.map(|mark| mark::put(pid, mark)) {
            supervisor.dismiss();
            return Err(error);
        }
        Ok(supervisor)
    }

    pub(super) fn root(&self) -> Root {
        self.root
    }

    /// The socket for its order: once.
    pub(super) fn take_control(&mut self) -> io::Result<OwnedFd> {
        self.ordered = proc::now();
        self.control.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// What it holds is younger.
    pub(super) fn ordered(&self) -> u64 {
        self.ordered
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.strike(&[signal]);
    }

    fn strike(&self, signals: &[Signal]) -> Struck {
        if self.reaped {
            return Struck::Gone;
        }
        strike(self.root.pid, signals, |stat| stat.started == self.root.started)
    }

    /// Whether it still waits for its order.
    pub(super) fn is_waiting(&self) -> bool {
        let Some(control) = &self.control else { return false };
        let mut fds = [PollFd::new(control, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }

    /// Kills it, if that is still to do. Several threads may come here: what counts is what the first one
    /// met.
    ///
    /// What matters is whether it could still adopt: as long as it could, all of its tree was below it. After
    /// a kill by somebody else its socket closes a moment before its children come to us, and all that time
    /// it takes signals like a live one.
    pub(super) fn end(&mut self) {
        let is_it_and_adopts = |stat: &Stat| stat.started == self.root.started && !stat.is_ending();
        if self.end.is_none() && !self.reaped {
            match strike(self.root.pid, &[Signal::KILL], is_it_and_adopts) {
                Struck::Alive(_) => self.end = Some(End::Orderly),
                Struck::Dead | Struck::Gone | Struck::Stranger | Struck::Denied => {}
            }
        }
    }

    /// Whether something else killed it, and what it held has come to us. Known once it is reaped.
    pub(super) fn was_lost(&self) -> bool {
        self.end != Some(End::Orderly)
    }

    /// Takes it out of the process table once it is dead, at the latest at `deadline`.
    pub(super) fn reap(&mut self, deadline: Instant) {
        let Some(pid) = Pid::from_raw(self.root.pid) else { return };
        while !self.reaped {
            match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_micros(100)),
                Ok(None) => return,
                Err(Errno::INTR) => {}
                Ok(Some(status)) => {
                    // It exits with 0 when it has nothing left to hold, and in no other case.
                    let orderly = status.exit_status() == Some(0);
                    self.end.get_or_insert(if orderly { End::Orderly } else { End::Lost });
                    self.forget();
                }
                Err(_) => self.forget(),
            }
        }
    }

    fn forget(&mut self) {
        self.reaped = true;
        supervisors().remove(&self.root.pid);
    }

    /// Its whole tree is dead, and nothing more has to be done about it.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// One that is not needed.
    pub(super) fn dismiss(mut self) {
        self.end();
        self.reap(Instant::now() + super::PATIENCE);
    }
}
