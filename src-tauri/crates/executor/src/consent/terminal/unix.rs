use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp, tcgetwinsize};

use super::{Typed, Waited};

/// macOS cannot poll `/dev/tty`; there input is looked for so often while a prompt is shown.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const CAN_POLL: bool = cfg!(not(target_os = "macos"));

/// A terminal, open twice: reading must not block, since the prompt may be withdrawn; writing may.
pub(super) struct Console {
    input: File,
    output: File,
    wake: UnixStream,
    woken: UnixStream,
    /// The process's own controlling terminal, so that it can be in its background.
    controlling: bool,
}

impl Console {
    pub(super) fn open() -> Option<Self> {
        Self::at(Path::new("/dev/tty"), true)
    }

    pub(super) fn at(path: &Path, controlling: bool) -> Option<Self> {
        let open = |flags| {
            let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty()).ok().map(File::from)
        };
        let input = open(OFlags::RDONLY | OFlags::NONBLOCK)?;
        let output = open(OFlags::WRONLY)?;
        let (wake, woken) = UnixStream::pair().ok()?;
        wake.set_nonblocking(true).ok()?;
        woken.set_nonblocking(true).ok()?;
        Some(Self { input, output, wake, woken, controlling })
    }

    /// Reading or writing from the background would stop the program.
    pub(super) fn is_ours(&self) -> bool {
        !self.controlling
            || tcgetpgrp(&self.input).is_ok_and(|foreground| foreground.as_raw_nonzero().get() == own_group())
    }

    pub(super) fn width(&self) -> usize {
        match tcgetwinsize(&self.output) {
            Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
            Ok(_) | Err(_) => 80,
        }
    }

    pub(super) fn discard_input(&self) {
        let _ = tcflush(&self.input, QueueSelector::IFlush);
    }

    /// What cannot be written is a prompt that nobody sees; it runs out.
    pub(super) fn write(&self, text: &str) {
        let _ = (&self.output).write_all(text.as_bytes());
    }

    pub(super) fn wake(&self) {
        // A full socket wakes as well.
        let _ = (&self.wake).write(&[0]);
    }

    pub(super) fn wait(&self, for_input: bool) -> Waited {
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        if for_input && CAN_POLL {
            fds.push(PollFd::new(&self.input, PollFlags::IN));
        }
        let every = Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.subsec_nanos().into() };
        let timeout = (for_input && !CAN_POLL).then_some(&every);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Waited::Gone,
        }
        let input = fds.get(1).map_or(PollFlags::empty(), PollFd::revents);
        if fds[0].revents().contains(PollFlags::IN) {
            while (&self.woken).read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
            return Waited::Woken;
        }
        if input.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            Waited::Gone
        } else if input.contains(PollFlags::IN) || timeout.is_some() {
            Waited::Input
        } else {
            Waited::Woken
        }
    }

    pub(super) fn read(&self) -> Typed {
        if !self.is_ours() {
            return Typed::Nothing;
        }
        let mut bytes = [0; 1024];
        match rustix::io::read(&self.input, &mut bytes) {
            Ok(0) => Typed::End,
            Ok(read) => Typed::Text(String::from_utf8_lossy(&bytes[..read]).into_owned()),
            Err(Errno::AGAIN | Errno::INTR) => Typed::Nothing,
            Err(_) => Typed::Gone,
        }
    }
}

/// Our process group; 0 where it leads from outside our PID namespace, which rustix's `getpgrp` does not take.
#[allow(unsafe_code, reason = "rustix has no call that can answer 0")]
fn own_group() -> i32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::getpgrp() }
}
