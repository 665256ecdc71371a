//! The thread that brings the log to the disk.

use std::io;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::error::AuditError;
use crate::log::Shared;

/// Starts it.
pub(super) fn spawn(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("audit-sync".to_owned()).spawn(move || run(&shared))
}

/// Waits for something to sync, lets it gather for a while, syncs, until the log closes.
fn run(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        while !state.dirty && !state.stopping {
            state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let due = Instant::now() + shared.site.options.sync_every;
        while !state.stopping {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = shared.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.stopping {
            return; // closing flushes
        }
        drop(state);
        // A failure stops the log; the next operation says so.
        let _ = shared.flush();
        state = shared.lock();
    }
}

impl Shared {
    /// Brings everything written so far to the disk, then says so in `audit.head`. Writers go on meanwhile.
    pub(super) fn flush(&self) -> Result<(), AuditError> {
        let Some(to_sync) = self.lock().take_unsynced() else {
            return Err(AuditError::Failed { reason: "the log is not open".to_owned() });
        };
        let result = to_sync.file.sync_data();
        let mut state = self.lock();
        match result.and_then(|()| state.synced(&to_sync)) {
            Ok(()) => Ok(()),
            Err(error) => {
                // What the disk lost it does not report twice, so a later sync that works proves nothing.
                state.fail(&format!("the log could not be synced: {error}"), true);
                Err(AuditError::io("sync", &self.site.path)(error))
            }
        }
    }
}
