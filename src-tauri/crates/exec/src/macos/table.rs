//! The process table, through libproc.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{MaybeUninit, size_of};

/// One process.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Microseconds since the epoch.
    pub(super) started: u64,
    pub(super) is_zombie: bool,
    pub(super) name: String,
    uid: u32,
}

impl Process {
    /// Whether we may signal it.
    pub(super) fn is_ours(&self) -> bool {
        let us = rustix::process::geteuid();
        us.is_root() || us.as_raw() == self.uid
    }
}

/// All processes this user may look at.
pub(super) fn read() -> Vec<Process> {
    numbers().into_iter().filter_map(read_one).collect()
}

fn numbers() -> Vec<c_int> {
    // SAFETY: without a buffer the call only answers how many there are.
    let count = unsafe { libc::proc_listallpids(std::ptr::null_mut(), 0) };
    // Room for those that start meanwhile.
    let mut pids: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0) + 256];
    let size = c_int::try_from(pids.len() * size_of::<c_int>()).unwrap_or(c_int::MAX);
    // SAFETY: the buffer is as long as `size` says, and numbers are plain data.
    let count = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast::<c_void>(), size) };
    pids.truncate(usize::try_from(count).unwrap_or(0));
    pids
}

fn read_one(pid: c_int) -> Option<Process> {
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = c_int::try_from(size_of::<libc::proc_bsdinfo>()).ok()?;
    // SAFETY: the buffer is as long as `size` says.
    let read = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, info.as_mut_ptr().cast(), size) };
    if read != size {
        return None;
    }
    // SAFETY: all of it is written, and it is plain data.
    let info = unsafe { info.assume_init() };
    Some(Process {
        pid,
        parent: info.pbi_ppid.cast_signed(),
        group: info.pbi_pgid.cast_signed(),
        started: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec,
        is_zombie: info.pbi_status == libc::SZOMB,
        name: text(&info.pbi_comm),
        uid: info.pbi_uid,
    })
}

fn text(raw: &[c_char]) -> String {
    let bytes: Vec<u8> = raw.iter().map(|byte| byte.cast_unsigned()).collect();
    CStr::from_bytes_until_nul(&bytes)
        .map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}
