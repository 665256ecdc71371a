//! Linux: `fallocate` beyond the end.

use std::fs::File;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// Gives the file blocks for `length` bytes from `from` on; its length stays.
pub(super) fn allocate(file: &File, from: u64, length: u64) -> Result<(), Errno> {
    rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, from, length)
}
