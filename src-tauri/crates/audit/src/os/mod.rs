//! What differs between systems: private files, space ahead of the end, who else touches the log.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::*;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
use macos::allocate;

#[cfg(all(unix, not(target_os = "macos")))]
mod linux;
#[cfg(all(unix, not(target_os = "macos")))]
use linux::allocate;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;

/// Whether the log is still the file we write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(windows, expect(dead_code, reason = "there the share mode keeps it in place"))]
pub(crate) enum Presence {
    InPlace,
    Gone,
    Replaced,
    /// Somebody else appended to it or cut it.
    Resized,
}

/// Whether space could be set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allocation {
    Done,
    /// The file system cannot do that.
    Unsupported,
}
