//! Parents from the process table. macOS has no subreaper: an orphan belongs to `launchd`, and its descent is lost. The
//! executor therefore also asks `exec` which processes it holds ([`Setup::is_command`](crate::local::Setup::is_command)).

#![allow(unsafe_code)]

use std::io;

pub(super) struct Parents;

impl Parents {
    pub(super) fn now() -> io::Result<Self> {
        Ok(Self)
    }

    /// The parent of `pid`; none above the first process.
    pub(super) fn of(&mut self, pid: u32) -> io::Result<Option<u32>> {
        let pid = libc::c_int::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut info = std::mem::MaybeUninit::<libc::proc_bsdinfo>::uninit();
        let size = libc::c_int::try_from(size_of::<libc::proc_bsdinfo>())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: `info` is writable for `size` bytes, and nothing else is passed in.
        let filled =
            unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, info.as_mut_ptr().cast(), size) };
        if filled != size {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has filled all of it.
        let info = unsafe { info.assume_init() };
        Ok(Some(info.pbi_ppid).filter(|&parent| parent != 0))
    }
}
