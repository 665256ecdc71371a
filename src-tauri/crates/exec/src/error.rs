//! What can go wrong before a command runs. Once it runs, there is an [`Outcome`](crate::Outcome), always.

use std::io;
use std::path::PathBuf;

use crate::spec::Shell;

/// Why a command did not start.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The shell asked for is not installed, or not on this OS.
    #[error("the shell {requested} is not installed on this machine")]
    ShellNotAvailable {
        /// As the request named it.
        requested: Shell,
    },
    /// No such program on the PATH, or no file of that name (or its `#!` interpreter is missing).
    #[error("the program {program} was not found")]
    ProgramNotFound {
        /// As the request named it.
        program: String,
    },
    /// The file is there but cannot be run: no permission, or not in a format this OS runs.
    #[error("the file {program} cannot be run as a program")]
    ProgramNotExecutable {
        /// As the request named it.
        program: String,
    },
    /// The working folder was deleted, or may not be entered.
    #[error("the working folder cannot be used")]
    CwdUnavailable {
        /// The path the caller gave; outside the process for logs only.
        path: PathBuf,
    },
    /// The request itself can never run: an empty argv, a NUL, a malformed environment name, too long.
    #[error("the command cannot be run as given: {0}")]
    BadSpec(&'static str),
    /// More process trees than [`MAX_TREES`](crate::MAX_TREES), background ones counted.
    #[error("{running} commands and background processes are running, the most is {limit}: stop some first")]
    TooMany {
        /// Trees alive now.
        running: usize,
        /// The ceiling.
        limit: usize,
    },
    /// Its owner was killed, or the kill switch pressed, while it was being started. It never ran, or is dead.
    #[error("the command was stopped before it had started")]
    Stopped,
    /// [`supervisor::run_if_asked`](crate::supervisor::run_if_asked) was not called at the start of this
    /// process.
    #[error("supervisor::run_if_asked was not called at the start of main")]
    NotSupervisable,
    /// The OS refused: no more processes, handles or memory.
    #[error("the operating system could not start the command: {0}")]
    Io(#[from] io::Error),
}
