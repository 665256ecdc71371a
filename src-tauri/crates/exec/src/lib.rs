//! Commands: shells, a clean environment, process trees that really die, bounded output.
//!
//! A [`Host`] owns every command this process runs. [`Host::start`] takes a typed [`CommandSpec`] and answers
//! a [`Running`]; [`Running::wait`] gives the [`Outcome`]. All calls block; run them on threads that may.
//!
//! What holds, on every OS:
//!
//! - A command sees a clean environment ([`baseline_env`], then the spec's own), an empty stdin, two pipes,
//!   and no handle of ours.
//! - A timeout, [`Canceller::cancel`], [`Host::kill_owner`] and [`Host::kill_all`] end the whole tree, and
//!   return when it is dead. So does dropping a [`Running`], and the end of this process, however it comes.
//! - A process that outlives its command in the background does not delay the answer. It stays on the owner's
//!   account ([`Host::survivors`]) and dies with it.
//! - Output is drained whatever its size, and kept up to a budget shared by stdout and stderr.
//!
//! [`memory`] is about this process alone: it holds frames and output of megabytes for moments.
//!
//! How a tree is held together:
//!
//! - Linux: each command has a supervisor process, a child subreaper ([`supervisor`]). It covers children in
//!   other sessions and process groups, double forks, stopped processes, a supervisor that the command has
//!   killed or stopped, and our own SIGKILL.
//! - Windows: a job object, killed on close, without breakaway. It covers all descendants, and our own end.
//! - macOS: the process group, and a walk of the process table. It covers descendants while their parents
//!   live, and whatever stays in the group. It does **not** cover a process that left both its group and its
//!   parent before a walk saw it, nor anything after our own SIGKILL: the OS has no subreaper.
//!
//! What a command leaves behind that kills this process *and* what holds it is known by its mark, and ended by the
//! next run: see [`lineage`]. The kill switch uses the marks too, since they cost so little to look at that a flood of
//! processes does not outrun it.
//!
//! On Linux and macOS a command that runs as another user (`sudo`) cannot be signalled by an ordinary user; it then
//! sees its pipes close.

mod env;
mod error;
mod host;
pub mod lineage;
mod output;
mod resolve;
mod spec;

#[cfg(unix)]
mod unix;

#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod sys;
#[cfg(target_os = "macos")]
#[path = "macos/mod.rs"]
mod sys;
#[cfg(windows)]
#[path = "windows/mod.rs"]
mod sys;

pub mod memory;
pub mod supervisor;

pub use env::baseline_env;
pub use error::ExecError;
pub use host::{Canceller, Host, MAX_TREES, Outcome, Running, Survivor};
pub use lineage::Mark;
pub use output::TRUNCATION_MARK;
pub use resolve::{resolve_program, resolve_shell};
pub use spec::{CommandSpec, Cwd, Program, Shell};
