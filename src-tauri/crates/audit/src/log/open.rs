//! Opening a log: finds its end, mends what a crash left, starts one where there is none.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;

use crate::anchor::Anchor;
use crate::entry::Repair;
use crate::error::AuditError;
use crate::head::{self, Head, OnDisk};
use crate::key::{Hex, hex_string};
use crate::line::check;
use crate::log::rotate::{Predecessor, closed_prefix, create_next, put_away, start};
use crate::log::site::Site;
use crate::names::{TORN, rotated, stamped};
use crate::os::{self, FileId};
use crate::record::MAX_RECORD;

/// Read backwards in pieces of this size.
const PIECE: u64 = 64 << 10;

/// A log to go on in.
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) id: FileId,
    pub(super) size: u64,
    pub(super) seq: u64,
    pub(super) last: Option<Hex>,
    pub(super) first_ts: Option<f64>,
    /// To be recorded.
    pub(super) repairs: Vec<Repair>,
}

/// The record that a former process left as the last on disk.
pub(super) fn expected(site: &Site) -> Option<Head> {
    match head::read(&site.dir, &site.key) {
        OnDisk::Known(head) => Some(head),
        // With another key the log's own end does not verify either, which is dealt with there.
        OnDisk::Missing | OnDisk::Forged => None,
    }
}

/// Opens the log, which is expected to hold a record.
pub(super) fn open(site: &Site, expected: Option<&Head>) -> Result<Opened, AuditError> {
    let path = &site.path;
    match path.symlink_metadata() {
        Ok(metadata) if !metadata.is_file() => return Err(AuditError::NotAFile { path: path.clone() }),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return begin(site, expected),
        Err(error) => return Err(AuditError::io("examine", path)(error)),
    }
    let file = os::open_log(path).and_then(|file| os::claim(&file).map(|()| file));
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => AuditError::Busy { path: path.clone() },
        _ => AuditError::io("open", path)(error),
    })?;
    let mut repairs = Vec::new();
    let size = cut_half_line(site, &file, &mut repairs)?;
    let Some(line) = last_line(&file, size).map_err(AuditError::io("read", path))? else {
        return resume_empty(site, file, expected, repairs);
    };
    let Ok(link) = check(&line, &site.mac) else {
        return set_aside(site, &file, expected, repairs);
    };
    repairs.extend(
        missing(&file, size, (link.seq, &link.hmac), expected).map_err(AuditError::io("read", path))?,
    );
    let first_ts = first_ts(&file, size).map_err(AuditError::io("read", path))?;
    let id = os::id_of(&file).map_err(AuditError::io("examine", path))?;
    Ok(Opened { file, id, size, seq: link.seq, last: Some(link.hmac), first_ts, repairs })
}

/// There is no log: the first ever, or a crash in a rotation, or somebody deleted it.
fn begin(site: &Site, expected: Option<&Head>) -> Result<Opened, AuditError> {
    if let Some(before) = predecessor(site)? {
        return succeed(site, &before, expected, Vec::new());
    }
    let file = os::create_log(&site.path).map_err(AuditError::io("create", &site.path))?;
    os::claim(&file).map_err(AuditError::io("lock", &site.path))?;
    site.dir_handle.sync().map_err(AuditError::io("sync", &site.dir))?;
    resume_empty(site, file, expected, Vec::new())
}

/// Starts a file after `before`.
fn succeed(
    site: &Site,
    before: &Predecessor,
    expected: Option<&Head>,
    mut repairs: Vec<Repair>,
) -> Result<Opened, AuditError> {
    let started = start(site, create_next(site, 1)?, before)?;
    let ends_as_expected = |head: &Head| before.end == Some((head.seq, head.hmac));
    repairs.extend(expected.filter(|head| !ends_as_expected(head)).map(records_missing));
    Ok(Opened {
        file: started.file,
        id: started.id,
        size: started.size,
        seq: 1,
        last: Some(started.hmac),
        first_ts: Some(started.ts),
        repairs,
    })
}

