//! What operations take and give.

use std::fmt;
use std::path::PathBuf;

/// Which directory this is, whatever it is called: `st_dev` and `st_ino`; on Windows the volume serial number and
/// the file index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device or volume.
    pub device: u64,
    /// The file on it.
    pub inode: u64,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; on Windows a junction too.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A character or block device.
    Device,
    /// Anything else, such as a Windows reparse point that stands for another place.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::File => "file",
            Kind::Directory => "directory",
            Kind::Symlink => "symlink",
            Kind::Fifo => "fifo",
            Kind::Socket => "socket",
            Kind::Device => "device",
            Kind::Other => "special file",
        })
    }
}

/// Which limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// Bytes out of a file.
    Read,
    /// Bytes into a file.
    Write,
}

impl fmt::Display for FileOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileOp::Read => "read",
            FileOp::Write => "write",
        })
    }
}

/// Which bytes of a file to read. The default is all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadRange {
    /// Bytes to skip. Past the end there is nothing to read, which is no error.
    pub offset: u64,
    /// Bytes to read at most; all that follow when absent.
    pub length: Option<u64>,
}

/// What a read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContents {
    /// The bytes as they are on disk.
    pub bytes: Vec<u8>,
    /// More bytes follow after these.
    pub truncated: bool,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// Whether there is anything.
    pub exists: bool,
    /// Absolute and canonical: of what `metadata` describes, or of what would be there. Bytes that are not UTF-8 are
    /// written `\xNN`.
    pub path: String,
    /// Absent when there is nothing.
    pub metadata: Option<Metadata>,
}

/// What a stat says about the thing at [`Stat::path`].
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// File, directory, link, …
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    /// Seconds since the epoch.
    pub mtime: f64,
    /// Seconds since the epoch: the last change of the inode; on Windows the creation.
    pub ctime: f64,
    /// Permission bits, at most `0o7777`; on Windows what the read-only attribute amounts to.
    pub mode: u32,
    /// Numeric owner, where the system has such.
    pub owner_uid: Option<u32>,
    /// Numeric group, where the system has such.
    pub owner_gid: Option<u32>,
    /// Guessed from the name of a regular file.
    pub mime_type: Option<String>,
}

/// What to list.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// Keeps entries whose base name matches (`* ? [..] {a,b}`). Folders are descended into all the same.
    pub glob: Option<String>,
    /// Goes into folders, never through links.
    pub recursive: bool,
    /// Includes hidden entries and what is below hidden folders.
    pub include_hidden: bool,
    /// At most this many; above [`MAX_ENTRIES`](crate::MAX_ENTRIES) it is lowered to that.
    pub max_entries: usize,
}

impl Default for ListOptions {
    fn default() -> Self {
        ListOptions { glob: None, recursive: false, include_hidden: false, max_entries: 1000 }
    }
}

/// One line of a listing. Links are described, never followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Base name. Bytes that are not UTF-8 are written `\xNN`: such an entry is shown so that it is not hidden, but it
    /// cannot be named in a request.
    pub name: String,
    /// Absolute and canonical, escaped like `name`.
    pub path: String,
    /// File, directory, link, …
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    /// Seconds since the epoch.
    pub mtime: f64,
}

/// What a listing found.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// In byte order of the path.
    pub entries: Vec<Entry>,
    /// More would have matched: these are the first.
    pub truncated: bool,
}

/// How to delete.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeleteOptions {
    /// A folder goes with all that is in it.
    pub recursive: bool,
    /// Nothing there is fine.
    pub missing_ok: bool,
    /// Into the trash. Where there is none the delete is refused ([`JailError::NoTrash`](crate::JailError::NoTrash)),
    /// so that nothing is lost unasked.
    pub trash: bool,
}

/// Where a command may start.
#[derive(Debug)]
pub struct WorkingDir {
    /// Absolute and canonical, at the time of asking.
    pub path: PathBuf,
    /// The directory itself, to `fchdir` to: a path may lead elsewhere by the time it is used. Good for nothing but
    /// that (`O_PATH` on Linux).
    #[cfg(unix)]
    pub dir: std::os::fd::OwnedFd,
    /// The directory itself. While it is open, neither it nor what is above it can be renamed or replaced, so that
    /// `path` stays true.
    #[cfg(windows)]
    pub dir: std::os::windows::io::OwnedHandle,
}
