//! What can go wrong with the log.

use std::io;
use std::path::{Path, PathBuf};

/// Why a record could not be written or a log not be read. Every variant that [`crate::AuditLog::reserve`] answers with
/// means the operation must be refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// Another process (or another [`crate::AuditLog`] of this one) writes this log.
    #[error("another process is writing {}", path.display())]
    Busy {
        /// The log.
        path: PathBuf,
    },
    /// There is no room for a record: disk, quota or the process' file size limit. Nothing was written; the next
    /// attempt may succeed.
    #[error("no space for an audit record in {}: {source}", path.display())]
    NoSpace {
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The log was deleted, replaced or changed by somebody else while it was being written. Everything is refused
    /// until [`crate::AuditLog::try_recover`].
    #[error("the audit log {} {what} by another program", path.display())]
    Displaced {
        /// The log.
        path: PathBuf,
        /// `was deleted`, `was replaced`, …
        what: &'static str,
    },
    /// An earlier write failed. Everything is refused until [`crate::AuditLog::try_recover`].
    #[error("the audit log stopped: {reason}")]
    Failed {
        /// The failure that stopped it.
        reason: String,
    },
    /// A log with no records cannot be rotated.
    #[error("{} has no records yet", path.display())]
    Empty {
        /// The log.
        path: PathBuf,
    },
    /// Something other than a plain file is where a log should be: a folder, a link, a pipe.
    #[error("{} is not a plain file", path.display())]
    NotAFile {
        /// What is in the way.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted, an infinitive.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An export could not be written or is not one.
    #[error("export {}: {reason}", path.display())]
    Export {
        /// The zip file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl AuditError {
    /// For `map_err`: names the attempt and the path.
    pub(crate) fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
