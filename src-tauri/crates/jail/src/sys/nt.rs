//! Windows' handle-relative calls, as plain functions. All `unsafe` of this crate is here.

use std::ffi::{OsStr, c_void};
use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};

use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_OPEN_REPARSE_POINT, FILE_RENAME_INFORMATION, FILE_SYNCHRONOUS_IO_NONALERT, FileRenameInformation,
    FileRenameInformationEx, NtCreateFile, NtSetInformationFile,
};
use windows_sys::Win32::Foundation::{
    HANDLE, NTSTATUS, OBJ_CASE_INSENSITIVE, RtlNtStatusToDosError, UNICODE_STRING,
};
use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, GetKernelObjectSecurity, SetKernelObjectSecurity,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_TAG_INFO, FILE_BASIC_INFO,
    FILE_CASE_SENSITIVE_INFO, FILE_DISPOSITION_FLAG_DELETE, FILE_DISPOSITION_FLAG_POSIX_SEMANTICS,
    FILE_DISPOSITION_INFO, FILE_DISPOSITION_INFO_EX, FILE_INFO_BY_HANDLE_CLASS, FileAttributeTagInfo,
    FileBasicInfo, FileCaseSensitiveInfo, FileDispositionInfo, FileDispositionInfoEx,
    FileIdBothDirectoryInfo, GetDriveTypeW, GetFileInformationByHandle, GetFileInformationByHandleEx,
    SYNCHRONIZE, SetFileInformationByHandle,
};
use windows_sys::Win32::System::IO::{DeviceIoControl, IO_STATUS_BLOCK};
use windows_sys::Win32::System::Ioctl::FSCTL_GET_REPARSE_POINT;

/// `MAXIMUM_REPARSE_DATA_BUFFER_SIZE` of ntifs.h.
const MAX_REPARSE: usize = 16 * 1024;

/// Replace what is there; POSIX semantics: ntifs.h.
const RENAME_REPLACE: u32 = 1;
const RENAME_POSIX: u32 = 2;

/// How to open one name.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub(super) access: u32,
    pub(super) share: u32,
    pub(super) disposition: u32,
    pub(super) options: u32,
}

fn check(status: NTSTATUS) -> io::Result<()> {
    if status >= 0 {
        return Ok(());
    }
    // SAFETY: a pure function of its argument.
    let code = unsafe { RtlNtStatusToDosError(status) };
    Err(io::Error::from_raw_os_error(code.cast_signed()))
}

fn succeeded(result: i32) -> io::Result<()> {
    if result != 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Opens `name`, one component, in a directory; the directory itself when it is empty. Reparse points are opened
/// themselves.
pub(super) fn open(dir: BorrowedHandle<'_>, name: &OsStr, how: Open) -> io::Result<OwnedHandle> {
    open_through(dir, name, Open { options: how.options | FILE_OPEN_REPARSE_POINT, ..how })
}

/// As `open`, but what a file system filter makes of a reparse point (a file kept in a cloud).
pub(super) fn open_through(dir: BorrowedHandle<'_>, name: &OsStr, how: Open) -> io::Result<OwnedHandle> {
    let mut wide: Vec<u16> = name.encode_wide().collect();
    let forbidden = |unit: &u16| [u16::from(b'\\'), u16::from(b'/'), u16::from(b':'), 0].contains(unit);
    let bytes = u16::try_from(wide.len() * 2).map_err(|_| io::ErrorKind::InvalidFilename)?;
    // A name is one component and no stream, whatever it came from.
    if wide.iter().any(forbidden) || name == "." || name == ".." {
        return Err(io::ErrorKind::NotFound.into());
    }
    let name = UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: wide.as_mut_ptr() };
    let attributes = OBJECT_ATTRIBUTES {
        Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
        RootDirectory: dir.as_raw_handle(),
        ObjectName: &raw const name,
        Attributes: OBJ_CASE_INSENSITIVE,
        ..OBJECT_ATTRIBUTES::default()
    };
    let mut handle: HANDLE = std::ptr::null_mut();
    let mut status = IO_STATUS_BLOCK::default();
    // SAFETY: every pointer is to a live local; `name` points into `wide`, which outlives the call; the handle is only
    // used when the call succeeded.
    unsafe {
        check(NtCreateFile(
            &raw mut handle,
            how.access | SYNCHRONIZE,
            &raw const attributes,
            &raw mut status,
            std::ptr::null(),
            FILE_ATTRIBUTE_NORMAL,
            how.share,
            how.disposition,
            how.options | FILE_SYNCHRONOUS_IO_NONALERT,
            std::ptr::null(),
            0,
        ))?;
        Ok(OwnedHandle::from_raw_handle(handle))
    }
}

