//! Verifies one file: its records, and its end by what is beside it.
//!
//! Where a file ends is known from elsewhere. The next file's first record names the last record of a closed one;
//! `audit.head` names the last one known to be on disk of the current one. A file that was copied away from all that
//! verifies with a note that its end is not known.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use crate::anchor::Anchor;
use crate::chain::{ATTEMPTS, Before};
use crate::head::{self, Head, OnDisk};
use crate::key::{AuditKey, Hex, KeyedMac, hex_string, parse_hex};
use crate::line::check;
use crate::names::{HEAD, LOG, Rotated, log_files, log_path, rotated};
use crate::record::MAX_RECORD;
use crate::report::{Fault, Note, Problem, Report};
use crate::verify::{Checked, check_path};

/// Verifies one file, and that it ends where the files beside it say: the next one, or `audit.head` for the current log.
/// What is missing before it shows only in [`crate::verify_all`].
#[must_use]
pub fn verify_file(path: &Path, key: &AuditKey) -> Report {
    Subject { path, key, last_hmac: None, anchor: None }.verify()
}

/// [`verify_file`], and the record with this `hmac` must be in it: with the last one known, kept elsewhere, a cut
/// tail shows.
#[must_use]
pub fn verify_file_against(path: &Path, key: &AuditKey, last_hmac: &str) -> Report {
    Subject { path, key, last_hmac: Some(last_hmac), anchor: None }.verify()
}

/// [`verify_file`] of the log being written in `dir`; the anchor's record must be in it or in a file before it, and the
/// record with `last_hmac`, where one is given, in it.
#[must_use]
pub fn verify_current(
    dir: &Path,
    key: &AuditKey,
    anchor: Option<&Anchor>,
    last_hmac: Option<&str>,
) -> Report {
    Subject { path: &log_path(dir), key, last_hmac, anchor }.verify()
}

/// The file, and what is known of it.
struct Subject<'a> {
    path: &'a Path,
    key: &'a AuditKey,
    last_hmac: Option<&'a str>,
    anchor: Option<&'a Anchor>,
}

/// Who says where a closed file ended.
enum Successor {
    /// The first record of the next file; `None` where it could not be told when that was written.
    Says(Option<(u64, String)>),
    /// There is a next file, and what it says does not verify with this key.
    Unproven,
    /// No file names this one, and there is one being written.
    Nobody,
    /// There is no log beside it.
    NoLog,
}

