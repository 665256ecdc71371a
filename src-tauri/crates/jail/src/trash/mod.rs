//! Deletions that can be undone by the user, in the desktop's own trash.

#[cfg(target_os = "linux")]
mod freedesktop;
#[cfg(target_os = "linux")]
pub(crate) use freedesktop::put;

#[cfg(all(unix, not(target_os = "linux")))]
mod staged;
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use staged::put;

#[cfg(windows)]
mod pinned;
#[cfg(windows)]
pub(crate) use pinned::put;