/// Fills a structure of plain numbers.
fn query<T: Copy + Default>(handle: BorrowedHandle<'_>, class: FILE_INFO_BY_HANDLE_CLASS) -> io::Result<T> {
    let mut info = T::default();
    // SAFETY: the buffer is `info`, of the size given; every caller pairs the class with its structure, in which any
    // bytes are valid.
    succeeded(unsafe {
        GetFileInformationByHandleEx(
            handle.as_raw_handle(),
            class,
            (&raw mut info).cast(),
            size_of::<T>() as u32,
        )
    })?;
    Ok(info)
}

fn set<T>(handle: BorrowedHandle<'_>, class: FILE_INFO_BY_HANDLE_CLASS, info: &T) -> io::Result<()> {
    let info: *const T = info;
    // SAFETY: the buffer is a live structure of the size given; every caller pairs the class with its structure.
    succeeded(unsafe {
        SetFileInformationByHandle(handle.as_raw_handle(), class, info.cast(), size_of::<T>() as u32)
    })
}

pub(super) fn information(handle: BorrowedHandle<'_>) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut info = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the buffer is a live local of the type that the call fills.
    succeeded(unsafe { GetFileInformationByHandle(handle.as_raw_handle(), &raw mut info) })?;
    Ok(info)
}

/// The reparse tag of something that has the attribute.
pub(super) fn tag(handle: BorrowedHandle<'_>) -> io::Result<u32> {
    Ok(query::<FILE_ATTRIBUTE_TAG_INFO>(handle, FileAttributeTagInfo)?.ReparseTag)
}

pub(super) fn is_case_sensitive(handle: BorrowedHandle<'_>) -> io::Result<bool> {
    Ok(query::<FILE_CASE_SENSITIVE_INFO>(handle, FileCaseSensitiveInfo)?.Flags & 1 != 0)
}

/// Marks as deleted what was opened for that.
pub(super) fn delete(handle: BorrowedHandle<'_>) -> io::Result<()> {
    let flags = FILE_DISPOSITION_FLAG_DELETE | FILE_DISPOSITION_FLAG_POSIX_SEMANTICS;
    match set(handle, FileDispositionInfoEx, &FILE_DISPOSITION_INFO_EX { Flags: flags }) {
        Err(error) if is_unknown(&error) => {
            set(handle, FileDispositionInfo, &FILE_DISPOSITION_INFO { DeleteFile: true })
        }
        other => other,
    }
}

/// File systems and systems without the newer calls: ERROR_INVALID_FUNCTION, NOT_SUPPORTED, INVALID_PARAMETER,
/// CALL_NOT_IMPLEMENTED of winerror.h.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(1 | 50 | 87 | 120))
}

/// Renames what was opened for deletion.
pub(super) fn rename(
    handle: BorrowedHandle<'_>,
    to: BorrowedHandle<'_>,
    name: &OsStr,
    replace: bool,
) -> io::Result<()> {
    let replace = if replace { RENAME_REPLACE } else { 0 };
    match rename_with(handle, to, name, replace | RENAME_POSIX, FileRenameInformationEx) {
        Err(error) if is_unknown(&error) => rename_with(handle, to, name, replace, FileRenameInformation),
        other => other,
    }
}