impl Subject<'_> {
    /// A rotation meanwhile may move the end that was looked for; then look again.
    fn verify(&self) -> Report {
        let names = || rotated(self.dir()).ok();
        for _ in 1..ATTEMPTS {
            let before = names();
            let report = self.verify_once();
            if report.is_ok() || before == names() {
                return report;
            }
        }
        self.verify_once()
    }

    fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    fn verify_once(&self) -> Report {
        let mac = self.key.mac();
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_current = name == LOG;
        // Read before the file: it never runs ahead of it.
        let head = head::read(self.dir(), self.key);
        let given = self.last_hmac.and_then(|text| parse_hex(text.as_bytes()));
        let mut wanted: Vec<Hex> = given.into_iter().collect();
        wanted.extend(self.anchor.map(|anchor| anchor.0.hmac));
        if let OnDisk::Known(head) = &head {
            wanted.push(head.hmac);
        }
        let checked = check_path(self.path, &mac, &wanted, is_current);
        let mut report = Report::default();
        if is_current {
            self.check_head(&head, &checked, &mac, &mut report);
            self.check_anchor(&checked, &mac, &mut report);
        } else if Rotated::parse(name).is_some() {
            self.check_successor(name, &head, &checked, &mac, &mut report);
        }
        if let Some(known) = self.last_hmac
            && !given.is_some_and(|given| checked.has(&given))
        {
            let fault = Fault::TailCut { known_hmac: known.to_owned(), known_seq: None };
            report.problems.push(self.problem(fault));
        }
        let ends = std::mem::take(&mut report.problems);
        checked.into_report(&mut report);
        report.problems.extend(ends);
        report
    }

    fn problem(&self, fault: Fault) -> Problem {
        Problem { path: self.path.to_owned(), line: None, seq: None, fault }
    }

    fn check_head(&self, head: &OnDisk, checked: &Checked, mac: &KeyedMac, report: &mut Report) {
        match head {
            OnDisk::Missing => report.notes.push(Note::NoHead),
            OnDisk::Forged => report.problems.push(Problem {
                path: self.dir().join(HEAD),
                line: None,
                seq: None,
                fault: Fault::HeadForged,
            }),
            OnDisk::Known(head) => self.check_known(head, checked, mac, report),
        }
    }

    fn check_anchor(&self, checked: &Checked, mac: &KeyedMac, report: &mut Report) {
        // One missing end is enough.
        if let Some(anchor) = self.anchor
            && report.is_ok()
        {
            self.check_known(&anchor.0, checked, mac, report);
        }
    }

    /// A record known to be on disk: in the file, or before it when the file is that new.
    fn check_known(&self, known: &Head, checked: &Checked, mac: &KeyedMac, report: &mut Report) {
        // A file that stops verifying half-way has its own problem, and may hold the record after that.
        if checked.has(&known.hmac) || checked.problem.is_some() {
            return;
        }
        let before = Before::of(checked).and_then(|before| before.end);
        let follows = before.is_some_and(|(_, hmac)| hmac.as_bytes() == known.hmac);
        if follows || self.is_in_a_closed_file(&known.hmac, mac) {
            return;
        }
        report.problems.push(
            self.problem(Fault::TailCut { known_hmac: hex_string(&known.hmac), known_seq: Some(known.seq) }),
        );
    }

    fn is_in_a_closed_file(&self, hmac: &Hex, mac: &KeyedMac) -> bool {
        let closed = rotated(self.dir()).unwrap_or_default();
        closed
            .iter()
            .rev()
            .any(|file| check_path(&self.dir().join(&file.name), mac, &[*hmac], false).has(hmac))
    }

    fn check_successor(
        &self,
        name: &str,
        head: &OnDisk,
        checked: &Checked,
        mac: &KeyedMac,
        report: &mut Report,
    ) {
        let unknown = || Note::EndUnknown { path: self.path.to_owned() };
        match self.successor(name, mac) {
            Successor::Says(Some((seq, hmac))) => {
                let ends = &checked.report;
                if checked.problem.is_none()
                    && (ends.last_seq != seq || ends.last_hmac.as_ref() != Some(&hmac))
                {
                    let fault = Fault::EndMismatch { expected_seq: seq, expected_hmac: hmac };
                    report.problems.push(self.problem(fault));
                }
            }
            Successor::Says(None) | Successor::Unproven => report.notes.push(unknown()),
            Successor::Nobody => report.problems.push(self.problem(Fault::Unlinked)),
            // A crash between the two halves of a rotation, or a copy.
            Successor::NoLog => match head {
                OnDisk::Known(head) => self.check_known(head, checked, mac, report),
                OnDisk::Missing | OnDisk::Forged => report.notes.push(unknown()),
            },
        }
    }

    fn successor(&self, name: &str, mac: &KeyedMac) -> Successor {
        let others = log_files(self.dir()).unwrap_or_default();
        let mut found = None;
        for path in others.iter().filter(|path| *path != self.path) {
            let Some((first, is_ours)) = first_record(path, mac) else { continue };
            let before = Before::in_record(&first);
            match before.filter(|before| before.file == name) {
                Some(before) if is_ours => return Successor::Says(before.end),
                Some(_) => found = Some(Successor::Unproven),
                None => {}
            }
        }
        found.unwrap_or(if log_path(self.dir()).exists() { Successor::Nobody } else { Successor::NoLog })
    }
}

/// A file's first record, and whether it verifies.
fn first_record(path: &Path, mac: &KeyedMac) -> Option<(Value, bool)> {
    let mut line = Vec::new();
    let file = File::open(path).ok()?.take(16 * MAX_RECORD as u64);
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    let line = line.strip_suffix(b"\n")?;
    let is_ours = check(line, mac).is_ok();
    Some((serde_json::from_slice(line).ok()?, is_ours))
}
