//! What an operation can answer instead of a result.
//!
//! Messages are shown to the caller: they say what to do, name a path only as the caller gave it, and never show a
//! path outside the root.

use std::io;

use crate::types::{FileOp, Kind};

/// Why a jailed operation was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// The path leads outside the root, is the root where the root itself is meant to stay, or lies in one of our
    /// own folders.
    #[error("{path:?} is outside the allowed root; use a path inside the folder that was shared")]
    OutsideRoot {
        /// As the caller gave it.
        path: String,
    },
    /// The path is too long, or has characters that no name may have.
    #[error("{path:?} is not a usable path: {reason}")]
    InvalidChars {
        /// As the caller gave it.
        path: String,
        /// What is wrong, and what to do.
        reason: &'static str,
    },
    /// A component is a name that Windows keeps to itself.
    #[error("{name:?} in {path:?} is a reserved name; choose another one")]
    ReservedName {
        /// As the caller gave it.
        path: String,
        /// The component at fault.
        name: String,
    },
    /// Nothing is there.
    #[error("{path:?} does not exist; list its folder to see what does")]
    NotFound {
        /// As the caller gave it.
        path: String,
    },
    /// Something is there already.
    #[error("{path:?} exists already; ask to overwrite it, or choose another name")]
    Exists {
        /// As the caller gave it.
        path: String,
    },
    /// A folder has something in it and `recursive` was not asked for.
    #[error("{path:?} is not empty; ask for a recursive delete to remove it with its contents")]
    NotEmpty {
        /// As the caller gave it.
        path: String,
    },
    /// More bytes than the limit.
    #[error("{path:?}: a {op} of {attempted} bytes is over the limit of {limit}; do it in ranges or parts")]
    TooLarge {
        /// As the caller gave it.
        path: String,
        /// Bytes allowed.
        limit: u64,
        /// Bytes that the request would have taken.
        attempted: u64,
        /// Which way the bytes went.
        op: FileOp,
    },
    /// A directory, FIFO, device or socket where a regular file is needed. It was not opened.
    #[error("{path:?} is a {kind}, not a regular file")]
    NotAFile {
        /// As the caller gave it.
        path: String,
        /// What it is.
        kind: Kind,
    },
    /// Something else where a directory is needed.
    #[error("{path:?} is not a folder, or leads through something that is none")]
    NotADirectory {
        /// As the caller gave it.
        path: String,
    },
    /// A folder cannot be moved into itself, nor onto a folder that contains it.
    #[error("{src:?} cannot be moved to {dst:?}: one contains the other")]
    IntoItself {
        /// Source as the caller gave it.
        src: String,
        /// Destination as the caller gave it.
        dst: String,
    },
    /// More than [`MAX_LINKS`](crate::MAX_LINKS) symbolic links, most likely a loop.
    #[error("{path:?} goes through too many symbolic links")]
    TooManyLinks {
        /// As the caller gave it.
        path: String,
    },
    /// The folder that the root handle belongs to was deleted, moved, replaced or unmounted.
    #[error("the shared folder is gone or was replaced; share it again")]
    RootGone,
    /// This folder may not become a root.
    #[error("this folder cannot be shared: {0}")]
    RootRefused(RootRefusal),
    /// The trash cannot take it. Nothing was deleted.
    #[error("{path:?} was not deleted: {reason}; turn the trash setting off to delete for good")]
    NoTrash {
        /// As the caller gave it.
        path: String,
        /// Why the trash cannot take it.
        reason: String,
    },
    /// Replacing the file would change its owner. Nothing was written.
    #[error(
        "{path:?} belongs to another user and would change hands if it were replaced; write to a new name"
    )]
    OwnerNotKept {
        /// As the caller gave it.
        path: String,
    },
    /// The glob of a listing does not parse.
    #[error("the glob {glob:?} is not valid: {reason}")]
    BadGlob {
        /// As the caller gave it.
        glob: String,
        /// What the parser says.
        reason: String,
    },
    /// A name in the way changed again and again while it was looked at.
    #[error("{path:?} keeps changing while it is being opened; try again")]
    KeepsChanging {
        /// As the caller gave it.
        path: String,
    },
    /// `stop` said so. A recursive operation may be half done.
    #[error("cancelled")]
    Cancelled,
    /// The operating system refused: permission, full disk, read-only volume, …
    #[error("{path:?}: {source}")]
    Io {
        /// As the caller gave it.
        path: String,
        /// The system's own reason.
        source: io::Error,
    },
}

