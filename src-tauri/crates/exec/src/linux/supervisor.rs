//! The supervisor's side: what runs in the small process between us and a command.

use std::ffi::c_int;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketType, recvmsg};
use rustix::process::{DumpableBehavior, WaitOptions, getpid, wait};

use super::hunt::{Hunt, Root};
use super::order::{ARGUMENT, FDS, Order};
use crate::unix::{Notice, Stage, all_signals, spawn};

/// Whether this process was started to be a supervisor.
pub(crate) fn is_asked() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    arguments.next().is_some_and(|argument| argument == ARGUMENT) && arguments.next().is_none()
}

/// Supervises and exits. Nothing of this program's own runs at the exit.
pub(crate) fn run() -> ! {
    let code = c_int::from(supervise().is_err());
    // SAFETY: `_exit` takes any code and does not return; no state of this process is used after it.
    unsafe { libc::_exit(code) }
}

fn supervise() -> io::Result<()> {
    // Nothing the command sends to its parent may end or disturb us, but for the two signals nobody can block.
    block_all_signals()?;
    let control = take_control()?;
    rustix::thread::set_name(c"exec-supervisor")?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::process::chdir("/")?;
    if !comes_soon(&control) {
        // It may wait for a minute, and starting took more than it needs from here on.
        crate::memory::let_go();
    }
    let Some(order) = receive(&control)? else { return Ok(()) };
    // Only now, and not before we are known: see `Orphans`.
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(getpid()))?;
    match begin(&order) {
        Ok(command) => {
            Notice::Started(command).send(&control);
            drop(order);
            attend(&control, command)
        }
        Err((stage, errno)) => {
            Notice::Failed(stage, errno.raw_os_error()).send(&control);
            Ok(())
        }
    }
}

fn block_all_signals() -> io::Result<()> {
    let all = all_signals();
    // SAFETY: `all` is an initialised signal set; the old mask is not asked for.
    match unsafe { libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The control socket comes as stdin, the one handle that can be given to a process without running code
/// between fork and exec. All else that may have come along is closed.
fn take_control() -> io::Result<OwnedFd> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin)? != SocketType::STREAM {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    drop(null);
    close_all_but(&control);
    Ok(control)
}

fn close_all_but(keep: &OwnedFd) {
    let keep = keep.as_raw_fd().unsigned_abs();
    let below = if keep > 3 { close_range(3, keep - 1) } else { true };
    if below && close_range(keep + 1, u32::MAX) {
        return;
    }
    // Before Linux 5.9. The number of the listing's own handle is in the list too: it is closed by then, and
    // closing it again fails.
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<u32> = open.flatten().filter_map(|fd| fd.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2 && *fd != keep) {
        // SAFETY: this process has just begun and owns no handle but `keep` and the standard three.
        unsafe { libc::close(fd.cast_signed()) };
    }
}

fn close_range(first: u32, last: u32) -> bool {
    // SAFETY: this process has just begun: no object in it owns any handle of the range.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
}

/// Whether the order, or the end, comes within a second.
fn comes_soon(control: &OwnedFd) -> bool {
    let second = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
    // All signals are blocked, so that nothing ends the wait early.
    poll(&mut [PollFd::new(control, PollFlags::IN)], Some(&second)).is_ok_and(|ready| ready > 0)
}

/// Waits for the order. None: whoever started us has gone, or does not need us any more.
fn receive(control: &OwnedFd) -> io::Result<Option<Order>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let message = loop {
        let mut parts = [IoSliceMut::new(&mut byte)];
        match recvmsg(control, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            result => break result?,
        }
    };
    if message.bytes == 0 {
        return Ok(None);
    }
    let mut fds = Vec::with_capacity(FDS);
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Order::from_fds(fds).map(Some)
}

/// Starts the command. Our own working folder becomes the command's: it is entered by its handle.
fn begin(order: &Order) -> Result<i32, (Stage, Errno)> {
    let words = order.words().map_err(|_| (Stage::Order, Errno::IO))?;
    rustix::process::fchdir(&order.cwd).map_err(|errno| (Stage::Cwd, errno))?;
    let command = spawn(&words, &order.stdout, &order.stderr).map_err(|errno| (Stage::Spawn, errno))?;
    let _ = rustix::process::chdir("/");
    Ok(command)
}

/// Reaps all that ends, reports the command's own end, and stays until nothing is left, or until we are left
/// alone.
fn attend(control: &OwnedFd, command: i32) -> io::Result<()> {
    let children = child_signals()?;
    loop {
        if reap(control, command)? == Tree::Empty {
            Notice::Done.send(control);
            return Ok(());
        }
        let mut fds =
            [PollFd::new(control, PollFlags::IN), PollFd::from_borrowed_fd(children.as_fd(), PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if !fds[0].revents().is_empty() {
            // Nothing is ever sent here after the order: this is the end of the one we work for.
            Hunt::below(&[Root::of(getpid().as_raw_nonzero().get())?]).kill();
            return Ok(());
        }
        if !fds[1].revents().is_empty() {
            let mut signals = [0; 1024];
            let _ = rustix::io::read(&children, &mut signals);
        }
    }
}

#[derive(PartialEq, Eq)]
enum Tree {
    Alive,
    Empty,
}

fn reap(control: &OwnedFd, command: i32) -> io::Result<Tree> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == command => {
                let signal = status.terminating_signal().map(|signal| -signal);
                Notice::Exited(status.exit_status().or(signal).unwrap_or(-1)).send(control);
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(Tree::Alive),
            Err(Errno::CHILD) => return Ok(Tree::Empty),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A handle that is readable when a child has ended (SIGCHLD is blocked, as all are).
fn child_signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set, which `sigaddset` and `signalfd` then read.
    let fd = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `signalfd` has just given us this handle, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
