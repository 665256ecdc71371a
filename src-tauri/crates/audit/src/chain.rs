//! Verifies all files of a log and the links between them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::anchor::Anchor;
use crate::head::{self, Head, OnDisk};
use crate::key::{AuditKey, Hex, KeyedMac, hex_string};
use crate::names::{HEAD, LOG, log_path, rotated};
use crate::report::{Fault, Note, Problem, Report};
use crate::verify::{Checked, check_path};

/// How often to look at a log that keeps rotating.
pub(crate) const ATTEMPTS: u32 = 10;

/// Verifies every file of the log in `dir`, that each file is there that a later one names, that it ends as that one
/// says, and that the last record known to be on disk (`audit.head`) and the anchor's are there. Works while the log is
/// being written; the anchor is to be read before.
#[must_use]
pub fn verify_all(dir: &Path, key: &AuditKey, anchor: Option<&Anchor>) -> Report {
    // A rotation while the files are looked at may show the log twice or not at all; then look again.
    for _ in 1..ATTEMPTS {
        let before = rotated(dir).ok();
        let report = verify_once(dir, key, anchor);
        if report.is_ok() || before == rotated(dir).ok() {
            return report;
        }
    }
    verify_once(dir, key, anchor)
}

fn verify_once(dir: &Path, key: &AuditKey, anchor: Option<&Anchor>) -> Report {
    let mac = key.mac();
    // Read before the files: it never runs ahead of them.
    let head = head::read(dir, key);
    let mut wanted: Vec<Hex> = anchor.map(|anchor| anchor.0.hmac).into_iter().collect();
    if let OnDisk::Known(head) = &head {
        wanted.push(head.hmac);
    }
    let mut log = Files::new(dir);
    let names = match rotated(dir) {
        Ok(names) => names,
        Err(error) => {
            log.problem(dir.to_owned(), Fault::Unreadable { reason: error.to_string() });
            return log.report;
        }
    };
    for name in names.into_iter().map(|rotated| rotated.name) {
        log.insert(name, &mac, &wanted);
    }
    if log_path(dir).symlink_metadata().is_ok() {
        log.insert(LOG.to_owned(), &mac, &wanted);
    }
    log.check_head(&head);
    log.check_anchor(anchor);
    log.check_links()
}

/// The files by name, and what is known of them.
struct Files<'a> {
    dir: &'a Path,
    checked: BTreeMap<String, Checked>,
    /// Names in the order of age, oldest first.
    order: Vec<String>,
    report: Report,
}

/// What a file's first record says of the one before.
pub(crate) struct Before {
    pub(crate) file: String,
    /// `seq` and `hmac` of its last record; `None` where it could not be told then.
    pub(crate) end: Option<(u64, String)>,
}

impl Before {
    pub(crate) fn of(checked: &Checked) -> Option<Self> {
        let (1, first) = checked.events.first()? else { return None };
        Self::in_record(first)
    }

    pub(crate) fn in_record(first: &Value) -> Option<Self> {
        let details = first.get("details").filter(|_| first["op"] == "LOG_ROTATED")?;
        let file = details["previous_file"].as_str()?.to_owned();
        let end = details["previous_seq"]
            .as_u64()
            .zip(details["previous_last_hmac"].as_str())
            .map(|(seq, hmac)| (seq, hmac.to_owned()));
        Some(Self { file, end })
    }
}

impl<'a> Files<'a> {
    fn new(dir: &'a Path) -> Self {
        Self { dir, checked: BTreeMap::new(), order: Vec::new(), report: Report::default() }
    }

    fn insert(&mut self, name: String, mac: &KeyedMac, wanted: &[Hex]) {
        let checked = check_path(&self.dir.join(&name), mac, wanted, name == LOG);
        self.checked.insert(name.clone(), checked);
        self.order.push(name);
    }

    fn problem(&mut self, path: PathBuf, fault: Fault) {
        self.report.problems.push(Problem { path, line: None, seq: None, fault });
    }

