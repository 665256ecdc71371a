use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::VaultError;

/// How often a lock that another process holds is tried again. The OS offers no wait with a deadline.
const RETRY: Duration = Duration::from_millis(10);

/// A lock file shared with the other processes of this installation. The OS drops it when its holder dies.
#[derive(Clone)]
pub(crate) struct LockFile(PathBuf);

/// Held while it lives; other processes, and other threads of this one, wait.
pub struct LockGuard(#[expect(dead_code, reason = "closing the file lets the lock go")] File);

impl LockFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Waits at most `patience`.
    pub(crate) fn hold(&self, patience: Duration) -> Result<LockGuard, VaultError> {
        let file = open(&self.0).map_err(|e| VaultError::io(&self.0, e))?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(LockGuard(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(RETRY),
                Err(TryLockError::WouldBlock) => {
                    return Err(VaultError::Busy { path: self.0.clone(), waited: patience });
                }
                Err(TryLockError::Error(e)) => return Err(VaultError::io(&self.0, e)),
            }
        }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_refused_after_the_patience_and_free_after_the_guard() {
        let dir = tempfile::tempdir().unwrap();
        let lock = LockFile::new(dir.path().join("lock"));
        let guard = lock.hold(Duration::ZERO).unwrap();
        assert!(matches!(lock.hold(Duration::from_millis(30)), Err(VaultError::Busy { .. })));
        drop(guard);
        lock.hold(Duration::ZERO).unwrap();
    }
}
