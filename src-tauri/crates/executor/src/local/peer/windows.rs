//! Parents from a snapshot of the process table. Windows keeps the id of a parent that has ended, and gives ids anew: a
//! parent counts only while it is older than its child. Descent over an ended parent is lost; the executor therefore also
//! asks `exec`, whose job objects hold every descendant ([`Setup::is_command`](crate::local::Setup::is_command)).

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{FILETIME, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION,
};

pub(super) struct Parents(HashMap<u32, u32>);

impl Parents {
    pub(super) fn now() -> io::Result<Self> {
        // SAFETY: takes no pointers; the handle it answers is ours to close.
        let snapshot = unsafe {
            let raw = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
            if raw == INVALID_HANDLE_VALUE {
                return Err(io::Error::last_os_error());
            }
            OwnedHandle::from_raw_handle(raw)
        };
        let mut parents = HashMap::new();
        let mut entry = PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..Default::default() };
        // SAFETY: the snapshot is open, and the entry says its own size.
        let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
        while more != 0 {
            parents.insert(entry.th32ProcessID, entry.th32ParentProcessID);
            // SAFETY: as above.
            more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
        }
        Ok(Self(parents))
    }

    /// The parent of `pid`, while it lives.
    pub(super) fn of(&mut self, pid: u32) -> io::Result<Option<u32>> {
        let Some(&parent) = self.0.get(&pid) else { return Err(io::ErrorKind::NotFound.into()) };
        if parent == 0 || !self.0.contains_key(&parent) {
            return Ok(None);
        }
        let child = started(pid)?;
        // Another user's, or the system's: none that this process has started.
        let Ok(before) = started(parent) else { return Ok(None) };
        Ok((before <= child).then_some(parent))
    }
}

/// When it was started, in units of 100 ns.
fn started(pid: u32) -> io::Result<u64> {
    // SAFETY: takes no pointers; the handle it answers is ours to close.
    let process = unsafe {
        let raw = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid);
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        OwnedHandle::from_raw_handle(raw)
    };
    let mut times = [FILETIME::default(); 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: the handle is open and each pointer is to a FILETIME of its own.
    if unsafe { GetProcessTimes(process.as_raw_handle(), created, exited, kernel, user) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::from(times[0].dwHighDateTime) << 32 | u64::from(times[0].dwLowDateTime))
}
