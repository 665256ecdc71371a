//! What can be done beneath a root.

mod copy;
mod delete;
mod list;
mod read;
mod rename;
mod stat;
mod write;

pub(crate) use delete::remove_tree;
pub use list::MAX_ENTRIES;

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::error::{Fault, Outcome};

/// A name for something in the making. Hidden, and not one that somebody would choose; whoever creates it insists that
/// it is new.
pub(crate) fn temporary_name() -> OsString {
    format!(".deskhand-{:016x}.tmp", RandomState::new().build_hasher().finish()).into()
}

/// Ends the operation when it was asked to.
pub(crate) fn check(stop: &dyn Fn() -> bool) -> Outcome<()> {
    if stop() { Err(Fault::Cancelled) } else { Ok(()) }
}
