//! What Linux and macOS share: the pipes, the loop that attends a running command, and the thread that looks
//! after what commands leave behind.

mod attend;
mod monitor;
mod notice;
mod pipes;
mod spawn;
mod wake;
mod words;

pub(crate) use attend::{Hands, attend};
pub(crate) use monitor::{Duties, Monitor};
pub(crate) use notice::Notice;
#[cfg(target_os = "linux")]
pub(crate) use notice::Stage;
pub(crate) use pipes::{Attended, Pipes, Sink};
#[cfg(target_os = "linux")]
pub(crate) use spawn::all_signals;
pub(crate) use spawn::spawn;
pub(crate) use wake::Wake;
pub(crate) use words::Words;

use std::time::Duration;

use rustix::io::Errno;

use crate::error::ExecError;

/// From "please stop" to SIGKILL: wire.md, "Commands".
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(2);

/// How long the answer waits for pipes that a background process holds open: wire.md, "Decided details".
pub(crate) const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// What `execve` says, for a person.
pub(crate) fn spawn_failure(program: &str, errno: Errno) -> ExecError {
    let program = program.to_owned();
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG => {
            ExecError::ProgramNotFound { program }
        }
        Errno::ACCESS | Errno::PERM | Errno::NOEXEC | Errno::ISDIR => {
            ExecError::ProgramNotExecutable { program }
        }
        Errno::TOOBIG => ExecError::BadSpec("the arguments and environment are too long"),
        errno => ExecError::Io(errno.into()),
    }
}
