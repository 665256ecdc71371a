//! Which process holds a state folder's lock, by what the OS says. A file could be written by anybody.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod os;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod os;
#[cfg(windows)]
#[path = "windows.rs"]
mod os;

pub(super) use os::{Claim, of};
