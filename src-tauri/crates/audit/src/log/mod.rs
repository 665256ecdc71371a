//! The log being written.
//!
//! Appending happens on the caller's thread, under one mutex: make the line, compute its HMAC, one `write`. A thread
//! of the log's own syncs, at most every [`crate::Options::sync_every`], outside that mutex.

mod open;
mod prune;
mod rotate;
mod site;
mod state;
mod sync;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::anchor::Anchor;
use crate::entry::{Entry, Identity, Options, Repair};
use crate::error::AuditError;
use crate::head::Head;
use crate::key::{AuditKey, hex_string};
use crate::log::site::{Clock, Site};
use crate::log::state::State;

/// The one writer of a log. Clones share it; the last one dropped syncs and closes it.
#[derive(Clone)]
pub struct AuditLog(Arc<Handle>);

/// Closes the log with the last clone, permits included.
struct Handle {
    shared: Arc<Shared>,
    syncer: Option<JoinHandle<()>>,
}

/// What callers and the syncing thread share.
struct Shared {
    site: Site,
    state: Mutex<State>,
    /// Wakes the syncing thread: something to sync, or the end.
    wake: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            // A panic half-way through may have left half a line.
            self.state.clear_poison();
            let mut state = poisoned.into_inner();
            state.fail("a write was interrupted by a panic", false);
            state
        })
    }

    fn after_append(&self, state: &mut State) {
        if state.announce() {
            self.wake.notify_all();
        }
    }
}

impl AuditLog {
    /// Opens the log in `dir`, which is made if need be (mode 0700, the files 0600), and takes it for this process. A
    /// lock left by a process that was killed is no obstacle. Mends what is mendable: [`AuditLog::repairs`].
    ///
    /// # Errors
    /// [`AuditError::Busy`] while another process has it; [`AuditError::NotAFile`] if something else has its name;
    /// [`AuditError::NoSpace`]; [`AuditError::Io`] if it cannot be written.
    pub fn open(
        dir: &Path,
        key: AuditKey,
        identity: Identity,
        options: Options,
    ) -> Result<AuditLog, AuditError> {
        Self::open_with_clock(dir, key, &identity, options, Clock::system())
    }

    fn open_with_clock(
        dir: &Path,
        key: AuditKey,
        identity: &Identity,
        options: Options,
        clock: Clock,
    ) -> Result<AuditLog, AuditError> {
        let site = Site::take(dir, key, identity, options, clock)?;
        let state = State::open(&site)?;
        let shared = Arc::new(Shared { site, state: Mutex::new(state), wake: Condvar::new() });
        let syncer = sync::spawn(Arc::clone(&shared)).map_err(AuditError::io("sync", dir))?;
        let log = AuditLog(Arc::new(Handle { shared, syncer: Some(syncer) }));
        log.sync()?;
        Ok(log)
    }

    /// Sets space aside for one record. To be held before an operation begins; while it is held, the record it stands
    /// for can be written even if the disk fills up.
    ///
    /// # Errors
    /// Any: the operation must be refused. [`AuditError::NoSpace`] may pass by itself; after
    /// [`AuditError::Displaced`] or [`AuditError::Failed`] all are refused until [`AuditLog::try_recover`].
    pub fn reserve(&self) -> Result<Permit, AuditError> {
        self.0.shared.lock().admit(&self.0.shared.site)?;
        Ok(Permit { log: Some(self.clone()) })
    }

    /// Records an event of our own.
    ///
    /// # Errors
    /// Those of [`AuditLog::reserve`] and [`Permit::write`].
    pub fn record(&self, entry: Entry) -> Result<(), AuditError> {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        state.admit(&shared.site)?;
        state.release();
        let result = state.append(&shared.site, &entry);
        shared.after_append(&mut state);
        result
    }

    /// Brings everything recorded so far to the disk: before the kill switch acts for good, and on exit.
    ///
    /// # Errors
    /// [`AuditError::Io`] if the disk refuses; the log counts as failed then.
    pub fn sync(&self) -> Result<(), AuditError> {
        self.0.shared.flush()
    }

