//! The audit log as a list: where each record is, so that any page of it can be read at once.
//!
//! The index takes 24 bytes a record and is read on from where it ended. It is made when the first page asks and
//! forgotten with [`Activity::forget`] when nobody looks any more.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use super::sentence;
use super::view::{ActivityRow, ActivitySummary, Filter, Kind};

/// The most rows in one answer.
const MAX_ROWS: usize = 500;

/// The audit log of a folder.
pub(super) struct Activity {
    folder: PathBuf,
    index: Mutex<Option<Index>>,
}

#[derive(Default)]
struct Index {
    /// The oldest first; the last is the one that grows.
    files: Vec<Indexed>,
    rows: Vec<Place>,
    sessions: Vec<String>,
    numbers: HashMap<String, u32>,
    filtered: Option<(Filter, Vec<u32>)>,
}

struct Indexed {
    path: PathBuf,
    length: u64,
}

/// Where a record is, and what filters ask for.
struct Place {
    offset: u64,
    length: u32,
    file: u16,
    kind: Kind,
    /// Counted from 1; 0 is none.
    session: u32,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Record {
    ts: f64,
    seq: u64,
    session_id: Option<String>,
    request_id: Option<String>,
    op: String,
    details: Value,
    result: Value,
}

impl Activity {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), index: Mutex::default() }
    }

    /// Lets the index go.
    pub(super) fn forget(&self) {
        *self.index.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn summary(&self, filter: &Filter) -> io::Result<ActivitySummary> {
        self.with(|index| {
            let total = index.count(filter);
            let sessions = index.sessions.iter().rev().cloned().collect();
            Ok(ActivitySummary { total, sessions })
        })
    }

    /// Rows `offset` and following, the newest first.
    pub(super) fn rows(&self, filter: &Filter, offset: usize, limit: usize) -> io::Result<Vec<ActivityRow>> {
        self.with(|index| {
            let total = index.count(filter);
            let mut rows = Vec::new();
            let mut open: Option<(u16, File)> = None;
            for at in offset..total.min(offset.saturating_add(limit.min(MAX_ROWS))) {
                let place = index.nth(filter, total - 1 - at);
                let file = match open.take() {
                    Some((number, file)) if number == place.file => file,
                    Some(_) | None => File::open(&index.files[usize::from(place.file)].path)?,
                };
                rows.push(row(at, place, &file)?);
                open = Some((place.file, file));
            }
            Ok(rows)
        })
    }

    fn with<T>(&self, read: impl FnOnce(&mut Index) -> io::Result<T>) -> io::Result<T> {
        let mut kept = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let index = kept.get_or_insert_default();
        index.refresh(&self.folder)?;
        read(index)
    }
}

impl Index {
    /// Reads what was written since. A rotation moves what was read to another name: then all is read again.
    fn refresh(&mut self, folder: &Path) -> io::Result<()> {
        let mut paths = audit::log_files(folder).map_err(io::Error::other)?;
        paths.sort_by_key(|path| *path == audit::log_path(folder)); // rotated ones by name, so by time; the current one last
        let same = self.files.iter().map(|file| &file.path).eq(paths.iter());
        let grew = self
            .files
            .iter()
            .all(|file| std::fs::metadata(&file.path).is_ok_and(|metadata| metadata.len() >= file.length));
        if !same || !grew {
            *self = Self::default();
            self.files = paths.into_iter().map(|path| Indexed { path, length: 0 }).collect();
        }
        for number in 0..self.files.len() {
            self.read_on(number)?;
        }
        Ok(())
    }

    fn read_on(&mut self, number: usize) -> io::Result<()> {
        let mut file = File::open(&self.files[number].path)?;
        let mut offset = self.files[number].length;
        if file.metadata()?.len() == offset {
            return Ok(());
        }
        file.seek(SeekFrom::Start(offset))?;
        let mut lines = BufReader::with_capacity(256 << 10, file);
        let mut line = Vec::new();
        let index = u16::try_from(number).map_err(io::Error::other)?;
        loop {
            line.clear();
            // A record is bounded; a longer line is somebody else's, and shown as such by `verify`.
            let read = lines.by_ref().take(audit::MAX_RECORD as u64).read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') && read < audit::MAX_RECORD {
                break; // half a record: it is being written
            }
            if let Ok(head) = serde_json::from_slice::<Head<'_>>(&line) {
                let session = head.session_id.map_or(0, |session| self.number(&session));
                let (kind, length) = (sentence::kind(&head.op), read as u32);
                self.rows.push(Place { offset, length, file: index, kind, session });
            }
            offset += read as u64;
        }
        self.files[number].length = offset;
        Ok(())
    }

    fn number(&mut self, session: &str) -> u32 {
        if let Some(number) = self.numbers.get(session) {
            return *number;
        }
        self.sessions.push(session.to_owned());
        let number = self.sessions.len() as u32;
        self.numbers.insert(session.to_owned(), number);
        number
    }

    fn count(&mut self, filter: &Filter) -> usize {
        if *filter == Filter::default() {
            return self.rows.len();
        }
        let (from, mut found) = match self.filtered.take() {
            Some((before, found)) if before == *filter => {
                (found.last().map_or(0, |last| *last as usize + 1), found)
            }
            Some(_) | None => (0, Vec::new()),
        };
        let wanted = filter.session_id.as_ref().map(|id| self.numbers.get(id).copied().unwrap_or(u32::MAX));
        for (at, place) in self.rows.iter().enumerate().skip(from) {
            let fits = wanted.is_none_or(|session| place.session == session)
                && filter.kind.is_none_or(|kind| place.kind == kind);
            if fits {
                found.push(at as u32);
            }
        }
        let total = found.len();
        self.filtered = Some((filter.clone(), found));
        total
    }

    /// The place of the `at`th oldest; [`Index::count`] was called for this filter.
    fn nth(&self, filter: &Filter, at: usize) -> &Place {
        match &self.filtered {
            Some((before, found)) if before == filter => &self.rows[found[at] as usize],
            Some(_) | None => &self.rows[at],
        }
    }
}

