//! By a record lock beside the lock: of those the kernel tells the process, of the lock itself it does not. A process
//! loses its record locks on a file when it closes any handle of it, so that the holder must not look at its own.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const FILE: &str = "deskhand.holder";

/// What this process holds.
static HELD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn held() -> MutexGuard<'static, Vec<PathBuf>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The record lock of the holder.
#[derive(Debug)]
pub(in super::super) struct Claim {
    path: PathBuf,
    _file: File,
}

impl Claim {
    pub(in super::super) fn take(state_dir: &Path) -> io::Result<Self> {
        let path = path(state_dir);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path)?;
        let mut lock = whole_file();
        // SAFETY: the handle is open, and the structure is the one that this command reads.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw mut lock) } == -1 {
            return Err(io::Error::last_os_error());
        }
        held().push(path.clone());
        Ok(Self { path, _file: file })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        held().retain(|held| *held != self.path);
    }
}

fn path(state_dir: &Path) -> PathBuf {
    std::fs::canonicalize(state_dir).unwrap_or_else(|_| state_dir.to_owned()).join(FILE)
}

fn whole_file() -> libc::flock {
    libc::flock {
        l_start: 0,
        l_len: 0,
        l_pid: 0,
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
    }
}

/// The process that holds the state folder. What a file says does not count.
pub(in super::super) fn of(_lock: &File, state_dir: &Path, _said: Option<u32>) -> Option<u32> {
    let path = path(state_dir);
    if held().contains(&path) {
        return Some(std::process::id());
    }
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    let mut lock = whole_file();
    // SAFETY: the handle is open, and the structure is the one that this command reads and fills.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
    let is_held = asked != -1 && lock.l_type != libc::F_UNLCK as libc::c_short;
    u32::try_from(lock.l_pid).ok().filter(|pid| is_held && *pid != 0)
}
