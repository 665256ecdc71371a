//! One running process for each state folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::holder;
use crate::mark::mark;

pub(super) const LOCK: &str = "deskhand.lock";
/// For people, and where the OS does not tell who holds the lock.
const PID: &str = "deskhand.pid";

/// The winner of two that start at once has the lock a moment before all of that shows.
const PID_PATIENCE: Duration = Duration::from_secs(1);
/// How often to look meanwhile; what another process does is no event of ours.
const PID_RETRY: Duration = Duration::from_millis(10);

/// The right to be the running process of a state folder. The OS takes it back when the process ends, however it ends,
/// so a file that is left over is no obstacle.
#[derive(Debug)]
pub struct Instance {
    state_dir: PathBuf,
    _lock: File,
    _claim: holder::Claim,
}

/// Why this process cannot be the running one.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// Another one is.
    #[error("deskhand is already running{}: see `deskhand status`; one process serves one state folder ({})",
        .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(), .state_dir.display())]
    Running {
        /// Its process id, if the OS says so.
        pid: Option<u32>,
        /// The folder that both want.
        state_dir: PathBuf,
    },
    /// The lock file cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Instance {
    /// Claims the state folder, which must exist. Does not wait for another process to end. What commands of an earlier
    /// run have left behind is killed, before anything of this run is there.
    ///
    /// # Errors
    /// [`InstanceError::Running`] when another process has it.
    pub fn claim(state_dir: &Path) -> Result<Self, InstanceError> {
        let path = state_dir.join(LOCK);
        let lock = open(&path).map_err(|source| InstanceError::Io { path: path.clone(), source })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = await_holder(&lock, state_dir);
                return Err(InstanceError::Running { pid, state_dir: state_dir.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(InstanceError::Io { path, source }),
        }
        let claim = holder::Claim::take(state_dir)
            .map_err(|source| InstanceError::Io { path: path.clone(), source })?;
        let instance = Self { state_dir: state_dir.to_owned(), _lock: lock, _claim: claim };
        match exec::lineage::end_survivors(mark(state_dir)) {
            0 => {}
            processes => tracing::warn!(
                processes,
                "commands of an earlier run had left processes behind; they were ended"
            ),
        }
        // A file of its own: on Windows nobody else can read a locked one.
        let pid_file = state_dir.join(PID);
        write_whole(&pid_file, &std::process::id().to_string())
            .map_err(|source| InstanceError::Io { path: pid_file, source })?;
        Ok(instance)
    }

    /// The process that runs for this state folder, if one does: its id, or `Some(None)` when the OS does not say. What
    /// files say counts as little as it can: a command may have written them.
    ///
    /// # Errors
    /// The lock file is there and cannot be opened.
    pub fn running(state_dir: &Path) -> io::Result<Option<Option<u32>>> {
        // Shared and not exclusive, so that two who look do not take each other for a running process.
        let lock = match OpenOptions::new().read(true).open(state_dir.join(LOCK)) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match lock.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(holder::of(&lock, state_dir, read_pid(state_dir)))),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The folder it is for.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // While the lock is still held, so that it is not the next one's. Left over, it harms nobody.
        let _ = std::fs::remove_file(self.state_dir.join(PID));
    }
}

fn await_holder(lock: &File, state_dir: &Path) -> Option<u32> {
    let deadline = Instant::now() + PID_PATIENCE;
    loop {
        match holder::of(lock, state_dir, read_pid(state_dir)) {
            Some(pid) => return Some(pid),
            None if Instant::now() >= deadline => return None,
            None => thread::sleep(PID_RETRY),
        }
    }
}

fn read_pid(state_dir: &Path) -> Option<u32> {
    std::fs::read_to_string(state_dir.join(PID)).ok()?.trim().parse().ok()
}

fn open(path: &Path) -> io::Result<File> {
    private().create(true).truncate(false).open(path)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Puts `text` into `path` so that a reader sees all of it or what was there before. For files that only the holder
/// of the instance writes.
pub(super) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = private().create(true).truncate(true).open(&new)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    drop(file);
    std::fs::rename(&new, path)
}
