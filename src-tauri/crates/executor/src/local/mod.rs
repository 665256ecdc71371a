//! The local socket: how `deskhand status`, `stop`, `pause`, … reach the process that runs.
//!
//! One process of a state folder holds an [`Instance`], and with it a [`Server`]: a Unix socket (0600) or a named pipe (an
//! access list with the current user alone, no remote clients). A [`Client`] finds it through a small file in the
//! state folder, so that both ends need to agree on nothing but that folder. They talk JSON lines, see [`Request`] and
//! [`Answer`].
//!
//! What holds:
//! - Nobody but the same user is heard, and nobody is believed to be Deskhand but the process that holds the instance, by
//!   what the kernel says of the lock and of the socket. What files in the state folder say leads to it and proves nothing.
//! - The agent's own commands run as the same user. A peer that descends from this process, or whose descent cannot
//!   be told, or that `exec` knows as a command (on Linux by its mark, so that a survivor of an earlier run is one too), may ask for the status and may make things safer (`stop`, `pause`, `disconnect`). It may not connect, resume,
//!   reload, rotate or watch, and it has slots of its own, so that it cannot keep the person out.
//!   What this cannot see: a process that the agent makes *another* program of the person start (`systemd-run --user`, a
//!   scheduled job, a terminal multiplexer that is already there). Whoever allows a command allows what it can do as that user.
//! - `stop` passes the executor by: the server has a thread and a runtime of its own, the kill switch another thread, both
//!   started beforehand, and neither waits for anything of the executor's.
//! - Lines, connections and waits are bounded.

mod client;
mod endpoint;
mod force;
mod holder;
mod host;
mod instance;
mod line;
mod message;
mod peer;
mod server;
mod stop;
#[cfg(test)]
mod tests;

#[cfg(unix)]
#[path = "unix.rs"]
mod os;
#[cfg(windows)]
#[path = "windows.rs"]
mod os;

pub use client::{Client, ClientError, Watch, is_inside_command};
pub use force::{ForceError, force_stop};
pub use instance::{Instance, InstanceError};
pub use message::{Answer, Refusal, Request};
pub use server::{Host, LocalError, Server, Setup};
