//! Starting a command on a supervisor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::Launch;
use super::order;
use super::process::Supervisor;
use crate::error::ExecError;
use crate::host::Entry;
use crate::spec::Cwd;
use crate::unix::{Attended, Notice, Pipes, Stage, Words, spawn_failure};

/// A command that has not begun to run by then hangs in the start itself: its program or folder is on a file
/// system that does not answer.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// A supervisor that does not answer may be stopped.
const NUDGE_EVERY: Duration = Duration::from_millis(100);

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

    /// Runs the command on `supervisor`, which becomes the entry's. None: the supervisor had been killed
    /// before it read the order, and another one may get it. On an error the caller kills the entry's tree.
    pub(super) fn run_on(
        &self,
        mut supervisor: Supervisor,
        entry: &Entry,
    ) -> Result<Option<Attended>, ExecError> {
        let control = supervisor.take_control()?;
        let former = entry.tree.supervisor().replace(supervisor);
        if let Some(former) = former {
            former.dismiss();
        }
        // A kill that came before this line saw no supervisor, and left the flag; one that comes after it
        // sees the supervisor. Only now is there an order, so what was to die never begins.
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
            // Whoever killed it after it had read its order (a kill of ours, or the command at once) has had
            // the command too, or will when that is waited for.
            Ok(Some(Notice::Exited(_) | Notice::Done) | None) if entry.is_cancelled() => {
                Err(ExecError::Stopped)
            }
            Ok(Some(Notice::Exited(_) | Notice::Done) | None) => {
                Ok(Some(Attended { control, pipes, done: false }))
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