    fn check_head(&mut self, head: &OnDisk) {
        match head {
            OnDisk::Missing if self.checked.is_empty() => {}
            OnDisk::Missing => self.report.notes.push(Note::NoHead),
            OnDisk::Forged => self.problem(self.dir.join(HEAD), Fault::HeadForged),
            OnDisk::Known(head) => self.check_known(head),
        }
    }

    fn check_anchor(&mut self, anchor: Option<&Anchor>) {
        let Some(Anchor(known)) = anchor else { return };
        if self.checked.is_empty() {
            self.report.problems.clear(); // that the head's record is missing says less
            self.problem(log_path(self.dir), Fault::LogMissing { known_seq: known.seq });
        } else if self.report.is_ok() {
            self.check_known(known); // one missing end is enough
        }
    }

    /// A record known to be on disk.
    fn check_known(&mut self, Head { seq, hmac }: &Head) {
        // A file that stops verifying half-way has its own problem, and may hold the record after that.
        let is_there = self.checked.values().any(|file| file.has(hmac) || file.problem.is_some());
        if !is_there {
            let fault = Fault::TailCut { known_hmac: hex_string(hmac), known_seq: Some(*seq) };
            self.problem(log_path(self.dir), fault);
        }
    }

    /// Follows each file to the one before, newest first.
    fn check_links(mut self) -> Report {
        let pruned = self.pruned();
        let named: BTreeSet<String> = self
            .checked
            .values()
            .filter_map(|checked| Before::of(checked).map(|before| before.file))
            .collect();
        let mut visited = BTreeSet::new();
        let mut missing = false;
        while let Some(start) = self.next_start(&visited, &named) {
            if !visited.is_empty() && !missing && !pruned.contains(&start) {
                self.problem(self.dir.join(&start), Fault::Unlinked);
            }
            missing = false;
            let mut current = Some(start);
            while let Some(name) = current.take() {
                visited.insert(name.clone());
                let before = self.checked.get(&name).and_then(Before::of);
                current = before.and_then(|before| self.step(&name, before, &visited, &pruned, &mut missing));
            }
        }
        for name in std::mem::take(&mut self.order).iter().rev() {
            if let Some(checked) = self.checked.remove(name) {
                checked.into_report(&mut self.report);
            }
        }
        self.report
    }

    /// The newest file not looked at yet, one that no other names if there is one.
    fn next_start(&self, visited: &BTreeSet<String>, named: &BTreeSet<String>) -> Option<String> {
        let left = || self.order.iter().rev().filter(|name| !visited.contains(*name));
        left().find(|name| !named.contains(*name)).or_else(|| left().next()).cloned()
    }

    /// From `name` to the file before it, if that is there.
    fn step(
        &mut self,
        name: &str,
        before: Before,
        visited: &BTreeSet<String>,
        pruned: &BTreeSet<String>,
        missing: &mut bool,
    ) -> Option<String> {
        let Some(previous) = self.checked.get(&before.file) else {
            if pruned.contains(&before.file) {
                self.report.notes.push(Note::PrunedBefore { path: self.dir.join(name) });
            } else {
                self.problem(self.dir.join(&before.file), Fault::FileMissing);
                *missing = true;
            }
            return None;
        };
        if let Some((seq, hmac)) = &before.end
            && previous.problem.is_none()
            && (previous.report.last_seq != *seq || previous.report.last_hmac.as_ref() != Some(hmac))
        {
            let fault = Fault::EndMismatch { expected_seq: *seq, expected_hmac: hmac.clone() };
            self.problem(self.dir.join(&before.file), fault);
        }
        (!visited.contains(&before.file)).then_some(before.file)
    }

    /// Names that `LOG_PRUNED` records mention.
    fn pruned(&self) -> BTreeSet<String> {
        let events = self.checked.values().flat_map(|checked| &checked.events);
        let records = events.filter(|(_, event)| event["op"] == "LOG_PRUNED");
        records
            .filter_map(|(_, event)| event["details"]["files"].as_array())
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    }
}
