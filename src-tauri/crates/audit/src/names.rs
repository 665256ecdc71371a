//! The names of the log's files.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::error::AuditError;

/// The log being written.
pub(crate) const LOG: &str = "audit.log";
/// The next log while it is being started.
pub(crate) const NEXT: &str = "audit.log.new";
/// The last line known to be on disk.
pub(crate) const HEAD: &str = "audit.head";
/// Locked by the writer.
pub(crate) const LOCK: &str = "audit.lock";
/// What half lines are moved to begins so.
pub(crate) const TORN: &str = "audit.log.torn-";

/// `YYYYMMDD-HHMMSS`.
const STAMP: &str = "%Y%m%d-%H%M%S";
const STAMP_LEN: usize = 15;

/// Where the log being written is.
#[must_use]
pub fn log_path(dir: &Path) -> PathBuf {
    dir.join(LOG)
}

/// The log's files, oldest first, the one being written last.
///
/// # Errors
/// [`AuditError::Io`] if the folder cannot be read. No log at all is an empty list.
pub fn log_files(dir: &Path) -> Result<Vec<PathBuf>, AuditError> {
    let mut files: Vec<_> = rotated(dir)?.into_iter().map(|rotated| dir.join(rotated.name)).collect();
    let log = log_path(dir);
    if log.symlink_metadata().is_ok() {
        files.push(log);
    }
    Ok(files)
}

/// A closed log. Ordered by the time in its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rotated {
    stamp: String,
    number: u32,
    pub(crate) name: String,
}

impl Rotated {
    /// Understands `audit.log.YYYYMMDD-HHMMSS[-N]`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let suffix = name.strip_prefix(LOG)?.strip_prefix('.')?;
        let (stamp, rest) = suffix.split_at_checked(STAMP_LEN)?;
        DateTime::strptime(STAMP, stamp).ok()?;
        let number = match rest.strip_prefix('-') {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
            None if rest.is_empty() => 0,
            None => return None,
        };
        Some(Self { stamp: stamp.to_owned(), number, name: name.to_owned() })
    }

    /// When it was closed.
    pub(crate) fn closed_at(&self) -> Option<Timestamp> {
        let time = DateTime::strptime(STAMP, &self.stamp).ok()?;
        time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    }
}

/// The closed logs, oldest first.
pub(crate) fn rotated(dir: &Path) -> Result<Vec<Rotated>, AuditError> {
    let entries = match dir.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(AuditError::io("list", dir)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(AuditError::io("list", dir))?;
        found.extend(entry.file_name().to_str().and_then(Rotated::parse));
    }
    found.sort();
    Ok(found)
}

/// `prefix` + time, then the same with `-1`, `-2`, …
pub(crate) fn stamped(prefix: &str, at: Timestamp) -> impl Iterator<Item = String> {
    let first = format!("{prefix}{}", at.strftime(STAMP));
    let others = first.clone();
    std::iter::once(first).chain((1u32..).map(move |n| format!("{others}-{n}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_time_then_number_and_others_are_not_ours() {
        let names =
            ["audit.log.20240405-120000", "audit.log.20240405-120000-2", "audit.log.20240405-120000-10"];
        let parsed: Vec<_> = names.iter().map(|name| Rotated::parse(name).unwrap()).collect();
        assert!(parsed.is_sorted());
        assert_eq!(parsed[2].closed_at().unwrap().as_second(), 1_712_318_400);
        for other in [
            "audit.log",
            "audit.log.new",
            "audit.log.torn-20240405-120000",
            "audit.log.20240405-120000-",
            "audit.log.20240405-120000.gz",
            "audit.log.20241305-120000",
            "audit.log.20240405-120000-x",
            "audit.log.2024",
            "audit.log.ööööööööööö",
        ] {
            assert_eq!(Rotated::parse(other), None, "{other}");
        }
    }
}
