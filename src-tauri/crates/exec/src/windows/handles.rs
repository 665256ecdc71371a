//! Events, pipes and waiting.

use std::fs::File;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::ptr;
use std::time::Duration;

use windows_sys::Win32::Foundation::{HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation};
use windows_sys::Win32::System::Pipes::CreatePipe;
use windows_sys::Win32::System::Threading::{
    CreateEventW, INFINITE, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, SetEvent, WaitForMultipleObjects,
};
use windows_sys::core::BOOL;

/// The OS's answer as a result.
pub(super) fn check(success: BOOL) -> io::Result<()> {
    match success {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A process to look at.
pub(super) fn open(pid: u32) -> io::Result<OwnedHandle> {
    // SAFETY: the answer is checked.
    let raw = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    if raw.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is new, valid, and nobody else's.
    Ok(unsafe { OwnedHandle::from_raw_handle(raw) })
}

/// A flag to wait for; once set it stays so.
pub(super) struct Event(OwnedHandle);

impl Event {
    pub(super) fn new() -> io::Result<Event> {
        // SAFETY: no attributes and no name; the answer is checked.
        let raw = unsafe { CreateEventW(ptr::null(), 1, 0, ptr::null()) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle is new, valid, and nobody else's.
        Ok(Event(unsafe { OwnedHandle::from_raw_handle(raw) }))
    }

    pub(super) fn set(&self) {
        // SAFETY: the handle is an open event.
        unsafe { SetEvent(self.0.as_raw_handle()) };
    }
}

impl AsRawHandle for Event {
    fn as_raw_handle(&self) -> RawHandle {
        self.0.as_raw_handle()
    }
}

/// The end to read and the end to write of a new pipe that holds `size` bytes. Neither is inherited.
pub(super) fn pipe(size: u32) -> io::Result<(File, File)> {
    let (mut read, mut write): (HANDLE, HANDLE) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: both places for the handles are valid; no attributes.
    check(unsafe { CreatePipe(&mut read, &mut write, ptr::null(), size) })?;
    // SAFETY: both handles are new, valid, and nobody else's.
    unsafe { Ok((File::from_raw_handle(read), File::from_raw_handle(write))) }
}

pub(super) fn set_inheritable(handle: &impl AsRawHandle, inheritable: bool) -> io::Result<()> {
    let flags = if inheritable { HANDLE_FLAG_INHERIT } else { 0 };
    // SAFETY: the handle is open.
    check(unsafe { SetHandleInformation(handle.as_raw_handle(), HANDLE_FLAG_INHERIT, flags) })
}

/// Waits for one of `handles` or for `time` to pass.
pub(super) fn wait(handles: &[RawHandle], time: Option<Duration>) {
    // Rounded up, so that the time has passed when it says so.
    let milliseconds =
        time.map_or(INFINITE, |time| u32::try_from(time.as_millis() + 1).unwrap_or(INFINITE - 1));
    let count = u32::try_from(handles.len()).unwrap_or(0);
    // SAFETY: the handles are open for as long as the caller's borrow of what owns them, and counted.
    unsafe { WaitForMultipleObjects(count, handles.as_ptr(), 0, milliseconds) };
}

/// Whether the process, thread or event is signalled now.
pub(super) fn is_signalled(handle: &impl AsRawHandle) -> bool {
    // SAFETY: the handle is open.
    unsafe { WaitForMultipleObjects(1, &handle.as_raw_handle(), 0, 0) == 0 }
}
