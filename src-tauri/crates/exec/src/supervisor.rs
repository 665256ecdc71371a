//! The supervisor: on Linux every command runs below a small process of its own, started from our own executable.
//!
//! It is what holds a tree together. As a child subreaper it inherits whatever of the tree loses its parent, so a double fork
//! or a session of its own leads nowhere; and when the program that started it goes away, however suddenly, its control
//! socket closes and it kills the tree. It is executed with an empty environment and no handle but that socket: it holds
//! nothing of ours that a command could read.

use std::sync::atomic::{AtomicBool, Ordering};

static READY: AtomicBool = AtomicBool::new(false);

/// Runs the supervisor and never returns, when this process was started to be one; else returns at once.
///
/// Call it in the first line of `main` of every program that makes a [`Host`](crate::Host): before threads, before arguments
/// are read, before anything secret is in memory. It costs the look at one argument.
pub fn run_if_asked() {
    #[cfg(target_os = "linux")]
    if crate::sys::supervisor::is_asked() {
        crate::sys::supervisor::run();
    }
    READY.store(true, Ordering::Release);
}

/// Whether this program can start supervisors from its own executable.
pub(crate) fn is_ready() -> bool {
    READY.load(Ordering::Acquire)
}
