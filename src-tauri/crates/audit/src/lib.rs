//! The audit log: one HMAC-chained line of JSON for each request and state change.
//!
//! An [`AuditLog`] is the one writer of `audit.log` in its folder. Each line is the RFC 8785 form of a record, with
//! `hmac = HMAC-SHA256(key, record without hmac)` and the line before it named in `prev_hmac`, so that a line
//! that was changed, removed or moved shows. A new file starts with a `LOG_ROTATED` record that names the file before
//! it and its last line, so that a whole file that goes missing shows, and a closed file's cut tail; `audit.head`,
//! authenticated too, names the last line known to be on disk, so that a cut tail of the current file shows.
//!
//! Who can write the folder can put back an older log with its older head, or delete both. That shows against an
//! [`Anchor`]: a record known to be on disk, which the caller keeps where it keeps the key, and renews when it starts and ends
//! and before it prunes. [`verify_all`] and [`verify_current`] look for its record. So does [`AuditLog::open`], which
//! would else begin a new log as if there had been none: it writes a `LOG_REPAIRED` record that verification reports. What
//! was written after the anchor and cut together with the head does not show; a `last_hmac` that a person noted down
//! ([`verify_file_against`]) is an anchor of theirs.
//!
//! The log fails closed. An operation first takes a [`Permit`]; that sets disk space aside for its record, and is
//! refused while the log cannot be written. After a failed write everything is refused until [`AuditLog::try_recover`].
//! On Linux, macOS and Windows space is set aside by allocating ahead of the end of the file. On file systems without
//! that, free space is checked instead (not on Windows), and a disk that fills between permit and record is a failed
//! write.
//!
//! A record is at most [`MAX_RECORD`] bytes. Longer strings, arrays and objects are cut, and the place says how much
//! there was: a string keeps its beginning followed by `…[cut: 1048576 bytes, sha256 0123456789abcdef]` (the first 16
//! hex digits of the whole string's digest). Integers of 2^53 and above, which JSON numbers do not carry, are strings.
//!
//! Everything here blocks; nothing knows the wire or an async runtime.
//!
//! | file | what it is |
//! |---|---|
//! | `audit.log` | the log being written |
//! | `audit.log.YYYYMMDD-HHMMSS[-N]` | earlier ones, named after the time (UTC) they were closed |
//! | `audit.log.torn-…` | half a line that a power loss left; the log has a `LOG_REPAIRED` record of it |
//! | `audit.log.new` | the next file while it is being started |
//! | `audit.head` | the last line known to be on disk |
//! | `audit.lock` | locked by the process that writes |

#![cfg_attr(not(any(windows, target_os = "macos")), forbid(unsafe_code))]

mod anchor;
mod canonical;
mod chain;
mod entry;
mod error;
mod export;
mod head;
mod key;
mod line;
mod log;
mod names;
mod os;
mod read;
mod record;
mod report;
mod single;
mod strict;
mod verify;

pub use anchor::{Anchor, NotAnAnchor};
pub use chain::verify_all;
pub use entry::{Entry, Identity, Options, Outcome, Repair};
pub use error::AuditError;
pub use export::{export, verify_export};
pub use key::AuditKey;
pub use log::{AuditLog, Permit};
pub use names::{log_files, log_path};
pub use read::{show, tail};
pub use record::MAX_RECORD;
pub use report::{Fault, FileReport, Note, Problem, Report};
pub use single::{verify_current, verify_file, verify_file_against};
