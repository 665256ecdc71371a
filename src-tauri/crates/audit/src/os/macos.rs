//! macOS: `F_PREALLOCATE`.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

/// Gives the file blocks for `length` bytes more than it has blocks for; its length stays. Allocation counts from the
/// physical end, so that blocks given before and not used yet make it more than asked for, never less.
pub(super) fn allocate(file: &File, _from: u64, length: u64) -> Result<(), Errno> {
    let length = libc::off_t::try_from(length).map_err(|_| Errno::FBIG)?;
    let mut store = libc::fstore_t {
        fst_flags: libc::F_ALLOCATEALL,
        fst_posmode: libc::F_PEOFPOSMODE,
        fst_offset: 0,
        fst_length: length,
        fst_bytesalloc: 0,
    };
    // SAFETY: the descriptor is open for as long as `file` is borrowed, and F_PREALLOCATE reads and writes one
    // fstore_t, which `store` is and outlives the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PREALLOCATE, &raw mut store) };
    if done == -1 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        return Err(Errno::from_raw_os_error(errno));
    }
    Ok(())
}
