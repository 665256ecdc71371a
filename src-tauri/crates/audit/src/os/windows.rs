//! Windows: the log is opened so that nobody else can write, rename or delete it while we have it; its folder is below
//! `%LOCALAPPDATA%`, whose access list names its user alone and is inherited.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use windows_sys::Win32::Foundation::{GENERIC_READ, GENERIC_WRITE};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_ALLOCATION_INFO, FILE_FLAG_OPEN_REPARSE_POINT, FILE_RENAME_INFO, FILE_SHARE_READ,
    FileAllocationInfo, FileRenameInfo, SetFileInformationByHandle,
};

use super::{Allocation, Presence};

/// The share mode keeps a file what it is, so that nothing needs comparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId;

/// The log's folder.
pub(crate) struct Dir;

impl Dir {
    /// Makes the folder if need be.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Ok(Self)
    }

    /// NTFS journals names by itself.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// The share mode lets nobody delete, replace or write it.
    pub(crate) fn presence(&self, _name: &str, _id: FileId, _size: u64) -> io::Result<Presence> {
        Ok(Presence::InPlace)
    }
}

/// As [`Dir::presence`].
pub(crate) fn presence_of(_file: &File, _size: u64) -> io::Result<Presence> {
    Ok(Presence::InPlace)
}

/// Opens or creates a file of our own beside the log.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Creates a file of our own; it must not be there.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

fn exclusive() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        // DELETE is the right to rename through this handle.
        .access_mode(GENERIC_READ | GENERIC_WRITE | DELETE)
        .share_mode(FILE_SHARE_READ)
        .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    options
}

/// Opens the log for appending.
pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    exclusive().open(path).map_err(busy)
}

/// Creates a log; it must not be there.
pub(crate) fn create_log(path: &Path) -> io::Result<File> {
    exclusive().create_new(true).open(path).map_err(busy)
}

/// ERROR_SHARING_VIOLATION: another process writes it.
fn busy(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(32) { io::ErrorKind::WouldBlock.into() } else { error }
}

/// Opening it did that.
pub(crate) fn claim(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Closing it does that.
pub(crate) fn disclaim(_file: &File) {}

pub(crate) fn id_of(_file: &File) -> io::Result<FileId> {
    Ok(FileId)
}

/// Appends; `at` is where the end is.
pub(crate) fn append(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    write_at(file, bytes, at)
}

pub(crate) fn write_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                at += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_read(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                bytes = &mut bytes[read..];
                at += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sets disk space aside up to `to`, leaving the length as it is. What is not used is freed when the file is closed.
pub(crate) fn reserve(file: &File, _from: u64, to: u64) -> io::Result<Allocation> {
    let size = i64::try_from(to).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let info = FILE_ALLOCATION_INFO { AllocationSize: size };
    // SAFETY: the handle is open for as long as `file` is borrowed; the class FileAllocationInfo reads one
    // FILE_ALLOCATION_INFO, which is what is given with its size.
    let done = unsafe {
        SetFileInformationByHandle(
            file.as_raw_handle(),
            FileAllocationInfo,
            (&raw const info).cast(),
            size_of::<FILE_ALLOCATION_INFO>() as u32,
        )
    };
    if done != 0 {
        return Ok(Allocation::Done);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED, ERROR_INVALID_PARAMETER, ERROR_CALL_NOT_IMPLEMENTED: not on this
        // file system. What the disk refuses then is a failed write.
        Some(1 | 50 | 87 | 120) => Ok(Allocation::Unsupported),
        _ => Err(error),
    }
}

/// Renames through the open handle, never over an existing file.
pub(crate) fn rename_exclusive(file: &File, _from: &Path, to: &Path) -> io::Result<()> {
    let to = std::path::absolute(to)?;
    let name: Vec<u16> = to.as_os_str().encode_wide().collect();
    let name_bytes = name.len() * size_of::<u16>();
    let name_at = offset_of!(FILE_RENAME_INFO, FileName);
    let total = (name_at + name_bytes + size_of::<u16>()).max(size_of::<FILE_RENAME_INFO>());
    // u64s, so that the buffer has the structure's alignment; zeros are "do not replace" and the final NUL.
    let mut buffer = vec![0u64; total.div_ceil(size_of::<u64>())];
    let info: *mut FILE_RENAME_INFO = buffer.as_mut_ptr().cast();
    // SAFETY: `buffer` is aligned to 8, zeroed, and at least `total` bytes long, which holds the structure's head and
    // the whole name after it; the writes stay within it. The handle is open for as long as `file` is borrowed.
    let done = unsafe {
        (*info).FileNameLength = name_bytes as u32;
        let target = info.cast::<u8>().add(name_at).cast::<u16>();
        std::ptr::copy_nonoverlapping(name.as_ptr(), target, name.len());
        SetFileInformationByHandle(file.as_raw_handle(), FileRenameInfo, info.cast(), total as u32)
    };
    if done == 0 {
        let error = io::Error::last_os_error();
        // ERROR_ALREADY_EXISTS, ERROR_FILE_EXISTS
        return match error.raw_os_error() {
            Some(183 | 80) => Err(io::ErrorKind::AlreadyExists.into()),
            _ => Err(error),
        };
    }
    Ok(())
}
