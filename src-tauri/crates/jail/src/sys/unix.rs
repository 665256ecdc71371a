//! Unix: the `*at` calls, through rustix.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{self, Access, AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::{Meta, Named, Replace};
use crate::types::{Identity, Kind, WorkingDir};

/// A directory handle that names can be looked up in.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
}

/// On Linux a directory is opened without reading it, so that one that may only be entered can be walked through.
#[cfg(target_os = "linux")]
const WALK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const WALK: OFlags = OFlags::RDONLY;

/// Nothing here may block on a FIFO or become a controlling terminal.
const SAFE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl Dir {
    /// Opens the directory at `path`, which must not be a link itself.
    pub(crate) fn open_root(path: &Path) -> io::Result<Dir> {
        let flags = WALK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Dir { fd: fs::open(path, flags, Mode::empty())? })
    }

    /// Opens a directory in this one. `NotADirectory` when it is a link or anything else.
    pub(crate) fn open_dir(&self, name: &OsStr) -> io::Result<Dir> {
        let flags = WALK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Dir { fd }),
            // What systems other than Linux say of a link.
            Err(Errno::LOOP | Errno::MLINK) => Err(Errno::NOTDIR.into()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a directory some levels below in one call. None when the kernel has no openat2, or when there is a link,
    /// or something else that only the walk can tell, in the way.
    #[cfg(target_os = "linux")]
    pub(crate) fn open_beneath(&self, path: &Path) -> io::Result<Option<Dir>> {
        Ok(self.openat2(path, OFlags::PATH | OFlags::DIRECTORY)?.map(|fd| Dir { fd }))
    }

    /// Describes what is some levels below in two calls; a link is described itself. None as in `open_beneath`.
    #[cfg(target_os = "linux")]
    pub(crate) fn stat_beneath(&self, path: &Path) -> io::Result<Option<Meta>> {
        match self.openat2(path, OFlags::PATH | OFlags::NOFOLLOW)? {
            Some(fd) => Ok(Some(meta(&fs::fstat(fd)?))),
            None => Ok(None),
        }
    }

    #[cfg(target_os = "linux")]
    fn openat2(&self, path: &Path, flags: OFlags) -> io::Result<Option<OwnedFd>> {
        use rustix::fs::ResolveFlags;
        /// The kernel asks for another try when something was renamed meanwhile. More than these is an attack.
        const TRIES: usize = 64;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        for _ in 0..TRIES {
            match fs::openat2(&self.fd, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Ok(fd) => return Ok(Some(fd)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(errno.into()),
                // A link, a missing name, a file in the way, no such call, a filter that denies it: the walk knows.
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// As `stat_beneath`, out of the kernel's memory alone: it waits for no disk. None also when that is not enough, when
    /// another mount is in the way, or before Linux 5.12. On a file system that is not [`Dir::is_local`] it might wait.
    #[cfg(target_os = "linux")]
    pub(crate) fn stat_from_memory(&self, path: &Path) -> Option<Meta> {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_XDEV
            | ResolveFlags::CACHED;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat2(&self.fd, path, flags, Mode::empty(), resolve).ok()?;
        fs::fstat(&fd).ok().map(|stat| meta(&stat))
    }

    /// Whether this is on one of the file systems that keep on a disk of this machine, and in memory, all that a `stat` of
    /// something open asks for. Those that ask a server or a process (NFS, SMB, FUSE, 9P), or may lie on one that does
    /// (overlay), are not.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_local(&self) -> bool {
        /// `linux/magic.h`: ext2 to ext4, XFS, Btrfs, tmpfs, F2FS.
        const LOCAL: [u32; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010];
        fs::fstatfs(&self.fd).is_ok_and(|found| LOCAL.contains(&(found.f_type as u32)))
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn try_clone(&self) -> io::Result<Dir> {
        Ok(Dir { fd: self.fd.try_clone()? })
    }

    pub(crate) fn meta(&self) -> io::Result<Meta> {
        Ok(meta(&fs::fstat(&self.fd)?))
    }

    /// What `name` is, links not followed.
    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Meta> {
        Ok(meta(&fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// The target of a link. `InvalidInput` when it is none.
    pub(crate) fn read_link(&self, name: &OsStr) -> io::Result<OsString> {
        let target = fs::readlinkat(&self.fd, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    /// Opens for reading. Never waits, whatever it is; the caller looks at what it got.
    pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        Ok(File::from(fs::openat(&self.fd, name, OFlags::RDONLY | SAFE, Mode::empty())?))
    }

    /// Whether a file that is there may be written, by its own permissions. (A rename over it would not ask.)
    pub(crate) fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::accessat(&self.fd, name, Access::WRITE_OK, AtFlags::EACCESS)?)
    }

    /// Creates a file that must not exist. A private one is readable by us alone.
    pub(crate) fn create(&self, name: &OsStr, private: bool) -> io::Result<File> {
        let mode = Mode::from_raw_mode(if private { 0o600 } else { 0o644 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | SAFE;
        Ok(File::from(fs::openat(&self.fd, name, flags, mode)?))
    }

    pub(crate) fn make_dir(&self, name: &OsStr, private: bool) -> io::Result<()> {
        let mode = Mode::from_raw_mode(if private { 0o700 } else { 0o777 });
        Ok(fs::mkdirat(&self.fd, name, mode)?)
    }

    pub(crate) fn make_link(&self, name: &OsStr, target: &OsStr, _directory: bool) -> io::Result<()> {
        Ok(fs::symlinkat(target, &self.fd, name)?)
    }

    pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    pub(crate) fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        match fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Err(Errno::EXIST) => Err(Errno::NOTEMPTY.into()),
            other => Ok(other?),
        }
    }

    pub(crate) fn rename(&self, name: &OsStr, to: &Dir, to_name: &OsStr, replace: Replace) -> io::Result<()> {
        let flags = match replace {
            Replace::File => return Ok(fs::renameat(&self.fd, name, &to.fd, to_name)?),
            Replace::Never => RenameFlags::NOREPLACE,
            Replace::Exchange => RenameFlags::EXCHANGE,
        };
        match fs::renameat_with(&self.fd, name, &to.fd, to_name, flags) {
            // EINVAL is also "into itself", which the plain calls of the fallback say again.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if replace == Replace::Never => {
                self.rename_unless_there(name, to, to_name)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(io::ErrorKind::Unsupported.into()),
            other => Ok(other?),
        }
    }

    /// For file systems without RENAME_NOREPLACE: a hard link never replaces. A directory cannot be linked, but
    /// `rename` replaces nothing but an empty one with it.
    fn rename_unless_there(&self, name: &OsStr, to: &Dir, to_name: &OsStr) -> io::Result<()> {
        let is_dir = self.stat(name)?.kind == Kind::Directory;
        if !is_dir {
            match fs::linkat(&self.fd, name, &to.fd, to_name, AtFlags::empty()) {
                Ok(()) => return self.remove_file(name),
                // No hard links here either (FAT): look first, the last resort.
                Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        match to.stat(to_name) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(fs::renameat(&self.fd, name, &to.fd, to_name)?)
            }
            Err(error) => Err(error),
        }
    }

    /// Calls `each` for every name but `.` and `..`, until it says false.
    #[cfg(target_os = "linux")]
    pub(crate) fn scan(&self, each: &mut dyn FnMut(Named<'_>) -> bool) -> io::Result<()> {
        let readable = self.readable()?;
        let mut buffer = [std::mem::MaybeUninit::<u8>::uninit(); 32 * 1024];
        let mut entries = fs::RawDir::new(&readable, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            if !offer(entry.file_name().to_bytes(), entry.file_type(), each) {
                break;
            }
        }
        Ok(())
    }

    /// Calls `each` for every name but `.` and `..`, until it says false.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn scan(&self, each: &mut dyn FnMut(Named<'_>) -> bool) -> io::Result<()> {
        for entry in fs::Dir::new(self.readable()?)? {
            let entry = entry?;
            if !offer(entry.file_name().to_bytes(), entry.file_type(), each) {
                break;
            }
        }
        Ok(())
    }

    fn readable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(fs::openat(&self.fd, c".", flags, Mode::empty())?)
    }

    /// Makes names created and renamed here survive a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match File::from(self.readable()?).sync_all() {
            // Some network and FUSE file systems cannot; the data is where it belongs all the same.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
            other => other,
        }
    }

    /// Gives `file` the owner and mode that `like` has.
    pub(crate) fn adopt(&self, file: &File, _name: &OsStr, like: &Meta) -> io::Result<()> {
        let now = meta(&fs::fstat(file)?);
        if let (Some((uid, gid)), Some(owner)) = (like.owner, now.owner)
            && owner != (uid, gid)
        {
            let user = (owner.0 != uid).then(|| fs::Uid::from_raw(uid));
            fs::fchown(file, user, Some(fs::Gid::from_raw(gid)))?;
        }
        // After the owner: changing that takes set-id bits away.
        fs::fchmod(file, Mode::from_raw_mode(like.mode as _))?;
        Ok(())
    }

    /// As `adopt`, for this directory, as far as we may.
    pub(crate) fn adopt_dir(&self, like: &Meta) -> io::Result<()> {
        let dir = File::from(self.readable()?);
        match self.adopt(&dir, OsStr::new("."), like) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Ok(fs::fchmod(&dir, Mode::from_raw_mode((like.mode & 0o777) as _))?)
            }
            other => other,
        }
    }

    /// Whether we can list, change and enter the directory `name`.
    pub(crate) fn is_usable_dir(&self, name: &OsStr) -> bool {
        let all = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        self.open_dir(name).is_ok_and(|dir| fs::accessat(&dir.fd, c".", all, AtFlags::EACCESS).is_ok())
    }

    /// What kind of case rules the file system itself admits to, for a directory that has no name to try it on.
    #[cfg(target_os = "linux")]
    pub(crate) fn folds_by_nature(&self) -> bool {
        /// `FS_CASEFOLD_FL` of linux/fs.h: ext4, f2fs and tmpfs, for each directory.
        const CASEFOLD: u32 = 0x4000_0000;
        /// Magic numbers of statfs(2) for vfat, exfat, hfs, hfs+, cifs and smb2.
        const FOLDING: [u64; 6] = [0x4d44, 0x2011_bab0, 0x4244, 0x482b, 0xff53_4d42, 0xfe53_4d42];
        let Ok(readable) = self.readable() else { return false };
        let flagged = fs::ioctl_getflags(&readable).is_ok_and(|flags| flags.bits() & CASEFOLD != 0);
        flagged
            || fs::fstatfs(&readable).is_ok_and(|stat| FOLDING.contains(&(stat.f_type as u64 & 0xffff_ffff)))
    }

    /// What kind of case rules the file system itself admits to, for a directory that has no name to try it on.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn folds_by_nature(&self) -> bool {
        // APFS and HFS+ fold unless they were formatted otherwise.
        cfg!(target_os = "macos")
    }

    /// The parent directory, and whether this is where a file system is mounted.
    #[cfg(target_os = "linux")]
    pub(crate) fn parent_unless_mount(&self) -> io::Result<Option<Dir>> {
        use rustix::fs::{StatxAttributes, StatxFlags};
        if let Ok(stat) = fs::statx(&self.fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
            && stat.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT)
            && stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
        {
            return Ok(None);
        }
        let flags = WALK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let parent = Dir { fd: fs::openat(&self.fd, c"..", flags, Mode::empty())? };
        let (here, above) = (self.meta()?.identity, parent.meta()?.identity);
        Ok((here.device == above.device && here.inode != above.inode).then_some(parent))
    }

    /// The handle and path for a command to start in.
    pub(crate) fn working_dir(&self, path: PathBuf) -> io::Result<WorkingDir> {
        Ok(WorkingDir { path, dir: self.fd.as_fd().try_clone_to_owned()? })
    }
}