fn row(index: usize, place: &Place, mut file: &File) -> io::Result<ActivityRow> {
    file.seek(SeekFrom::Start(place.offset))?;
    let mut line = vec![0; place.length as usize];
    file.read_exact(&mut line)?;
    let record: Record = serde_json::from_slice(&line)?;
    let (ok, result) = sentence::outcome(&record.result);
    let duration = record.result["duration_ms"].as_u64();
    Ok(ActivityRow {
        index,
        seq: record.seq,
        time: jiff::Timestamp::from_second(record.ts as i64).unwrap_or_default().to_string(),
        session_id: record.session_id,
        kind: place.kind,
        sentence: sentence::sentence(&record.op, &record.details),
        ok,
        result,
        duration_ms: duration.filter(|_| record.request_id.is_some()),
    })
}

#[cfg(test)]
mod tests {
    use audit::{AuditKey, AuditLog, Entry, Identity, Options};
    use serde_json::Map;

    use super::*;

    fn log(folder: &Path) -> AuditLog {
        let identity = Identity { machine_id: "m".into(), shim_version: "1".into() };
        AuditLog::open(folder, AuditKey::new([7; 32]), identity, Options::default()).unwrap()
    }

    fn write(log: &AuditLog, op: &'static str, session: Option<&str>) {
        let mut entry = Entry::event(op, Map::new());
        entry.session_id = session.map(str::to_owned);
        log.record(entry).unwrap();
        log.sync().unwrap();
    }

    #[test]
    fn the_newest_comes_first_and_new_records_are_seen_over_a_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(folder.path());
        let activity = Activity::new(folder.path());
        write(&log, "PAUSED", None);
        write(&log, "FILE_READ", Some("a"));
        let all = Filter::default();
        let ops = |rows: Vec<ActivityRow>| rows.into_iter().map(|row| row.sentence).collect::<Vec<_>>();
        let before = activity.summary(&all).unwrap().total;
        assert_eq!(ops(activity.rows(&all, 0, 2).unwrap()), ["Read something", "Paused"]);
        log.rotate().unwrap();
        write(&log, "FILE_STAT", Some("b"));
        let summary = activity.summary(&all).unwrap();
        assert_eq!(summary.total, before + 2, "the rotation has a record of its own");
        assert_eq!(summary.sessions, ["b", "a"]);
        let rows = ops(activity.rows(&all, 0, 500).unwrap());
        assert_eq!(rows[0], "Looked at something");
        assert_eq!(rows.len(), summary.total);
    }

    #[test]
    fn filters_count_and_page_what_they_let_through() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(folder.path());
        let activity = Activity::new(folder.path());
        for n in 0..30 {
            write(
                &log,
                if n % 3 == 0 { "FILE_READ" } else { "FILE_WRITE" },
                Some(if n < 15 { "a" } else { "b" }),
            );
        }
        let reads = Filter { session_id: Some("a".into()), kind: Some(Kind::Read) };
        assert_eq!(activity.summary(&reads).unwrap().total, 5);
        let rows = activity.rows(&reads, 3, 10).unwrap();
        assert_eq!(rows.iter().map(|row| row.index).collect::<Vec<_>>(), [3, 4]);
        assert!(rows.iter().all(|row| row.kind == Kind::Read && row.session_id.as_deref() == Some("a")));
        write(&log, "FILE_READ", Some("a"));
        assert_eq!(activity.summary(&reads).unwrap().total, 6, "what is filtered grows too");
        let nobody = Filter { session_id: Some("c".into()), kind: None };
        assert_eq!(activity.summary(&nobody).unwrap().total, 0);
        assert!(activity.rows(&nobody, 0, 10).unwrap().is_empty());
    }

    #[test]
    fn lines_that_are_no_records_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(folder.path());
        write(&log, "PAUSED", None);
        drop(log);
        let path = audit::log_path(folder.path());
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"garbage\n");
        text.extend(std::iter::repeat_n(b'x', 200_000));
        text.extend_from_slice(b"\n{\"half\": ");
        std::fs::write(&path, text).unwrap();
        let activity = Activity::new(folder.path());
        let total = activity.summary(&Filter::default()).unwrap().total;
        assert_eq!(activity.rows(&Filter::default(), 0, 500).unwrap().len(), total);
    }
}
