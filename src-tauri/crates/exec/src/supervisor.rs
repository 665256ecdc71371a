//! The supervisor: on Linux and Windows every command runs below a small process of its own, started from our
//! own executable.
//!
//! On Linux it is what holds a tree together. As a child subreaper it inherits whatever of the tree loses its
//! parent, so a double fork or a session of its own leads nowhere; and when the program that started it goes
//! away, however suddenly, its control socket closes and it kills the tree. On Windows the job object does
//! that; there the supervisor owns the hidden console of the tree, sets its code page, and sends CTRL_BREAK
//! to it. It is executed with an environment and handles that the command may see: it holds nothing of ours.

use std::sync::atomic::{AtomicBool, Ordering};

static READY: AtomicBool = AtomicBool::new(false);

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

/// Whether this program can start supervisors from its own executable.
pub(crate) fn is_ready() -> bool {
    READY.load(Ordering::Acquire)
}
