//! The file being written and where in it we are. Everything here runs under the log's mutex.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};

use crate::entry::{Entry, Repair};
use crate::error::AuditError;
use crate::head::{Head, HeadFile};
use crate::key::Hex;
use crate::log::open::{self, Opened};
use crate::log::site::Site;
use crate::names::LOG;
use crate::os::{self, Allocation, FileId, Presence};
use crate::record::{MAX_RECORD, Position, seal};

/// Space is set aside this much further than needed, so that it takes a system call every thousand records or so.
const ALLOCATE_AHEAD: u64 = 1 << 20;
/// Records of our own that fit beside those of the permits: `LOG_ROTATED` and `LOG_REPAIRED`.
pub(super) const SPARE_RECORDS: u64 = 2;

/// Why nothing is accepted at present.
struct Failure {
    reason: String,
    /// The file itself is sound: records of operations under way may still be written.
    sound: bool,
}

pub(super) struct State {
    /// `None` after a recovery that failed.
    file: Option<Arc<File>>,
    id: Option<FileId>,
    pub(super) size: u64,
    /// Blocks are set aside up to here.
    allocated: u64,
    /// The file system cannot set space aside.
    cannot_allocate: bool,
    /// Permits held.
    pub(super) outstanding: u64,
    pub(super) seq: u64,
    pub(super) last: Option<Hex>,
    /// `ts` of the file's first record.
    pub(super) first_ts: Option<f64>,
    /// After a rotation that failed, the size from which on it is tried again.
    pub(super) rotate_from: u64,
    /// Records written since the log was opened, over all files: tells which of two heads is newer.
    pub(super) written: u64,
    /// Up to this many have been synced.
    synced: u64,
    /// Something is not synced yet.
    pub(super) dirty: bool,
    /// The syncing thread has not been told so yet.
    unannounced: bool,
    pub(super) stopping: bool,
    failure: Option<Failure>,
    head: HeadFile,
    /// The line being made; kept for its memory.
    line: Vec<u8>,
    pub(super) subscribers: Vec<SyncSender<Arc<str>>>,
    /// Recorded since the log was opened.
    pub(super) repairs: Vec<Repair>,
    /// To be recorded once the log can be written.
    unrecorded: Vec<Repair>,
}

/// What a sync brings to the disk.
pub(super) struct ToSync {
    pub(super) file: Arc<File>,
    pub(super) written: u64,
    pub(super) head: Option<Head>,
}

impl State {
    /// Opens the log, or starts one.
    pub(super) fn open(site: &Site) -> Result<Self, AuditError> {
        let expected = open::expected(site);
        let mut opened = open::open(site, expected.as_ref())?;
        open::expect_anchor(site, &mut opened)?;
        let mut state = Self {
            file: None,
            id: None,
            size: 0,
            allocated: 0,
            cannot_allocate: false,
            outstanding: 0,
            seq: 0,
            last: None,
            first_ts: None,
            rotate_from: 0,
            written: 0,
            synced: 0,
            dirty: false,
            unannounced: false,
            stopping: false,
            failure: None,
            head: HeadFile::open(&site.dir, &site.key)?,
            line: Vec::with_capacity(4096),
            subscribers: Vec::new(),
            repairs: Vec::new(),
            unrecorded: Vec::new(),
        };
        state.adopt(site, opened)?;
        Ok(state)
    }

    /// Goes on in a file just opened, and records what had to be mended.
    fn adopt(&mut self, site: &Site, opened: Opened) -> Result<(), AuditError> {
        self.take_file(opened.file, opened.id, opened.size);
        self.seq = opened.seq;
        self.last = opened.last;
        self.first_ts = opened.first_ts;
        self.written += 1; // its end may not be the one last synced
        self.mark_dirty();
        self.failure = None;
        self.unrecorded.extend(opened.repairs);
        while let Some(repair) = self.unrecorded.first() {
            let entry = repair.entry();
            self.ensure_space(site, self.outstanding + 1)?;
            self.append(site, &entry)?;
            self.repairs.push(self.unrecorded.remove(0));
        }
        self.ensure_space(site, self.outstanding + 1)
    }

