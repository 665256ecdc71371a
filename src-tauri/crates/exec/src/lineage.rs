//! Which processes come from commands, told by the kernel whatever they do about it.
//!
//! On Linux every command is marked before it runs, by two hard resource limits that nothing uses any more (of file
//! locks and of resident memory). Each process inherits them; anybody may lower its own, and only who has
//! `CAP_SYS_RESOURCE` may raise them. So a mark can be spoilt, which shows, and never be taken off or changed into
//! another: not by `setsid`, `env -i`, `exec`, a double fork or a user namespace, and not by killing whatever held
//! the process. It is how a survivor of an earlier run is known, without a note that it could have forged.
//!
//! What has no mark: what a command asks *another* program of the person to start, and what runs as root. Where the
//! marks cannot be put (the limits are lower already) there are none, and [`Host::is_marking`](crate::Host::is_marking)
//! says so.
//!
//! On Windows nothing outlives its job, which ends with this process; on macOS nothing can be told of a process that
//! has left its group and its parent.

use crate::sys;

/// What tells the commands of one installation from those of another: a number that its program gives itself, the
/// same at each start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(pub u32);

/// Whether this very process is a command, or was started by one: of any installation. Where the OS does not tell
/// (macOS, Windows), false.
#[must_use]
pub fn is_inside_command() -> bool {
    sys::is_inside_command()
}

/// Whether the process `pid` is a command or was started by one, of any installation, as the OS tells without being
/// told who started what: on Linux by the mark. False for all when this process is inside one itself.
#[must_use]
pub fn is_marked(pid: u32) -> bool {
    sys::is_marked(pid)
}

/// Kills what commands of this installation have left behind, and returns how many processes that were, when they
/// are dead. For when no [`Host`](crate::Host) of the installation runs: its commands are killed too.
///
/// A process whose mark is spoilt may be anybody's command, and is killed as well. Inside a command this does
/// nothing: there, everything is marked.
pub fn end_survivors(mark: Mark) -> usize {
    sys::end_survivors(mark)
}
