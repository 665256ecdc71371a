//! By the Restart Manager, which tells who has a file open. That is more than its holder: anybody may open it. So of
//! those, the one counts that the file of the process id names, else the one that runs this program. Where the Restart
//! Manager does not answer, what the file says counts for a process of this program.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::ptr;

use windows_sys::Win32::Foundation::{ERROR_MORE_DATA, ERROR_SUCCESS};
use windows_sys::Win32::System::RestartManager::{
    CCH_RM_SESSION_KEY, RM_PROCESS_INFO, RmEndSession, RmGetList, RmRegisterResources, RmStartSession,
};
use windows_sys::Win32::System::Threading::{
    OpenProcess, PROCESS_NAME_WIN32, PROCESS_QUERY_LIMITED_INFORMATION, QueryFullProcessImageNameW,
};

/// Nothing more than the lock itself is needed.
#[derive(Debug)]
pub(in super::super) struct Claim;

impl Claim {
    pub(in super::super) fn take(_state_dir: &Path) -> io::Result<Self> {
        Ok(Self)
    }
}

/// The process that holds the lock file, which another one has.
pub(in super::super) fn of(_lock: &File, state_dir: &Path, said: Option<u32>) -> Option<u32> {
    let users = users_of(&state_dir.join(super::super::instance::LOCK)).unwrap_or_default();
    // We have opened it too, to look.
    let us = std::process::id();
    if users.iter().all(|pid| *pid == us) {
        return said.filter(|&pid| pid == us || is_this_program(pid));
    }
    let named = said.filter(|pid| users.contains(pid));
    named.or_else(|| users.into_iter().find(|&pid| pid != us && is_this_program(pid)))
}

/// The processes that have a file open.
fn users_of(file: &Path) -> io::Result<Vec<u32>> {
    let session = Session::start()?;
    let name: Vec<u16> = file.as_os_str().encode_wide().chain([0]).collect();
    let names = [name.as_ptr()];
    // SAFETY: the session is open; there is one name, which ends in zero, and nothing else.
    check(unsafe { RmRegisterResources(session.0, 1, names.as_ptr(), 0, ptr::null(), 0, ptr::null()) })?;
    let mut users = vec![RM_PROCESS_INFO::default(); 16];
    loop {
        let (mut needed, mut count, mut reasons) = (0, users.len() as u32, 0);
        // SAFETY: the session is open, and the list is as long as `count` says.
        let answer = unsafe {
            RmGetList(session.0, &raw mut needed, &raw mut count, users.as_mut_ptr(), &raw mut reasons)
        };
        if answer == ERROR_MORE_DATA {
            users.resize(needed as usize + 16, RM_PROCESS_INFO::default());
            continue;
        }
        check(answer)?;
        users.truncate(count as usize);
        return Ok(users.iter().map(|user| user.Process.dwProcessId).collect());
    }
}

fn check(answer: u32) -> io::Result<()> {
    if answer == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(answer.cast_signed())) }
}

struct Session(u32);

impl Session {
    fn start() -> io::Result<Self> {
        let mut session = 0;
        let mut key = [0u16; CCH_RM_SESSION_KEY as usize + 1];
        // SAFETY: the number and the key, of the length that is asked for, are written to places of ours.
        check(unsafe { RmStartSession(&raw mut session, 0, key.as_mut_ptr()) })?;
        Ok(Self(session))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: started in `start`, ended once.
        unsafe { RmEndSession(self.0) };
    }
}

fn is_this_program(pid: u32) -> bool {
    let ours = std::env::current_exe().ok();
    let same = |its: PathBuf| ours.is_some_and(|ours| super::of_one_installation(&its, &ours));
    program(pid).is_some_and(same)
}

fn program(pid: u32) -> Option<PathBuf> {
    use std::os::windows::ffi::OsStringExt;
    // SAFETY: takes no pointers; the handle it answers is ours to close.
    let process = unsafe {
        let raw = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid);
        if raw.is_null() {
            return None;
        }
        OwnedHandle::from_raw_handle(raw)
    };
    let mut buffer = [0u16; 1024];
    let mut length = buffer.len() as u32;
    // SAFETY: the buffer is as long as `length` says, which then says how much of it is filled.
    let named = unsafe {
        QueryFullProcessImageNameW(
            process.as_raw_handle(),
            PROCESS_NAME_WIN32,
            buffer.as_mut_ptr(),
            &raw mut length,
        )
    };
    (named != 0).then(|| std::ffi::OsString::from_wide(&buffer[..length as usize]).into())
}
