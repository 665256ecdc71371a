//! Verifies the records of one file, on all cores.
//!
//! HMACs cost the time; the chain itself is a comparison of strings. So a file is read in batches, each batch is cut at
//! line ends into a part per core, the parts are checked side by side, and then joined in order.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::Value;

use crate::key::{Hex, KeyedMac, hex_string};
use crate::line::{Link, check, check_succession};
use crate::report::{Fault, FileReport, Note, Problem, Report};

/// Bytes each core gets at a time.
const PART: usize = 1 << 20;
/// More cores than this and reading is what takes the time.
const MAX_THREADS: usize = 8;
/// A line beyond this is no record, and is not kept in memory. Far more than [`crate::MAX_RECORD`], for logs from
/// elsewhere.
const MAX_LINE: usize = 16 << 20;

/// What one file holds.
pub(crate) struct Checked {
    pub(crate) report: FileReport,
    pub(crate) problem: Option<Problem>,
    pub(crate) note: Option<Note>,
    /// Of the records that were looked for, those that are there.
    found: Vec<Hex>,
    /// The log's records about itself (`LOG_…`), with their line.
    pub(crate) events: Vec<(u64, Value)>,
}

impl Checked {
    /// Whether a record that was looked for is there.
    pub(crate) fn has(&self, hmac: &Hex) -> bool {
        self.found.contains(hmac)
    }

    /// Adds it to a report.
    pub(crate) fn into_report(self, report: &mut Report) {
        for (line, event) in &self.events {
            self.report_repair(*line, event, report);
        }
        report.notes.extend(self.note);
        report.problems.extend(self.problem);
        report.files.push(self.report);
    }

    fn report_repair(&self, line: u64, event: &Value, report: &mut Report) {
        if event["op"] != "LOG_REPAIRED" {
            return;
        }
        let path = self.report.path.clone();
        let reason = event["details"]["reason"].as_str().unwrap_or("unknown").to_owned();
        if reason == crate::entry::RECORDS_MISSING {
            let known_seq = event["details"]["known_seq"].as_u64().unwrap_or_default();
            let fault = Fault::RecordsMissing { known_seq };
            report.problems.push(Problem { path, line: Some(line), seq: event["seq"].as_u64(), fault });
        } else {
            report.notes.push(Note::Repaired { path, reason });
        }
    }
}

/// Verifies a file as long as it is now, up to its last newline: a writer may go on meanwhile.
pub(crate) fn check_path(path: &Path, mac: &KeyedMac, wanted: &[Hex], is_live: bool) -> Checked {
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    match opened {
        Ok((metadata, _)) if !metadata.is_file() => unreadable(path, "not a plain file"),
        Ok((metadata, file)) => check_stream(path, file, metadata.len(), mac, wanted, is_live),
        Err(error) => unreadable(path, &error.to_string()),
    }
}

fn unreadable(path: &Path, reason: &str) -> Checked {
    let mut progress = Progress::new(path);
    progress.fail(None, None, Fault::Unreadable { reason: reason.to_owned() });
    progress.finish()
}

/// Verifies `length` bytes of a stream that the report calls `path`.
pub(crate) fn check_stream(
    path: &Path,
    input: impl Read,
    length: u64,
    mac: &KeyedMac,
    wanted: &[Hex],
    is_live: bool,
) -> Checked {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let mut input = input.take(length);
    let mut progress = Progress::new(path);
    let mut batch = Vec::new();
    loop {
        let wanted_bytes = (threads * PART) as u64;
        let read = match input.by_ref().take(wanted_bytes).read_to_end(&mut batch) {
            Ok(read) => read,
            Err(error) => {
                progress.fail(None, None, Fault::Unreadable { reason: error.to_string() });
                break;
            }
        };
        progress.bytes += read as u64;
        let whole = batch.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        progress.take_batch(&batch[..whole], threads, mac, wanted);
        batch.drain(..whole);
        if batch.len() > MAX_LINE {
            progress.fail_here(Fault::NotARecord { reason: format!("longer than {MAX_LINE} bytes") });
        }
        if progress.problem.is_some() {
            break;
        }
        if read == 0 {
            progress.take_rest(batch.len() as u64, is_live);
            break;
        }
    }
    progress.finish()
}

/// How far a file has been verified.
struct Progress {
    path: PathBuf,
    bytes: u64,
    records: u64,
    last: Option<Link>,
    problem: Option<Problem>,
    note: Option<Note>,
    found: Vec<Hex>,
    events: Vec<(u64, Value)>,
}

