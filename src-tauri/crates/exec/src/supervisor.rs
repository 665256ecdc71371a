//! The supervisor: on Linux and Windows every command runs below a small process of its own, started from our
//! own executable, or from a smaller one ([`use_program`]).
//!
//! On Linux it is what holds a tree together. As a child subreaper it inherits whatever of the tree loses its
//! parent, so a double fork or a session of its own leads nowhere; and when the program that started it goes
//! away, however suddenly, its control socket closes and it kills the tree. On Windows the job object does
//! that; there the supervisor owns the hidden console of the tree, sets its code page, and sends CTRL_BREAK
//! to it. It is executed with an environment and handles that the command may see: it holds nothing of ours.

use std::io;
use std::path::Path;
#[cfg(windows)]
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static READY: AtomicBool = AtomicBool::new(false);

/// What is started in place of our own executable.
static PROGRAM: OnceLock<Program> = OnceLock::new();

/// A program that can be the supervisor.
pub(crate) struct Program {
    #[cfg(windows)]
    pub(crate) path: PathBuf,
    /// Open, so that a replaced file changes nothing for who runs already.
    #[cfg(target_os = "linux")]
    pub(crate) file: std::fs::File,
}

/// Runs the supervisor and never returns, when this process was started to be one; else returns at once.
///
/// Call it in the first line of `main` of every program that makes a [`Host`](crate::Host): before threads,
/// before arguments are read, before anything secret is in memory. It costs the look at one argument.
pub fn run_if_asked() {
    #[cfg(any(target_os = "linux", windows))]
    if crate::sys::supervisor::is_asked() {
        crate::sys::supervisor::run();
    }
    READY.store(true, Ordering::Release);
}

/// Starts supervisors from another program of ours than this one, whose `main` calls [`run_if_asked`] too. For a program
/// that loads big libraries: their threads would take the signals that a supervisor blocks, and a supervisor of its own
/// would take 70 ms to start where the small program takes 3. Call it once, before the first [`Host`](crate::Host).
///
/// # Errors
///
/// The program cannot be opened.
pub fn use_program(path: &Path) -> io::Result<()> {
    path.metadata()?;
    let program = Program {
        #[cfg(windows)]
        path: path.to_owned(),
        #[cfg(target_os = "linux")]
        file: std::fs::File::open(path)?,
    };
    let _ = PROGRAM.set(program); // the first one stays
    Ok(())
}

/// What [`use_program`] was given.
#[cfg(any(target_os = "linux", windows))]
pub(crate) fn program() -> Option<&'static Program> {
    PROGRAM.get()
}

/// Whether this program can start supervisors from its own executable.
pub(crate) fn is_ready() -> bool {
    READY.load(Ordering::Acquire)
}