/// A log without a record: a crash right after its creation, or somebody emptied it.
fn resume_empty(
    site: &Site,
    file: File,
    expected: Option<&Head>,
    mut repairs: Vec<Repair>,
) -> Result<Opened, AuditError> {
    if let Some(before) = predecessor(site)? {
        // A file after another begins with the link to it.
        drop(file);
        std::fs::remove_file(&site.path).map_err(AuditError::io("remove", &site.path))?;
        return succeed(site, &before, expected, repairs);
    }
    repairs.extend(expected.map(records_missing));
    let id = os::id_of(&file).map_err(AuditError::io("examine", &site.path))?;
    Ok(Opened { file, id, size: 0, seq: 0, last: None, first_ts: None, repairs })
}

/// The end is not ours: nothing may be chained to it. The file keeps all it has, for verification to show.
fn set_aside(
    site: &Site,
    file: &File,
    expected: Option<&Head>,
    mut repairs: Vec<Repair>,
) -> Result<Opened, AuditError> {
    let next = create_next(site, 1)?;
    let size = file.metadata().map_err(AuditError::io("examine", &site.path))?.len();
    let holds_expected = match expected {
        Some(head) => mentions(file, size, &head.hmac).map_err(AuditError::io("read", &site.path))?,
        None => true,
    };
    let name = put_away(site, file, &site.path, &closed_prefix())?;
    let started = start(site, next, &Predecessor { name: name.clone(), end: None })?;
    repairs.push(Repair::SetAside { file: name });
    repairs.extend(expected.filter(|_| !holds_expected).map(records_missing));
    Ok(Opened {
        file: started.file,
        id: started.id,
        size: started.size,
        seq: 1,
        last: Some(started.hmac),
        first_ts: Some(started.ts),
        repairs,
    })
}

/// Notes it if the record that is remembered elsewhere is in no file.
pub(super) fn expect_anchor(site: &Site, opened: &mut Opened) -> Result<(), AuditError> {
    let known = |repair: &Repair| matches!(repair, Repair::RecordsMissing { .. });
    let Some(Anchor(anchor)) = &site.options.anchor else { return Ok(()) };
    if opened.repairs.iter().any(known)
        || mentions(&opened.file, opened.size, &anchor.hmac).map_err(AuditError::io("read", &site.path))?
    {
        return Ok(());
    }
    for closed in rotated(&site.dir)?.iter().rev() {
        let path = site.dir.join(&closed.name);
        let file = File::open(&path).map_err(AuditError::io("open", &path))?;
        let size = file.metadata().map_err(AuditError::io("examine", &path))?.len();
        if mentions(&file, size, &anchor.hmac).map_err(AuditError::io("read", &path))? {
            return Ok(());
        }
    }
    opened.repairs.push(records_missing(anchor));
    Ok(())
}

fn records_missing(head: &Head) -> Repair {
    Repair::RecordsMissing { known_seq: head.seq, known_hmac: hex_string(&head.hmac) }
}

/// Whether a record known to have been on disk is no longer there.
fn missing(file: &File, size: u64, end: (u64, &Hex), expected: Option<&Head>) -> io::Result<Option<Repair>> {
    let Some(head) = expected else { return Ok(None) };
    // A process that was killed leaves a head that is some records behind; those name it, as does the first record of
    // a file begun since.
    if end == (head.seq, &head.hmac) || mentions(file, size, &head.hmac)? {
        return Ok(None);
    }
    Ok(Some(records_missing(head)))
}

/// Whether the digits stand anywhere in the file, looking from its end.
fn mentions(file: &File, size: u64, hmac: &Hex) -> io::Result<bool> {
    let mut end = size;
    while end > 0 {
        let from = end.saturating_sub(PIECE);
        // A bit more, for digits that two pieces share.
        let to = (end + hmac.len() as u64).min(size);
        let mut piece = vec![0; (to - from) as usize];
        os::read_at(file, &mut piece, from)?;
        if piece.windows(hmac.len()).any(|window| window == hmac) {
            return Ok(true);
        }
        end = from;
    }
    Ok(false)
}

