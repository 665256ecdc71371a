//! What stays the same while a log is open: where, whose, with which key.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use crate::entry::{Identity, Options};
use crate::error::AuditError;
use crate::key::{AuditKey, KeyedMac};
use crate::names::{LOCK, log_path};
use crate::os::{self, Dir};
use crate::record::IdentityText;

/// Tells the time. It may jump; nothing but `ts`, names and ages depends on it.
#[derive(Clone)]
pub(super) struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    pub(super) fn system() -> Self {
        Self(Arc::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()))
    }

    #[cfg(test)]
    pub(super) fn of(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Seconds since 1970, to the microsecond.
    pub(super) fn ts(&self) -> f64 {
        (self.0)().as_micros() as f64 / 1e6
    }

    /// For names.
    pub(super) fn timestamp(&self) -> Timestamp {
        let now = (self.0)();
        i64::try_from(now.as_secs())
            .ok()
            .and_then(|seconds| Timestamp::from_second(seconds).ok())
            .unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// A log's fixed surroundings. Holding one is being the writer.
pub(super) struct Site {
    pub(super) dir: PathBuf,
    pub(super) path: PathBuf,
    pub(super) dir_handle: Dir,
    pub(super) key: AuditKey,
    pub(super) mac: KeyedMac,
    pub(super) identity: IdentityText,
    pub(super) options: Options,
    pub(super) clock: Clock,
    /// Locked while we write; the system unlocks it when the process ends, however it ends.
    _lock: File,
}

impl Site {
    /// Makes the folder and takes the lock.
    pub(super) fn take(
        dir: &Path,
        key: AuditKey,
        identity: &Identity,
        options: Options,
        clock: Clock,
    ) -> Result<Self, AuditError> {
        let dir_handle = Dir::open(dir).map_err(AuditError::io("open the folder", dir))?;
        let lock_path = dir.join(LOCK);
        let lock = os::open_private(&lock_path).map_err(AuditError::io("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(AuditError::Busy { path: log_path(dir) }),
            Err(TryLockError::Error(error)) => return Err(AuditError::io("lock", &lock_path)(error)),
        }
        Ok(Self {
            dir: dir.to_owned(),
            path: log_path(dir),
            dir_handle,
            mac: key.mac(),
            key,
            identity: IdentityText::new(identity),
            options,
            clock,
            _lock: lock,
        })
    }
}
