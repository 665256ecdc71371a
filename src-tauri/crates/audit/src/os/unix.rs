//! Unix: modes, `flock`, `fstatat`, exclusive renames.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{Allocation, Presence};

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

/// The log's folder. Held open, so that looking at the log walks no path.
pub(crate) struct Dir(OwnedFd);

impl Dir {
    /// Makes the folder if need be, and it and nobody else's.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = Self(rustix::fs::open(path, flags, Mode::empty())?);
        let mode = rustix::fs::fstat(&dir.0)?.st_mode;
        if mode & 0o077 != 0 {
            rustix::fs::fchmod(&dir.0, Mode::RWXU)?;
        }
        Ok(dir)
    }

    /// Makes names last. Errors are the disk's.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.0) {
            // Some file systems do not sync folders.
            Err(Errno::INVAL) | Ok(()) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Looks whether `name` is still the file `id` of `size` bytes.
    pub(crate) fn presence(&self, name: &str, id: FileId, size: u64) -> io::Result<Presence> {
        let found = match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(Presence::Gone),
            Err(errno) => return Err(errno.into()),
        };
        #[allow(clippy::unnecessary_cast, reason = "these have other widths on other systems")]
        let (found_id, found_size) =
            (FileId { device: found.st_dev as u64, inode: found.st_ino as u64 }, found.st_size as u64);
        Ok(if found_id != id {
            Presence::Replaced
        } else if found_size != size {
            Presence::Resized
        } else {
            Presence::InPlace
        })
    }
}

/// Looks whether what was just written is still in a file with a name, and nobody else wrote or cut it. Half the cost of
/// [`Dir::presence`], which sees in addition when the file was moved.
pub(crate) fn presence_of(file: &File, size: u64) -> io::Result<Presence> {
    let found = rustix::fs::fstat(file)?;
    #[allow(clippy::unnecessary_cast, reason = "it has another type on other systems")]
    let found_size = found.st_size as u64;
    Ok(if found.st_nlink == 0 {
        Presence::Gone
    } else if found_size != size {
        Presence::Resized
    } else {
        Presence::InPlace
    })
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

fn keep_private(file: File) -> io::Result<File> {
    if file.metadata()?.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Opens or creates a file of our own beside the log. Follows no link.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    keep_private(private().write(true).create(true).truncate(false).open(path)?)
}

/// Creates a file of our own; it must not be there.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    private().write(true).create_new(true).open(path)
}

/// Opens the log for appending. Follows no link.
pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    keep_private(private().append(true).open(path)?)
}

/// Creates a log; it must not be there.
pub(crate) fn create_log(path: &Path) -> io::Result<File> {
    private().append(true).create_new(true).open(path)
}

/// Takes the log for this process. The lock file does that too, and can be deleted.
pub(crate) fn claim(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Gives it up, also while another thread still syncs through the same handle.
pub(crate) fn disclaim(file: &File) {
    // An error leaves the lock until the handle closes, which is no harm.
    let _ = file.unlock();
}

pub(crate) fn id_of(file: &File) -> io::Result<FileId> {
    let metadata = file.metadata()?;
    Ok(FileId { device: metadata.dev(), inode: metadata.ino() })
}

/// Appends with one write where the system takes all at once. `at` is where the end is.
pub(crate) fn append(file: &File, bytes: &[u8], _at: u64) -> io::Result<()> {
    use std::io::Write;
    let mut file = file;
    file.write_all(bytes)
}

pub(crate) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(bytes, at)
}

/// Sets disk space aside for bytes `from..to` beyond the end, leaving the length as it is.
pub(crate) fn reserve(file: &File, from: u64, to: u64) -> io::Result<Allocation> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if limit.is_some_and(|limit| limit < to) {
        // Writing there would end in SIGXFSZ.
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    loop {
        match super::allocate(file, from, to - from) {
            Ok(()) => return Ok(Allocation::Done),
            Err(Errno::INTR) => {}
            // The file system cannot allocate ahead (NFS, some FUSE): then free space is all that can be asked for.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                return has_free_space(file, to - from).map(|()| Allocation::Unsupported);
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// What `df` would call available.
fn has_free_space(file: &File, bytes: u64) -> io::Result<()> {
    let disk = rustix::fs::fstatvfs(file)?;
    if disk.f_bavail.saturating_mul(disk.f_frsize) < bytes {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}

/// Renames, never over an existing file. The file need not be given up for it.
pub(crate) fn rename_exclusive(_file: &File, from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not on this file system: look first. We hold the log's lock, so no writer of ours is in between.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            if to.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        other => Ok(other?),
    }
}
