//! Windows: every name opened relative to its directory's handle, reparse points opened themselves and looked at.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsHandle, BorrowedHandle, OwnedHandle};
use std::path::{Path, PathBuf};

use windows_sys::Wdk::Storage::FileSystem::{
    FILE_CREATE, FILE_DIRECTORY_FILE, FILE_NON_DIRECTORY_FILE, FILE_OPEN,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, DELETE, FILE_ADD_FILE, FILE_ADD_SUBDIRECTORY, FILE_ATTRIBUTE_DIRECTORY,
    FILE_ATTRIBUTE_HIDDEN, FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_GENERIC_READ, FILE_GENERIC_WRITE, FILE_LIST_DIRECTORY,
    FILE_READ_ATTRIBUTES, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_TRAVERSE,
    FILE_WRITE_DATA, READ_CONTROL, WRITE_DAC,
};

use super::nt::{self, Open};
use super::{Meta, Named, Replace};
use crate::types::{Identity, Kind, WorkingDir};

/// A directory handle that names can be looked up in.
#[derive(Debug)]
pub(crate) struct Dir {
    handle: OwnedHandle,
}

const SHARE_ALL: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

const WALK: Open = Open {
    access: FILE_LIST_DIRECTORY | FILE_TRAVERSE | FILE_READ_ATTRIBUTES,
    share: SHARE_ALL,
    disposition: FILE_OPEN,
    options: FILE_DIRECTORY_FILE,
};

const LOOK: Open =
    Open { access: FILE_READ_ATTRIBUTES, share: SHARE_ALL, disposition: FILE_OPEN, options: 0 };

impl Dir {
    /// Opens the directory at `path`, which must not be a link itself.
    pub(crate) fn open_root(path: &Path) -> io::Result<Dir> {
        let file = OpenOptions::new()
            .access_mode(WALK.access)
            .share_mode(SHARE_ALL)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
            .open(path)?;
        Dir { handle: file.into() }.checked()
    }