/// Moves what follows the last newline to a file of its own. Returns the size left.
fn cut_half_line(site: &Site, file: &File, repairs: &mut Vec<Repair>) -> Result<u64, AuditError> {
    let path = &site.path;
    let size = file.metadata().map_err(AuditError::io("examine", path))?.len();
    let whole = end_of_lines(file, size).map_err(AuditError::io("read", path))?;
    if whole == size {
        return Ok(size);
    }
    let torn = keep_half_line(site, file, whole, size)?;
    file.set_len(whole).and_then(|()| file.sync_all()).map_err(AuditError::io("cut", path))?;
    repairs.push(Repair::Torn { file: torn, bytes: size - whole });
    Ok(whole)
}

/// Copies the half line out, on disk before the log is cut.
fn keep_half_line(site: &Site, file: &File, from: u64, to: u64) -> Result<String, AuditError> {
    for name in stamped(TORN, site.clock.timestamp()) {
        let path = site.dir.join(&name);
        let torn = match os::create_private(&path) {
            Ok(torn) => torn,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(AuditError::io("create", &path)(error)),
        };
        let copied = copy(file, from, to, &torn).and_then(|()| torn.sync_all());
        copied.and_then(|()| site.dir_handle.sync()).map_err(AuditError::io("write", &path))?;
        return Ok(name);
    }
    Err(AuditError::io("name a half line of", &site.path)(io::ErrorKind::AlreadyExists.into()))
}

fn copy(file: &File, from: u64, to: u64, target: &File) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let mut piece = vec![0; PIECE.min(to - at) as usize];
        os::read_at(file, &mut piece, at)?;
        os::write_at(target, &piece, at - from)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// Where the last newline before `before` ends; 0 if there is none.
fn end_of_lines(file: &File, before: u64) -> io::Result<u64> {
    let mut end = before;
    while end > 0 {
        let from = end.saturating_sub(PIECE);
        let mut piece = vec![0; (end - from) as usize];
        os::read_at(file, &mut piece, from)?;
        if let Some(at) = piece.iter().rposition(|&b| b == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

/// The last line, without its newline, of a file that ends in one. A line no record of ours could be is shortened: it
/// does not verify either way.
fn last_line(file: &File, size: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(end) = size.checked_sub(1) else { return Ok(None) };
    let from = end_of_lines(file, end)?;
    let mut line = vec![0; (end - from).min(16 * MAX_RECORD as u64) as usize];
    os::read_at(file, &mut line, from)?;
    Ok(Some(line))
}

/// `ts` of the first record, from which the file's age counts.
fn first_ts(file: &File, size: u64) -> io::Result<Option<f64>> {
    let mut piece = vec![0; size.min(16 * MAX_RECORD as u64) as usize];
    os::read_at(file, &mut piece, 0)?;
    let line = piece.split(|&b| b == b'\n').next().unwrap_or_default();
    let record: Option<Value> = serde_json::from_slice(line).ok();
    Ok(record.and_then(|record| record["ts"].as_f64()))
}

/// The closed file that a new one follows: of those that no other names as its own predecessor, the newest.
fn predecessor(site: &Site) -> Result<Option<Predecessor>, AuditError> {
    let names: Vec<String> = rotated(&site.dir)?.into_iter().map(|rotated| rotated.name).collect();
    let named: Vec<String> = names.iter().filter_map(|name| names_before(&site.dir.join(name))).collect();
    let newest = names.iter().rev().find(|name| !named.contains(name)).or(names.last());
    newest.map(|name| end_of(site, name)).transpose()
}

/// The `previous_file` of a file's first record.
fn names_before(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_RECORD as u64).read_to_end(&mut text).ok()?;
    let first: Value = serde_json::from_slice(text.split(|&b| b == b'\n').next()?).ok()?;
    first["details"]["previous_file"].as_str().map(str::to_owned)
}

fn end_of(site: &Site, name: &str) -> Result<Predecessor, AuditError> {
    let path = site.dir.join(name);
    let read = || -> io::Result<Option<Vec<u8>>> {
        let file = File::open(&path)?;
        let size = file.metadata()?.len();
        if end_of_lines(&file, size)? == size { last_line(&file, size) } else { Ok(None) }
    };
    let line = read().map_err(AuditError::io("read", &path))?;
    let link = line.and_then(|line| check(&line, &site.mac).ok());
    Ok(Predecessor { name: name.to_owned(), end: link.map(|link| (link.seq, link.hmac)) })
}