fn offer(name: &[u8], kind: FileType, each: &mut dyn FnMut(Named<'_>) -> bool) -> bool {
    if name == b"." || name == b".." {
        return true;
    }
    each(Named {
        name: OsStr::from_bytes(name),
        kind: (kind != FileType::Unknown).then(|| kind_of(kind)),
        hidden: name.starts_with(b"."),
    })
}

fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => Kind::Device,
        _ => Kind::Other,
    }
}

#[expect(clippy::unnecessary_cast, reason = "the fields have other widths on other systems")]
fn meta(stat: &fs::Stat) -> Meta {
    let seconds = |whole: i64, nanos: i64| whole as f64 + nanos as f64 / 1e9;
    Meta {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode as _)),
        size: stat.st_size as u64,
        mtime: seconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        ctime: seconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        mode: stat.st_mode as u32 & 0o7777,
        owner: Some((stat.st_uid as u32, stat.st_gid as u32)),
        identity: Identity { device: stat.st_dev as u64, inode: stat.st_ino as u64 },
        links: stat.st_nlink as u64,
    }
}

/// What an open file is.
pub(crate) fn file_meta(file: &File) -> io::Result<Meta> {
    Ok(meta(&fs::fstat(file)?))
}

/// A canonical path in the form that people write.
pub(crate) fn display_path(path: PathBuf) -> PathBuf {
    path
}

/// Which file or directory `path` is, links in its last component not followed.
pub(crate) fn identity_at(path: &Path) -> io::Result<Identity> {
    Ok(meta(&fs::lstat(path)?).identity)
}

/// As [`identity_at`], out of the kernel's memory alone: it waits for neither disk nor server. None when that is not enough.
#[cfg(target_os = "linux")]
pub(crate) fn identity_from_memory(path: &Path) -> Option<Identity> {
    use rustix::fs::{CWD, ResolveFlags, StatxFlags};
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED).ok()?;
    // It may be anything by now, a server's too: which one it is stays the same, and a server need not be asked for that.
    let at = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = fs::statx(&fd, c"", at, StatxFlags::INO).ok()?;
    let device = fs::makedev(found.stx_dev_major, found.stx_dev_minor);
    Some(Identity { device, inode: found.stx_ino })
}
