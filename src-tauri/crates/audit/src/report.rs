//! What verification finds.

use std::fmt;
use std::path::PathBuf;

/// What [`crate::verify_file`], [`crate::verify_all`] and [`crate::verify_export`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Each file read, newest first.
    pub files: Vec<FileReport>,
    /// What is wrong: for each file the first bad line, then what is wrong between files.
    pub problems: Vec<Problem>,
    /// What is worth knowing and not wrong.
    pub notes: Vec<Note>,
}

impl Report {
    /// Nothing is wrong.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// Records that verify, in all files.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.files.iter().map(|file| file.records).sum()
    }

    /// Bytes read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            writeln!(f, "{}: {} records, {} bytes", file.path.display(), file.records, file.bytes)?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        for problem in &self.problems {
            writeln!(f, "PROBLEM: {problem}")?;
        }
        write!(f, "{}", if self.is_ok() { "ok" } else { "the log does not verify" })
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Where it is; within an export, its name.
    pub path: PathBuf,
    /// Records before the first bad line.
    pub records: u64,
    /// Bytes read.
    pub bytes: u64,
    /// `seq` of the last good record; 0 with none.
    pub last_seq: u64,
    /// `hmac` of the last good record.
    pub last_hmac: Option<String>,
}

/// Something wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1; `None` when it is not about one line.
    pub line: Option<u64>,
    /// The `seq` that line claims.
    pub seq: Option<u64>,
    /// Why.
    pub fault: Fault,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, " line {line}")?;
        }
        write!(f, ": {}", self.fault)?;
        match (&self.fault, self.seq) {
            (Fault::Tampered, Some(seq)) => write!(f, " at seq {seq}"),
            (Fault::NotARecord { .. }, Some(seq)) => write!(f, " (seq {seq})"),
            _ => Ok(()),
        }
    }
}

/// Why a log does not verify.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The line is no record at all.
    NotARecord {
        /// What it lacks.
        reason: String,
    },
    /// The record was changed after it was written, or written with another key.
    Tampered,
    /// The numbers jump: lines were removed, repeated or moved.
    SequenceGap {
        /// `seq` of the last good record.
        after: u64,
        /// `seq` found.
        found: u64,
    },
    /// The numbers fit and the record names another predecessor.
    ChainBreak {
        /// `seq` of the last good record.
        after: u64,
        /// `seq` found.
        found: u64,
        /// `hmac` of the last good record.
        expected: String,
        /// The `prev_hmac` found.
        names: Option<String>,
    },
    /// The file's first record is not a first one: its beginning was cut.
    BadStart {
        /// `seq` found.
        seq: u64,
    },
    /// A closed file ends in half a line.
    TornEnd {
        /// Bytes after the last newline.
        bytes: u64,
    },
    /// A file that the next one names is not there, and no `LOG_PRUNED` record says it was pruned.
    FileMissing,
    /// The next file names another last record than this one has: its end was cut or it was replaced.
    EndMismatch {
        /// `seq` of the last record, as the next file has it.
        expected_seq: u64,
        /// Its `hmac`.
        expected_hmac: String,
    },
    /// No other file names it as the one before: it does not belong to this log, or files between are missing.
    Unlinked,
    /// A record known to have been written is in no file: the end was cut.
    TailCut {
        /// The `hmac` that is missing.
        known_hmac: String,
        /// Its `seq`, if known.
        known_seq: Option<u64>,
    },
    /// There is no log, and an anchor kept elsewhere says that there was one.
    LogMissing {
        /// `seq` of the record it had.
        known_seq: u64,
    },
    /// `audit.head` was changed, or written with another key.
    HeadForged,
    /// The log says of itself that records went missing (`LOG_REPAIRED`, reason `records_missing`).
    RecordsMissing {
        /// `seq` of the last record known before.
        known_seq: u64,
    },
    /// It cannot be read.
    Unreadable {
        /// What the system said.
        reason: String,
    },
    /// An export's manifest and content differ.
    Manifest {
        /// How.
        reason: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecord { reason } => write!(f, "not a record: {reason}"),
            Self::Tampered => f.write_str("tampered"),
            Self::SequenceGap { after, found } => {
                write!(f, "chain break between {after} and {found} (sequence gap)")
            }
            Self::ChainBreak { after, found, .. } => write!(f, "chain break between {after} and {found}"),
            Self::BadStart { seq } => write!(f, "the first record is seq {seq}: the beginning is missing"),
            Self::TornEnd { bytes } => write!(f, "ends in half a line of {bytes} bytes"),
            Self::FileMissing => f.write_str("the file is missing"),
            Self::EndMismatch { expected_seq, .. } => {
                write!(f, "does not end with the record (seq {expected_seq}) that the next file names")
            }
            Self::Unlinked => f.write_str("no later file names it as the one before"),
            Self::TailCut { known_seq: Some(seq), .. } => {
                write!(f, "the end is missing, up to seq {seq} at least")
            }
            Self::TailCut { known_hmac, .. } => {
                write!(f, "the end is missing: no record has the hmac {known_hmac}")
            }
            Self::LogMissing { known_seq } => {
                write!(f, "the log is gone; it had a record with seq {known_seq}, as is noted with the key")
            }
            Self::HeadForged => f.write_str("changed, or written with another key"),
            Self::RecordsMissing { known_seq } => {
                write!(f, "records up to seq {known_seq} went missing before this one was written")
            }
            Self::Unreadable { reason } => write!(f, "cannot be read: {reason}"),
            Self::Manifest { reason } => f.write_str(reason),
        }
    }
}

/// Worth knowing and not wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The log was mended (`LOG_REPAIRED`).
    Repaired {
        /// The file.
        path: PathBuf,
        /// `details.reason` of the record.
        reason: String,
    },
    /// The history before this file was pruned, as a `LOG_PRUNED` record says.
    PrunedBefore {
        /// The oldest file left.
        path: PathBuf,
    },
    /// The log being written ends in half a line: a write in progress, or a power loss not yet mended.
    HalfLine {
        /// The file.
        path: PathBuf,
        /// Bytes after the last newline.
        bytes: u64,
    },
    /// There is no `audit.head`, so that a cut tail would not show.
    NoHead,
    /// Neither a next file nor `audit.head` is there that verifies and says where this closed file ended.
    EndUnknown {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repaired { path, reason } => write!(f, "{} was repaired: {reason}", path.display()),
            Self::PrunedBefore { path } => write!(f, "what was before {} was pruned", path.display()),
            Self::HalfLine { path, bytes } => {
                write!(f, "{} ends in half a line of {bytes} bytes", path.display())
            }
            Self::EndUnknown { path } => {
                write!(f, "nothing says where {} ended: a cut tail would not show", path.display())
            }
            Self::NoHead => f.write_str("no audit.head: a cut tail would not show"),
        }
    }
}