fn rename_with(
    handle: BorrowedHandle<'_>,
    to: BorrowedHandle<'_>,
    name: &OsStr,
    flags: u32,
    class: i32,
) -> io::Result<()> {
    let name: Vec<u8> = name.encode_wide().flat_map(u16::to_ne_bytes).collect();
    let start = offset_of!(FILE_RENAME_INFORMATION, FileName);
    let size = (start + name.len()).max(size_of::<FILE_RENAME_INFORMATION>());
    // Of words, for the structure holds a pointer.
    let mut buffer = vec![0_usize; size.div_ceil(size_of::<usize>())];
    let mut status = IO_STATUS_BLOCK::default();
    let information: *mut FILE_RENAME_INFORMATION = buffer.as_mut_ptr().cast();
    // SAFETY: the buffer is aligned and large enough for the structure with the name behind it; the fields are written
    // through raw pointers into it, and it outlives the call.
    unsafe {
        (&raw mut (*information).Anonymous.Flags).write(flags);
        (&raw mut (*information).RootDirectory).write(to.as_raw_handle());
        (&raw mut (*information).FileNameLength).write(name.len() as u32);
        std::ptr::copy_nonoverlapping(name.as_ptr(), buffer.as_mut_ptr().cast::<u8>().add(start), name.len());
        check(NtSetInformationFile(
            handle.as_raw_handle(),
            &raw mut status,
            buffer.as_ptr().cast::<c_void>(),
            size as u32,
            class,
        ))
    }
}

/// The next piece of a directory's records, `FILE_ID_BOTH_DIR_INFO`; none at the end.
pub(super) fn next_entries<'a>(
    handle: BorrowedHandle<'_>,
    buffer: &'a mut [u64],
) -> io::Result<Option<&'a [u8]>> {
    /// ERROR_NO_MORE_FILES of winerror.h.
    const NO_MORE: i32 = 18;
    let size = size_of_val(buffer);
    // SAFETY: the buffer is live, aligned to 8 bytes as the records need, and of the size given. What the call leaves is
    // read as bytes.
    unsafe {
        let filled = GetFileInformationByHandleEx(
            handle.as_raw_handle(),
            FileIdBothDirectoryInfo,
            buffer.as_mut_ptr().cast(),
            size as u32,
        );
        match succeeded(filled) {
            Ok(()) => Ok(Some(std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), size))),
            Err(error) if error.raw_os_error() == Some(NO_MORE) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The raw data of a reparse point.
pub(super) fn reparse_data(handle: BorrowedHandle<'_>) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0_u8; MAX_REPARSE];
    let mut length = 0;
    // SAFETY: the buffer is live and of the size given; no overlapped structure is needed for a synchronous handle.
    succeeded(unsafe {
        DeviceIoControl(
            handle.as_raw_handle(),
            FSCTL_GET_REPARSE_POINT,
            std::ptr::null(),
            0,
            buffer.as_mut_ptr().cast(),
            MAX_REPARSE as u32,
            &raw mut length,
            std::ptr::null_mut(),
        )
    })?;
    buffer.truncate(length as usize);
    Ok(buffer)
}

/// Gives `to` the access list and the attributes of `from`.
pub(super) fn copy_security(from: BorrowedHandle<'_>, to: &File) -> io::Result<()> {
    let mut needed = 0;
    // SAFETY: a size of 0 makes the call only tell the size that it needs.
    unsafe {
        GetKernelObjectSecurity(
            from.as_raw_handle(),
            DACL_SECURITY_INFORMATION,
            std::ptr::null_mut(),
            0,
            &raw mut needed,
        );
    }
    // Of words, for the descriptor holds structures.
    let mut descriptor = vec![0_usize; (needed as usize).div_ceil(size_of::<usize>()).max(1)];
    let pointer: *mut c_void = descriptor.as_mut_ptr().cast();
    // SAFETY: the buffer is as large as the system asked for, and lives through both calls.
    unsafe {
        succeeded(GetKernelObjectSecurity(
            from.as_raw_handle(),
            DACL_SECURITY_INFORMATION,
            pointer,
            needed,
            &raw mut needed,
        ))?;
        succeeded(SetKernelObjectSecurity(to.as_raw_handle(), DACL_SECURITY_INFORMATION, pointer))?;
    }
    let attributes = information(from)?.dwFileAttributes;
    // Times of 0 stay as they are.
    let basic = FILE_BASIC_INFO { FileAttributes: attributes, ..FILE_BASIC_INFO::default() };
    set(std::os::windows::io::AsHandle::as_handle(to), FileBasicInfo, &basic)
}

/// Whether `drive` (`C:\`) is a fixed disk: the others have no recycle bin.
pub(super) fn is_fixed_drive(drive: &str) -> bool {
    /// DRIVE_FIXED of fileapi.h.
    const FIXED: u32 = 3;
    let wide: Vec<u16> = drive.encode_utf16().chain([0]).collect();
    // SAFETY: the string is live and ends with 0.
    unsafe { GetDriveTypeW(wide.as_ptr()) == FIXED }
}