    /// Only a real directory will do: a link was opened itself.
    fn checked(self) -> io::Result<Dir> {
        if self.meta()?.kind == Kind::Directory { Ok(self) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    fn open(&self, name: &OsStr, how: Open) -> io::Result<OwnedHandle> {
        nt::open(self.handle.as_handle(), name, how)
    }

    /// Opens a directory in this one. `NotADirectory` when it is a link or anything else.
    pub(crate) fn open_dir(&self, name: &OsStr) -> io::Result<Dir> {
        Dir { handle: self.open(name, WALK)? }.checked()
    }

    pub(crate) fn meta(&self) -> io::Result<Meta> {
        meta(self.handle.as_handle())
    }

    /// What `name` is, links not followed.
    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Meta> {
        meta(self.open(name, LOOK)?.as_handle())
    }

    /// The target of a link or junction. `InvalidInput` when it is none.
    pub(crate) fn read_link(&self, name: &OsStr) -> io::Result<OsString> {
        let handle = self.open(name, LOOK)?;
        if meta(handle.as_handle())?.kind != Kind::Symlink {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        link_target(&nt::reparse_data(handle.as_handle())?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Opens for reading. The caller looks at what it got.
    pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let how = Open { access: FILE_GENERIC_READ, options: FILE_NON_DIRECTORY_FILE, ..LOOK };
        let handle = self.open(name, how)?;
        let info = nt::information(handle.as_handle())?;
        if info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT == 0
            || meta(handle.as_handle())?.kind != Kind::File
        {
            return Ok(handle.into());
        }
        // A file whose contents are kept elsewhere: opened again for its owner to fetch them, and still the same file.
        let fetched = nt::open_through(self.handle.as_handle(), name, how)?;
        let same = identity(&nt::information(fetched.as_handle())?) == identity(&info);
        if same { Ok(fetched.into()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Whether a file that is there may be written.
    pub(crate) fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        self.open(name, Open { access: FILE_WRITE_DATA, ..LOOK }).map(drop)
    }

    /// Creates a file that must not exist. Who may read it is inherited from the directory.
    pub(crate) fn create(&self, name: &OsStr, _private: bool) -> io::Result<File> {
        let access = FILE_GENERIC_WRITE | READ_CONTROL | WRITE_DAC;
        let how = Open { access, disposition: FILE_CREATE, options: FILE_NON_DIRECTORY_FILE, ..LOOK };
        Ok(self.open(name, how)?.into())
    }

    pub(crate) fn make_dir(&self, name: &OsStr, _private: bool) -> io::Result<()> {
        self.open(name, Open { disposition: FILE_CREATE, ..WALK }).map(drop)
    }

    /// Links are only made for a copy to another volume, and below one root there is none: a mounted volume is a link
    /// that leads outside.
    pub(crate) fn make_link(&self, _name: &OsStr, _target: &OsStr, _directory: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        let handle = self.open(name, Open { access: DELETE | FILE_READ_ATTRIBUTES, ..LOOK })?;
        if meta(handle.as_handle())?.kind == Kind::Directory {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        nt::delete(handle.as_handle())
    }

    pub(crate) fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        let dir = Dir { handle: self.open(name, Open { access: DELETE | FILE_READ_ATTRIBUTES, ..WALK })? }
            .checked()?;
        nt::delete(dir.handle.as_handle())
    }

    pub(crate) fn rename(&self, name: &OsStr, to: &Dir, to_name: &OsStr, replace: Replace) -> io::Result<()> {
        let replace = match replace {
            Replace::Never => false,
            Replace::File => true,
            Replace::Exchange => return Err(io::ErrorKind::Unsupported.into()),
        };
        let handle = self.open(name, Open { access: DELETE, ..LOOK })?;
        nt::rename(handle.as_handle(), to.handle.as_handle(), to_name, replace)
    }

    /// Calls `each` for every name but `.` and `..`, until it says false.
    pub(crate) fn scan(&self, each: &mut dyn FnMut(Named<'_>) -> bool) -> io::Result<()> {
        // A handle of its own: where the reading stands belongs to the handle.
        let reading = self.open(OsStr::new(""), WALK)?;
        let mut buffer = vec![0_u64; 8 * 1024];
        while let Some(records) = nt::next_entries(reading.as_handle(), &mut buffer)? {
            if !offer(records, each) {
                break;
            }
        }
        Ok(())
    }

    /// NTFS journals names by itself, and there is no flushing of a directory.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Gives `file` the access list and attributes of the file `name` in this directory.
    pub(crate) fn adopt(&self, file: &File, name: &OsStr, _like: &Meta) -> io::Result<()> {
        match self.open(name, Open { access: READ_CONTROL | FILE_READ_ATTRIBUTES, ..LOOK }) {
            Ok(old) => nt::copy_security(old.as_handle(), file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn adopt_dir(&self, _like: &Meta) -> io::Result<()> {
        Ok(())
    }

    /// Whether we can list, change and enter the directory `name`.
    pub(crate) fn is_usable_dir(&self, name: &OsStr) -> bool {
        let access = WALK.access | FILE_ADD_FILE | FILE_ADD_SUBDIRECTORY;
        let opened = self.open(name, Open { access, ..WALK }).and_then(|handle| Dir { handle }.checked());
        opened.is_ok()
    }

    /// What kind of case rules the directory itself admits to.
    pub(crate) fn folds_by_nature(&self) -> bool {
        !nt::is_case_sensitive(self.handle.as_handle()).unwrap_or(false)
    }

    /// The handle and path for a command to start in. While the handle is open, nobody renames what the path goes
    /// through.
    pub(crate) fn working_dir(&self, path: PathBuf) -> io::Result<WorkingDir> {
        let dir = self.open(OsStr::new(""), Open { share: FILE_SHARE_READ | FILE_SHARE_WRITE, ..WALK })?;
        Ok(WorkingDir { path, dir })
    }
}

/// Hands on the names of a piece of records (`FILE_ID_BOTH_DIR_INFO` of winbase.h). False when `each` has enough.
fn offer(records: &[u8], each: &mut dyn FnMut(Named<'_>) -> bool) -> bool {
    const ATTRIBUTES: usize = 56;
    const NAME_LENGTH: usize = 60;
    /// Holds the tag of a reparse point.
    const TAG: usize = 64;
    const NAME: usize = 104;
    let mut rest = records;
    loop {
        let number = |at: usize| {
            let bytes = rest.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_ne_bytes)
        };
        let end = NAME.saturating_add(number(NAME_LENGTH) as usize);
        let name = rest.get(NAME..end).unwrap_or_default();
        let units = name.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]]));
        let name = OsString::from_wide(&units.collect::<Vec<_>>());
        let attributes = number(ATTRIBUTES);
        let entry = Named {
            name: &name,
            kind: Some(kind_of(attributes, number(TAG))),
            hidden: attributes & FILE_ATTRIBUTE_HIDDEN != 0 || name.as_encoded_bytes().starts_with(b"."),
        };
        if !name.is_empty() && name != "." && name != ".." && !each(entry) {
            return false;
        }
        match number(0) as usize {
            0 => return true,
            next => match rest.get(next..) {
                Some(next) => rest = next,
                None => return true,
            },
        }
    }
}

/// Tags of winnt.h and ntifs.h.
fn kind_of(attributes: u32, tag: u32) -> Kind {
    const MOUNT_POINT: u32 = 0xa000_0003;
    const SYMLINK: u32 = 0xa000_000c;
    const SOCKET: u32 = 0x8000_0023;
    const WSL_FIFO: u32 = 0x8000_0024;
    const WSL_DEVICES: [u32; 2] = [0x8000_0025, 0x8000_0026];
    /// Set in tags of what stands for another place.
    const SURROGATE: u32 = 0x2000_0000;
    if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
        match tag {
            MOUNT_POINT | SYMLINK => return Kind::Symlink,
            SOCKET => return Kind::Socket,
            WSL_FIFO => return Kind::Fifo,
            tag if WSL_DEVICES.contains(&tag) => return Kind::Device,
            tag if tag & SURROGATE != 0 => return Kind::Other,
            _ => {}
        }
    }
    if attributes & FILE_ATTRIBUTE_DIRECTORY != 0 { Kind::Directory } else { Kind::File }
}

fn identity(info: &BY_HANDLE_FILE_INFORMATION) -> Identity {
    Identity {
        device: u64::from(info.dwVolumeSerialNumber),
        inode: u64::from(info.nFileIndexHigh) << 32 | u64::from(info.nFileIndexLow),
    }
}

fn meta(handle: BorrowedHandle<'_>) -> io::Result<Meta> {
    let info = nt::information(handle)?;
    let attributes = info.dwFileAttributes;
    let tag = if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 { nt::tag(handle)? } else { 0 };
    let kind = kind_of(attributes, tag);
    let writable = if attributes & FILE_ATTRIBUTE_READONLY != 0 { 0o444 } else { 0o666 };
    Ok(Meta {
        kind,
        size: u64::from(info.nFileSizeHigh) << 32 | u64::from(info.nFileSizeLow),
        mtime: seconds(info.ftLastWriteTime.dwHighDateTime, info.ftLastWriteTime.dwLowDateTime),
        ctime: seconds(info.ftCreationTime.dwHighDateTime, info.ftCreationTime.dwLowDateTime),
        mode: if kind == Kind::Directory { writable | 0o111 } else { writable },
        owner: None,
        identity: identity(&info),
        links: u64::from(info.nNumberOfLinks),
    })
}

/// Since the epoch, from 100 ns since 1601.
fn seconds(high: u32, low: u32) -> f64 {
    /// Between the two beginnings, in 100 ns.
    const EPOCH: i128 = 116_444_736_000_000_000;
    let ticks = i128::from(high) << 32 | i128::from(low);
    (ticks - EPOCH) as f64 / 1e7
}

/// The target in the data of a symbolic link or junction (`REPARSE_DATA_BUFFER` of ntifs.h).
fn link_target(data: &[u8]) -> Option<OsString> {
    const SYMLINK: u32 = 0xa000_000c;
    let number = |at: usize| Some(u16::from_ne_bytes(data.get(at..at + 2)?.try_into().ok()?) as usize);
    let tag = u32::from_ne_bytes(data.get(0..4)?.try_into().ok()?);
    let (offset, length) = (number(8)?, number(10)?);
    // A symbolic link has a word of flags before its names.
    let names = if tag == SYMLINK { 20 } else { 16 };
    let bytes = data.get(names + offset..names + offset + length)?;
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect();
    Some(without_prefix(&units).unwrap_or_else(|| OsString::from_wide(&units)))
}

/// `\??\C:\x` and `\\?\C:\x` as `C:\x`. Other forms stay as they are, absolute and below no root.
fn without_prefix(wide: &[u16]) -> Option<OsString> {
    let text = String::from_utf16_lossy(wide.get(..7)?);
    let plain = (text.starts_with(r"\??\") || text.starts_with(r"\\?\")) && text.ends_with(r":\");
    plain.then(|| OsString::from_wide(&wide[4..]))
}

/// What an open file is.
pub(crate) fn file_meta(file: &File) -> io::Result<Meta> {
    meta(file.as_handle())
}

/// A canonical path in the form that people write: without `\\?\` before a drive.
pub(crate) fn display_path(path: PathBuf) -> PathBuf {
    let wide: Vec<u16> = path.as_os_str().encode_wide().collect();
    without_prefix(&wide).map_or(path, PathBuf::from)
}

/// Which file or directory `path` is, links in its last component not followed.
pub(crate) fn identity_at(path: &Path) -> io::Result<Identity> {
    let file = OpenOptions::new()
        .access_mode(FILE_READ_ATTRIBUTES)
        .share_mode(SHARE_ALL)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)?;
    Ok(identity(&nt::information(file.as_handle())?))
}

/// Whether deletions on the drive of `path` can go to the recycle bin.
pub(crate) fn has_recycle_bin(path: &Path) -> bool {
    path.to_str().and_then(|text| text.get(..3)).is_some_and(nt::is_fixed_drive)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reparse(tag: u32, target: &str) -> Vec<u8> {
        let name: Vec<u8> = target.encode_utf16().flat_map(u16::to_ne_bytes).collect();
        let length = (name.len() as u16).to_ne_bytes();
        let flags: &[u8] = if tag == 0xa000_000c { &[0; 4] } else { &[] };
        [&tag.to_ne_bytes()[..], &[0; 4], &[0; 2], &length, &[0; 4], flags, &name].concat()
    }

    #[test]
    fn targets_of_links_and_junctions_are_read_as_plain_paths() {
        for (tag, written, read) in [
            (0xa000_000c, r"\??\C:\work\a", r"C:\work\a"),
            (0xa000_000c, r"..\a", r"..\a"),
            (0xa000_0003, r"\??\D:\", r"D:\"),
            (0xa000_0003, r"\??\Volume{0}\x", r"\??\Volume{0}\x"),
            (0xa000_000c, r"\??\UNC\server\share", r"\??\UNC\server\share"),
        ] {
            assert_eq!(link_target(&reparse(tag, written)), Some(OsString::from(read)), "{written}");
        }
        assert_eq!(link_target(&reparse(0xa000_000c, "abc")[..21]), None, "cut short");
    }

    #[test]
    fn what_stands_for_another_place_is_never_a_plain_directory() {
        let reparse = FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DIRECTORY;
        assert_eq!(kind_of(reparse, 0xa000_0003), Kind::Symlink);
        assert_eq!(kind_of(reparse, 0xa000_000c), Kind::Symlink);
        assert_eq!(kind_of(reparse, 0xa000_001d), Kind::Other, "a link of WSL");
        assert_eq!(kind_of(reparse, 0x9000_001a), Kind::Directory, "a folder kept in a cloud");
        assert_eq!(kind_of(FILE_ATTRIBUTE_DIRECTORY, 0), Kind::Directory);
    }

    #[test]
    fn times_count_from_1970() {
        let ticks: u64 = 116_444_736_000_000_000 + 15_000_000;
        assert_eq!(seconds((ticks >> 32) as u32, ticks as u32), 1.5);
    }
}
