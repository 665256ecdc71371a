//! Closing a file and starting the next.
//!
//! The next file is made ready, with its space, under another name first; then the old one gets its final name, then the
//! new one, which begins with the old one's end, becomes `audit.log`. A crash in between leaves no `audit.log`, which
//! opening mends the same way: a new file that begins with the old one's end.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::entry::Entry;
use crate::error::AuditError;
use crate::head::Head;
use crate::key::{Hex, hex_string};
use crate::log::site::Site;
use crate::log::state::{SPARE_RECORDS, State};
use crate::names::{LOG, NEXT, stamped};
use crate::os::{self, Allocation, FileId};
use crate::record::{MAX_RECORD, Position, seal};

/// After a rotation that failed, the file grows by this much before the next attempt.
const RETRY_AFTER: u64 = 1 << 20;

/// What a new file's first record says of the one before.
pub(super) struct Predecessor {
    pub(super) name: String,
    /// Its last record; `None` if that is not one of ours.
    pub(super) end: Option<(u64, Hex)>,
}

impl Predecessor {
    fn entry(&self) -> Entry {
        let mut details = Map::new();
        let (seq, hmac) = match &self.end {
            Some((seq, hmac)) => (json!(seq), json!(hex_string(hmac))),
            None => (Value::Null, Value::Null),
        };
        details.insert("previous_file".to_owned(), json!(self.name));
        details.insert("previous_last_hmac".to_owned(), hmac);
        details.insert("previous_seq".to_owned(), seq);
        Entry::event("LOG_ROTATED", details)
    }
}

/// A file whose first record is written, ready to become `audit.log`.
pub(super) struct Started {
    pub(super) file: File,
    pub(super) id: FileId,
    pub(super) size: u64,
    pub(super) hmac: Hex,
    pub(super) ts: f64,
}

/// Creates the next file under its temporary name, claimed and with space for `records`.
pub(super) fn create_next(site: &Site, records: u64) -> Result<File, AuditError> {
    let path = site.dir.join(NEXT);
    match std::fs::remove_file(&path) {
        Ok(()) => {} // left by a crash; it can hold no more than a first record
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(AuditError::io("remove", &path)(error)),
    }
    let file = os::create_log(&path).map_err(AuditError::io("create", &path))?;
    os::claim(&file).map_err(AuditError::io("lock", &path))?;
    let space = (records + SPARE_RECORDS) * MAX_RECORD as u64;
    match os::reserve(&file, 0, space) {
        Ok(Allocation::Done | Allocation::Unsupported) => Ok(file),
        Err(source) => Err(AuditError::NoSpace { path, source }),
    }
}

/// Writes the first record and gives the file its name.
pub(super) fn start(site: &Site, file: File, before: &Predecessor) -> Result<Started, AuditError> {
    let path = site.dir.join(NEXT);
    let (mut line, ts) = (Vec::new(), site.clock.ts());
    let position = Position { seq: 1, prev: None, ts };
    let hmac = seal(&mut line, &before.entry(), &position, &site.identity, &site.mac);
    let written = os::append(&file, &line, 0).and_then(|()| file.sync_data());
    written.map_err(AuditError::io("write", &path))?;
    let id = os::id_of(&file).map_err(AuditError::io("examine", &path))?;
    os::rename_exclusive(&file, &path, &site.path).map_err(AuditError::io("rename", &path))?;
    site.dir_handle.sync().map_err(AuditError::io("sync", &site.dir))?;
    Ok(Started { file, id, size: line.len() as u64, hmac, ts })
}

/// Gives a file a name with the time in it, never one that is taken. Returns the name.
pub(super) fn put_away(site: &Site, file: &File, from: &Path, prefix: &str) -> Result<String, AuditError> {
    for name in stamped(prefix, site.clock.timestamp()) {
        match os::rename_exclusive(file, from, &site.dir.join(&name)) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(AuditError::io("rename", from)(error)),
        }
    }
    Err(AuditError::io("find a free name for", from)(std::io::ErrorKind::AlreadyExists.into()))
}

/// What closed logs' names begin with.
pub(super) fn closed_prefix() -> String {
    format!("{LOG}.")
}

impl State {
    /// Whether the next record belongs into a new file.
    pub(super) fn is_rotation_due(&self, site: &Site, now: f64) -> bool {
        let Some(first_ts) = self.first_ts else { return false };
        let full = self.size >= site.options.rotate_bytes.max(self.rotate_from);
        // A clock that was set back gives a negative age.
        let old = now - first_ts >= site.options.rotate_age.as_secs_f64();
        full || (old && self.size >= self.rotate_from)
    }

    /// Rotation is housekeeping: when it cannot be done now, the record goes into the file there is.
    pub(super) fn rotate_or_postpone(&mut self, site: &Site) -> Result<(), AuditError> {
        match self.rotate(site) {
            Ok(_) => Ok(()),
            Err(error) => {
                self.rotate_from = self.size + RETRY_AFTER;
                if self.failure().is_some() { Err(error) } else { Ok(()) }
            }
        }
    }

    /// Closes the file and starts the next. On an error the file stays the log.
    pub(super) fn rotate(&mut self, site: &Site) -> Result<PathBuf, AuditError> {
        let old = self.working_file()?;
        let Some(last) = self.last else { return Err(AuditError::Empty { path: site.path.clone() }) };
        if let Err(error) = old.sync_data() {
            self.fail(&format!("the log could not be synced: {error}"), true);
            return Err(AuditError::io("sync", &site.path)(error));
        }
        // The head must not stay within the old file: a process killed next looks for it in the new one, whose first
        // record names the old one's last.
        self.note_synced(&Head { seq: self.seq, hmac: last }).map_err(AuditError::io("sync", &site.path))?;
        let next = create_next(site, self.outstanding + 1)?;
        let name = put_away(site, &old, &site.path, &closed_prefix())?;
        let closed = site.dir.join(&name);
        let before = Predecessor { name, end: Some((self.seq, last)) };
        let started = match start(site, next, &before) {
            Ok(started) => started,
            Err(error) => {
                if let Err(undo) = os::rename_exclusive(&old, &closed, &site.path) {
                    self.fail(&format!("a rotation stopped half-way: {error}; {undo}"), false);
                }
                return Err(error);
            }
        };
        // Blocks set aside and not used; they would waste space, no more.
        let _ = old.set_len(self.size);
        self.take_file(started.file, started.id, started.size);
        self.seq = 1;
        self.last = Some(started.hmac);
        self.first_ts = Some(started.ts);
        self.written += 1;
        self.mark_dirty();
        self.ensure_space(site, self.outstanding + 1).map(|()| closed)
    }
}