/// Why a folder may not be a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootRefusal {
    /// Relative paths depend on where the program was started.
    #[error("its path is not absolute")]
    NotAbsolute,
    /// A file, device or the like.
    #[error("it is not a folder")]
    NotADirectory,
    /// Its last component is a symbolic link or junction.
    #[error("it is a link; share the folder that it leads to")]
    Link,
    /// `/`, or the drive Windows runs from.
    #[error("it is the whole file system")]
    FileSystemRoot,
    /// A directory that has home directories below it.
    #[error("it holds home directories; share a folder inside one")]
    HomeParent,
    /// A directory of the operating system.
    #[error("it belongs to the operating system")]
    SystemFolder,
    /// One of our own configuration, state and runtime folders, or a folder inside one.
    #[error("this program keeps its own files there")]
    OwnFolder,
    /// Its path is not UTF-8 or has control characters, so that it cannot be named on the wire.
    #[error("its path has characters that cannot be sent")]
    UnsendableName,
}

/// A [`JailError`] that does not know yet which of the caller's paths it is about.
#[derive(Debug)]
pub(crate) enum Fault {
    Outside,
    NotFound,
    Exists,
    NotEmpty,
    TooLarge {
        limit: u64,
        attempted: u64,
        op: FileOp,
    },
    NotAFile(Kind),
    NotADirectory,
    TooManyLinks,
    NameTooLong,
    NoTrash(String),
    OwnerNotKept,
    /// What was there a moment ago is something else now: the operation starts over.
    Changed,
    IntoItself,
    Cancelled,
    Io(io::Error),
}

pub(crate) type Outcome<T> = Result<T, Fault>;

impl Fault {
    /// Names the path, as the caller gave it.
    pub(crate) fn at(self, path: &str) -> JailError {
        let path = path.to_owned();
        match self {
            Fault::Outside => JailError::OutsideRoot { path },
            Fault::NotFound => JailError::NotFound { path },
            Fault::Exists => JailError::Exists { path },
            Fault::NotEmpty => JailError::NotEmpty { path },
            Fault::TooLarge { limit, attempted, op } => JailError::TooLarge { path, limit, attempted, op },
            Fault::NotAFile(kind) => JailError::NotAFile { path, kind },
            Fault::NotADirectory => JailError::NotADirectory { path },
            Fault::TooManyLinks => JailError::TooManyLinks { path },
            Fault::NameTooLong => JailError::InvalidChars { path, reason: crate::rules::TOO_LONG },
            Fault::NoTrash(reason) => JailError::NoTrash { path, reason },
            Fault::OwnerNotKept => JailError::OwnerNotKept { path },
            Fault::Changed => JailError::KeepsChanging { path },
            Fault::IntoItself => JailError::IntoItself { src: path.clone(), dst: path },
            Fault::Cancelled => JailError::Cancelled,
            Fault::Io(source) => JailError::Io { path, source },
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Fault::NotFound,
            io::ErrorKind::AlreadyExists => Fault::Exists,
            io::ErrorKind::DirectoryNotEmpty => Fault::NotEmpty,
            io::ErrorKind::NotADirectory => Fault::NotADirectory,
            io::ErrorKind::InvalidFilename => Fault::NameTooLong,
            _ => Fault::Io(error),
        }
    }
}

#[cfg(unix)]
impl From<rustix::io::Errno> for Fault {
    fn from(errno: rustix::io::Errno) -> Self {
        io::Error::from(errno).into()
    }
}