    pub(super) fn take_file(&mut self, file: File, id: FileId, size: u64) {
        self.file = Some(Arc::new(file));
        self.id = Some(id);
        self.size = size;
        self.allocated = size;
        self.rotate_from = 0;
    }

    /// Sets space aside for one more record, or refuses.
    pub(super) fn admit(&mut self, site: &Site) -> Result<(), AuditError> {
        if let Some(failure) = &self.failure {
            return Err(AuditError::Failed { reason: failure.reason.clone() });
        }
        self.check_presence(site)?;
        self.ensure_space(site, self.outstanding + 1)?;
        self.outstanding += 1;
        Ok(())
    }

    pub(super) fn release(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// Writes one record, in the next file if this one is full or old.
    pub(super) fn append(&mut self, site: &Site, entry: &Entry) -> Result<(), AuditError> {
        if let Some(Failure { reason, sound: false }) = &self.failure {
            return Err(AuditError::Failed { reason: reason.clone() });
        }
        let ts = site.clock.ts();
        if self.is_rotation_due(site, ts) {
            self.rotate_or_postpone(site)?;
        }
        let mut line = std::mem::take(&mut self.line);
        let position = Position { seq: self.seq + 1, prev: self.last.as_ref(), ts };
        let hmac = seal(&mut line, entry, &position, &site.identity, &site.mac);
        let written = self.write_line(site, &line);
        if written.is_ok() {
            self.seq += 1;
            self.last = Some(hmac);
            self.first_ts.get_or_insert(ts);
            self.publish(&line);
        }
        self.line = line;
        let presence = os::presence_of(written?.as_ref(), self.size);
        self.insist(site, presence)
    }

    fn write_line(&mut self, site: &Site, line: &[u8]) -> Result<Arc<File>, AuditError> {
        let Some(file) = self.file.clone() else {
            return Err(AuditError::Failed { reason: "the log is not open".to_owned() });
        };
        if let Err(error) = os::append(&file, line, self.size) {
            // Half a line must not stay: the next record would be glued to it.
            let sound = file.set_len(self.size).is_ok();
            self.fail(&format!("a record could not be written: {error}"), sound);
            return Err(AuditError::io("write", &site.path)(error));
        }
        self.size += line.len() as u64;
        self.written += 1;
        self.mark_dirty();
        Ok(file)
    }

    pub(super) fn mark_dirty(&mut self) {
        self.unannounced |= !self.dirty;
        self.dirty = true;
    }

    /// Whether the syncing thread is to be told that there is something to sync: once until it has done so.
    pub(super) fn announce(&mut self) -> bool {
        std::mem::take(&mut self.unannounced)
    }

    fn publish(&mut self, line: &[u8]) {
        if self.subscribers.is_empty() {
            return;
        }
        let text: Arc<str> = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into();
        self.subscribers.retain(|subscriber| match subscriber.try_send(Arc::clone(&text)) {
            Ok(()) | Err(TrySendError::Full(_)) => true,
            Err(TrySendError::Disconnected(_)) => false,
        });
    }

    /// Whether `audit.log` is still our file, with our end.
    fn check_presence(&mut self, site: &Site) -> Result<(), AuditError> {
        let Some(id) = self.id else {
            return Err(AuditError::Failed { reason: "the log is not open".to_owned() });
        };
        let presence = site.dir_handle.presence(LOG, id, self.size);
        self.insist(site, presence)
    }

    /// Fails unless the log is in place.
    fn insist(&mut self, site: &Site, presence: io::Result<Presence>) -> Result<(), AuditError> {
        let what = match presence.map_err(AuditError::io("examine", &site.path))? {
            Presence::InPlace => return Ok(()),
            Presence::Gone => "was deleted",
            Presence::Replaced => "was replaced",
            Presence::Resized => "was changed",
        };
        let error = AuditError::Displaced { path: site.path.clone(), what };
        self.fail(&error.to_string(), false);
        Err(error)
    }

    /// Space for this many records beyond the end, and for the log's own.
    pub(super) fn ensure_space(&mut self, site: &Site, records: u64) -> Result<(), AuditError> {
        let Some(file) = &self.file else {
            return Err(AuditError::Failed { reason: "the log is not open".to_owned() });
        };
        let needed = self.size + (records + SPARE_RECORDS) * MAX_RECORD as u64;
        if needed <= self.allocated {
            return Ok(());
        }
        let ahead = if self.cannot_allocate { needed } else { needed + ALLOCATE_AHEAD };
        // What is set aside already counts, so that a nearly full disk is used to its end.
        let reserve = |to| os::reserve(file, self.allocated.max(self.size), to).map(|done| (done, to));
        match reserve(ahead).or_else(|_| reserve(needed)) {
            Ok((Allocation::Done, to)) => self.allocated = to,
            Ok((Allocation::Unsupported, _)) => self.cannot_allocate = true,
            Err(source) if is_no_space(&source) => {
                return Err(AuditError::NoSpace { path: site.path.clone(), source });
            }
            Err(source) => return Err(AuditError::io("set space aside in", &site.path)(source)),
        }
        Ok(())
    }

    /// Refuses everything from now on.
    pub(super) fn fail(&mut self, reason: &str, sound: bool) {
        match &mut self.failure {
            Some(failure) => failure.sound &= sound,
            None => self.failure = Some(Failure { reason: reason.to_owned(), sound }),
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.as_ref().map(|failure| failure.reason.clone())
    }

    /// The file, if the log can be written.
    pub(super) fn working_file(&self) -> Result<Arc<File>, AuditError> {
        let reason = match (&self.file, &self.failure) {
            (Some(file), None) => return Ok(Arc::clone(file)),
            (_, Some(failure)) => failure.reason.clone(),
            (None, None) => "the log is not open".to_owned(),
        };
        Err(AuditError::Failed { reason })
    }

    /// Opens the log anew after a failure.
    pub(super) fn recover(&mut self, site: &Site) -> Result<(), AuditError> {
        let Some(failure) = &self.failure else { return Ok(()) };
        // Of a recovery that failed, the first cause is what counts.
        if !self.unrecorded.iter().any(|repair| matches!(repair, Repair::WriteFailed { .. })) {
            self.unrecorded.push(Repair::WriteFailed { error: failure.reason.clone() });
        }
        let known = self.last.map(|hmac| Head { seq: self.seq, hmac });
        if let Some(file) = self.file.take() {
            os::disclaim(&file);
        }
        self.id = None;
        let reopened = open::open(site, known.as_ref()).and_then(|opened| self.adopt(site, opened));
        if let Err(error) = &reopened {
            self.dirty = false; // until it is open again
            self.fail(&error.to_string(), false);
        }
        reopened
    }

    /// What there is to sync. Everything until now counts as clean, unless the sync fails.
    pub(super) fn take_unsynced(&mut self) -> Option<ToSync> {
        let file = Arc::clone(self.file.as_ref()?);
        self.dirty = false;
        let head = self.last.map(|hmac| Head { seq: self.seq, hmac });
        Some(ToSync { file, written: self.written, head })
    }

    /// Notes that a sync came through.
    pub(super) fn synced(&mut self, done: &ToSync) -> io::Result<()> {
        if done.written <= self.synced {
            return Ok(());
        }
        self.synced = done.written;
        done.head.as_ref().map_or(Ok(()), |head| self.head.write(head))
    }

    /// Notes that everything written so far is on disk, `head` being the last of it.
    pub(super) fn note_synced(&mut self, head: &Head) -> io::Result<()> {
        self.head.write(head)?;
        self.synced = self.written;
        Ok(())
    }

    /// Gives back the space that was set aside.
    pub(super) fn close(&mut self) {
        if let Some(file) = self.file.take()
            && self.failure.is_none()
        {
            // Blocks beyond the end waste space until the next start, no more.
            let _ = file.set_len(self.size);
        }
    }
}

fn is_no_space(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