    /// Tries to write again after a failure: opens the log anew, mends it, and records what happened (`LOG_REPAIRED`).
    /// Does nothing to a log that works.
    ///
    /// # Errors
    /// As [`AuditLog::open`]; the log stays failed.
    pub fn try_recover(&self) -> Result<(), AuditError> {
        let shared = &self.0.shared;
        shared.lock().recover(&shared.site)?;
        shared.flush()
    }

    /// Why everything is refused at present, if it is.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.0.shared.lock().failure()
    }

    /// What opening and recovering had to mend so far. Worth telling the user: each is also in the log.
    #[must_use]
    pub fn repairs(&self) -> Vec<Repair> {
        self.0.shared.lock().repairs.clone()
    }

    /// Bytes in `audit.log`.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.0.shared.lock().size
    }

    /// `hmac` of the last record. Kept elsewhere, it shows a cut tail: [`crate::verify_file_against`].
    #[must_use]
    pub fn last_hmac(&self) -> Option<String> {
        self.0.shared.lock().last.as_ref().map(hex_string)
    }

    /// The last record, brought to the disk, to be remembered outside of the log's folder; `None` with no record in
    /// `audit.log`. To be renewed before [`AuditLog::prune`], which may delete the file that an older one is in.
    ///
    /// # Errors
    /// Those of [`AuditLog::sync`].
    pub fn anchor(&self) -> Result<Option<Anchor>, AuditError> {
        let anchor = {
            let state = self.0.shared.lock();
            state.last.map(|hmac| Anchor(Head { seq: state.seq, hmac }))
        };
        self.sync()?;
        Ok(anchor)
    }

    /// `seq` of the last record in `audit.log`; 0 with none.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.0.shared.lock().seq
    }

    /// Where `audit.log` is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.shared.site.path
    }

    /// Closes this file and starts the next. Returns the closed one's new path.
    ///
    /// # Errors
    /// [`AuditError::Empty`] with no record in it; else as [`AuditLog::reserve`]. After an error the log goes on in the
    /// file it has, if it can.
    pub fn rotate(&self) -> Result<PathBuf, AuditError> {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        let closed = state.rotate(&shared.site)?;
        shared.after_append(&mut state);
        Ok(closed)
    }

    /// Deletes closed files (and half lines) put away longer than `older_than` ago, once a `LOG_PRUNED` record names
    /// them. Returns the deleted.
    ///
    /// # Errors
    /// Those of [`AuditLog::record`]; [`AuditError::Io`] if a file cannot be deleted.
    pub fn prune(&self, older_than: Duration) -> Result<Vec<PathBuf>, AuditError> {
        prune::prune(self, older_than)
    }

    /// Every line written from now on (without its newline). `capacity` lines wait for a slow reader; when they are
    /// full further lines are left out for it, and it catches up from the file. It ends when the receiver is dropped.
    #[must_use]
    pub fn subscribe(&self, capacity: usize) -> Receiver<Arc<str>> {
        let (sender, receiver) = sync_channel(capacity);
        self.0.shared.lock().subscribers.push(sender);
        receiver
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.wake.notify_all();
        if let Some(syncer) = self.syncer.take() {
            // It panicked, if at all, on its own; closing goes on.
            let _ = syncer.join();
        }
        // Nobody is left to tell; the log is on disk as far as the disk lets it.
        let _ = self.shared.flush();
        self.shared.lock().close();
    }
}

/// The right to write one record: space for it is set aside. Dropped unwritten, it records nothing and frees the space.
#[must_use = "an operation holds its permit until it writes its record"]
pub struct Permit {
    /// Taken by writing.
    log: Option<AuditLog>,
}

impl Permit {
    /// Writes the record. It is on disk within [`crate::Options::sync_every`], or after [`AuditLog::sync`].
    ///
    /// # Errors
    /// [`AuditError`]: the record is not in the log, and everything is refused until [`AuditLog::try_recover`].
    pub fn write(mut self, entry: Entry) -> Result<(), AuditError> {
        let Some(log) = self.log.take() else { return Ok(()) };
        let shared = &log.0.shared;
        let mut state = shared.lock();
        state.release();
        let result = state.append(&shared.site, &entry);
        shared.after_append(&mut state);
        result
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(log) = self.log.take() {
            log.0.shared.lock().release();
        }
    }
}
