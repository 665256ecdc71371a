//! Directory handles: the few calls, relative to a handle and never following a link, that everything else is made of.
//! One file for each OS, behind the same names.

#[cfg(unix)]
mod unix;
#[cfg(target_os = "linux")]
pub(crate) use unix::identity_from_memory;
#[cfg(unix)]
pub(crate) use unix::{Dir, display_path, file_meta, identity_at};

#[cfg(windows)]
#[allow(unsafe_code)]
mod nt;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::{Dir, display_path, file_meta, has_recycle_bin, identity_at};

use crate::types::{Identity, Kind};

/// What the system says about one name, links not followed.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) mtime: f64,
    pub(crate) ctime: f64,
    /// Permission bits.
    pub(crate) mode: u32,
    /// User and group, where the system has such.
    pub(crate) owner: Option<(u32, u32)>,
    pub(crate) identity: Identity,
    /// Names that this file has.
    pub(crate) links: u64,
}

/// One name of a directory.
pub(crate) struct Named<'a> {
    pub(crate) name: &'a std::ffi::OsStr,
    /// When the file system tells it for free.
    pub(crate) kind: Option<Kind>,
    pub(crate) hidden: bool,
}

/// What a rename does with what is at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replace {
    /// Fails with `AlreadyExists`.
    Never,
    /// Takes its place, atomically.
    File,
    /// The two change places; `Unsupported` where the system cannot.
    Exchange,
}
