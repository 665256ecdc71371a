//! Job objects.

use std::ffi::OsString;
use std::io;
use std::mem::size_of;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::PathBuf;
use std::ptr;

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, IsProcessInJob, JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicAccountingInformation, JobObjectBasicProcessIdList,
    JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject,
    TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{PROCESS_NAME_WIN32, QueryFullProcessImageNameW};

use super::handles::{check, open};

/// What the processes of a killed job are said to have ended with.
const KILLED: u32 = 1;

/// More processes than this in one job are not named, only killed.
const MOST_LISTED: usize = 1024;

pub(super) struct Job(OwnedHandle);

impl Job {
    /// One whose processes die when its last handle closes. Breaking away is not allowed, nor is a dialog
    /// after a crash, which nobody would see.
    pub(super) fn new() -> io::Result<Job> {
        // SAFETY: no attributes and no name; the answer is checked.
        let raw = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle is new, valid, and nobody else's.
        let job = Job(unsafe { OwnedHandle::from_raw_handle(raw) });
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags =
            JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
        // SAFETY: the structure is the one this class takes, with its size.
        check(unsafe {
            SetInformationJobObject(
                job.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                ptr::from_ref(&limits).cast(),
                size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>() as u32,
            )
        })?;
        Ok(job)
    }

    pub(super) fn assign(&self, process: &OwnedHandle) -> io::Result<()> {
        // SAFETY: both handles are open.
        check(unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process.as_raw_handle()) })
    }

    /// Whether the process is in it, or in a job within it.
    pub(super) fn holds(&self, process: &OwnedHandle) -> bool {
        let mut is_in = 0;
        // SAFETY: both handles are open, and the answer is written to a place of ours.
        let asked =
            check(unsafe { IsProcessInJob(process.as_raw_handle(), self.0.as_raw_handle(), &raw mut is_in) });
        asked.is_ok() && is_in != 0
    }

    pub(super) fn terminate(&self) {
        // SAFETY: the handle is open.
        unsafe { TerminateJobObject(self.0.as_raw_handle(), KILLED) };
    }

    pub(super) fn is_empty(&self) -> bool {
        let mut accounts = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        // SAFETY: the structure is the one this class fills, with its size.
        let asked = check(unsafe {
            QueryInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectBasicAccountingInformation,
                ptr::from_mut(&mut accounts).cast(),
                size_of::<JOBOBJECT_BASIC_ACCOUNTING_INFORMATION>() as u32,
                ptr::null_mut(),
            )
        });
        asked.is_ok() && accounts.ActiveProcesses == 0
    }

    /// Its live processes, with their names.
    pub(super) fn members(&self) -> Vec<(u32, String)> {
        /// JOBOBJECT_BASIC_PROCESS_ID_LIST, with room for the list.
        #[repr(C)]
        struct List {
            assigned: u32,
            listed: u32,
            ids: [usize; MOST_LISTED],
        }
        let mut list = Box::new(List { assigned: 0, listed: 0, ids: [0; MOST_LISTED] });
        // A list that does not fit is an error, and filled as far as it goes all the same.
        // SAFETY: the structure is the one this class fills, with its size.
        unsafe {
            QueryInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectBasicProcessIdList,
                ptr::from_mut(list.as_mut()).cast(),
                size_of::<List>() as u32,
                ptr::null_mut(),
            );
        }
        let listed = (list.listed as usize).min(MOST_LISTED);
        list.ids[..listed].iter().filter_map(|id| u32::try_from(*id).ok()).map(|id| (id, name(id))).collect()
    }
}

fn name(pid: u32) -> String {
    let Ok(process) = open(pid) else { return String::new() };
    let mut buffer = [0u16; 1024];
    let mut length = buffer.len() as u32;
    // SAFETY: the buffer is as long as `length` says, which then says how much of it is filled.
    let named = check(unsafe {
        QueryFullProcessImageNameW(
            process.as_raw_handle(),
            PROCESS_NAME_WIN32,
            buffer.as_mut_ptr(),
            &mut length,
        )
    });
    if named.is_err() {
        return String::new();
    }
    let path = PathBuf::from(OsString::from_wide(&buffer[..length as usize]));
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