impl Progress {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            bytes: 0,
            records: 0,
            last: None,
            problem: None,
            note: None,
            found: Vec::new(),
            events: Vec::new(),
        }
    }

    fn take_batch(&mut self, lines: &[u8], threads: usize, mac: &KeyedMac, wanted: &[Hex]) {
        let parts = split_at_lines(lines, threads);
        let checked: Vec<Part> = match parts.as_slice() {
            [] => Vec::new(),
            [only] => vec![check_part(only, mac, wanted)],
            several => thread::scope(|scope| {
                let running: Vec<_> =
                    several.iter().map(|part| scope.spawn(move || check_part(part, mac, wanted))).collect();
                running.into_iter().map(|part| part.join().unwrap_or_else(|_| Part::default())).collect()
            }),
        };
        for (part, text) in checked.into_iter().zip(parts) {
            self.join(part, text.len());
            if self.problem.is_some() {
                return;
            }
        }
    }

    /// Takes a part's result after all before it.
    fn join(&mut self, part: Part, bytes: usize) {
        let start = self.records;
        if let Some(first) = &part.first
            && let Err(fault) = check_succession(self.last.as_ref(), first)
        {
            return self.fail(Some(start + 1), Some(first.seq), fault);
        }
        let examined = part.records > 0 || part.bad.is_some();
        if bytes > 0 && !examined {
            return self.fail_here(Fault::Unreadable { reason: "the check of a part stopped".to_owned() });
        }
        self.records += part.records;
        self.found.extend(part.found);
        self.events.extend(part.events.into_iter().map(|(line, event)| (start + line, event)));
        if part.last.is_some() {
            self.last = part.last;
        }
        if let Some((seq, fault)) = part.bad {
            self.fail(Some(self.records + 1), seq, fault);
        }
    }

    fn take_rest(&mut self, bytes: u64, is_live: bool) {
        if bytes > 0 && is_live {
            self.note = Some(Note::HalfLine { path: self.path.clone(), bytes });
        } else if bytes > 0 {
            self.fail_here(Fault::TornEnd { bytes });
        }
    }

    fn fail_here(&mut self, fault: Fault) {
        self.fail(Some(self.records + 1), None, fault);
    }

    fn fail(&mut self, line: Option<u64>, seq: Option<u64>, fault: Fault) {
        if self.problem.is_none() {
            self.problem = Some(Problem { path: self.path.clone(), line, seq, fault });
        }
    }

    fn finish(self) -> Checked {
        let report = FileReport {
            path: self.path,
            records: self.records,
            bytes: self.bytes,
            last_seq: self.last.as_ref().map_or(0, |link| link.seq),
            last_hmac: self.last.as_ref().map(|link| hex_string(&link.hmac)),
        };
        Checked { report, problem: self.problem, note: self.note, found: self.found, events: self.events }
    }
}

/// Cuts lines into at most `count` parts of about the same size, each of whole lines.
fn split_at_lines(mut lines: &[u8], count: usize) -> Vec<&[u8]> {
    let size = lines.len().div_ceil(count).max(64 << 10);
    let mut parts = Vec::new();
    while lines.len() > size {
        let end = lines[size..].iter().position(|&b| b == b'\n').map_or(lines.len(), |at| size + at + 1);
        let (part, rest) = lines.split_at(end);
        parts.push(part);
        lines = rest;
    }
    if !lines.is_empty() {
        parts.push(lines);
    }
    parts
}

/// What one part of a batch holds: everything before its first bad line, and that.
#[derive(Default)]
struct Part {
    records: u64,
    first: Option<Link>,
    last: Option<Link>,
    bad: Option<(Option<u64>, Fault)>,
    found: Vec<Hex>,
    events: Vec<(u64, Value)>,
}

fn check_part(lines: &[u8], mac: &KeyedMac, wanted: &[Hex]) -> Part {
    let mut part = Part::default();
    for line in lines.strip_suffix(b"\n").unwrap_or(lines).split(|&b| b == b'\n') {
        let link = match check(line, mac) {
            Ok(link) => link,
            Err(bad) => {
                part.bad = Some(bad);
                break;
            }
        };
        if part.last.is_some()
            && let Err(fault) = check_succession(part.last.as_ref(), &link)
        {
            part.bad = Some((Some(link.seq), fault));
            break;
        }
        part.records += 1;
        part.found.extend(wanted.iter().find(|wanted| **wanted == link.hmac));
        if link.about_the_log
            && let Ok(event) = serde_json::from_slice(line)
        {
            part.events.push((part.records, event));
        }
        if part.first.is_none() {
            part.first = Some(link.clone());
        }
        part.last = Some(link);
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_lines_and_together_are_everything() {
        let lines: Vec<u8> = (0..40_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        for count in 1..9 {
            let parts = split_at_lines(&lines, count);
            assert!(parts.len() <= count);
            assert!(parts.iter().all(|part| part.ends_with(b"\n")));
            assert_eq!(parts.concat(), lines);
        }
    }
}
