//! The two pipes of a command, and reading them: into the transcript while there is room, into nothing after
//! that.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::output::{Stream, Transcript};

/// What a pipe holds where the OS lets us choose, four times its usual size: the writer seldom waits for us.
/// More gains nothing, and all pipes of a user together have a limit above which the kernel makes new ones
/// tiny.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 256 << 10;

const READ_SIZE: usize = 128 << 10;

/// What of a command is held by the thread that attends it, and later by the monitor.
pub(crate) struct Attended {
    pub(crate) control: OwnedFd,
    pub(crate) pipes: Pipes,
    /// The tree has reported that it is empty.
    pub(crate) done: bool,
}

/// The ends we read. None: closed by the last writer.
pub(crate) struct Pipes {
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

impl Pipes {
    /// Ours, and the two ends for the command. All close on exec; only ours do not block.
    pub(crate) fn new() -> io::Result<(Pipes, OwnedFd, OwnedFd)> {
        let (stdout, their_stdout) = pipe()?;
        let (stderr, their_stderr) = pipe()?;
        Ok((Pipes { stdout: Some(stdout), stderr: Some(stderr) }, their_stdout, their_stderr))
    }

    pub(crate) fn end(&mut self, stream: Stream) -> &mut Option<OwnedFd> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    pub(crate) fn are_closed(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }
}

#[cfg(target_os = "linux")]
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    // Refused above a per-user total; the default of 64 KiB works too, only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(&ours, PIPE_SIZE);
    Ok((ours, theirs))
}

#[cfg(not(target_os = "linux"))]
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = io::pipe()?;
    let (ours, theirs) = (OwnedFd::from(ours), OwnedFd::from(theirs));
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

/// Where output goes that nobody keeps.
pub(crate) struct Sink {
    #[cfg(target_os = "linux")]
    null: OwnedFd,
}

impl Sink {
    pub(crate) fn new() -> io::Result<Sink> {
        Ok(Sink {
            #[cfg(target_os = "linux")]
            null: rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty())?,
        })
    }

    /// Drops what the pipe holds now. On Linux the bytes are moved to /dev/null and never copied.
    pub(crate) fn swallow(&self, pipe: &OwnedFd, buffer: &mut [u8]) -> Read {
        #[cfg(target_os = "linux")]
        {
            use rustix::pipe::{SpliceFlags, splice};
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            match splice(pipe, None, &self.null, None, PIPE_SIZE, flags) {
                Err(Errno::INVAL | Errno::NOSYS) => {}
                result => return Read::from(result),
            }
        }
        Read::from(rustix::io::read(pipe, buffer))
    }
}

impl Sink {
    /// As [`Sink::swallow`], and again while more comes; not for ever, since there is a timeout to keep.
    fn swallow_some(&self, pipe: &OwnedFd, buffer: &mut [u8]) -> Read {
        const MOST: usize = 32;
        let mut all = 0;
        for _ in 0..MOST {
            match self.swallow(pipe, buffer) {
                Read::Bytes(count) => all += count,
                Read::NothingYet => break,
                Read::Closed => return Read::Closed,
            }
        }
        if all == 0 { Read::NothingYet } else { Read::Bytes(all) }
    }
}

/// What one read of a pipe came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    Bytes(usize),
    NothingYet,
    Closed,
}

impl From<Result<usize, Errno>> for Read {
    fn from(result: Result<usize, Errno>) -> Read {
        match result {
            Ok(0) => Read::Closed,
            Ok(count) => Read::Bytes(count),
            Err(Errno::AGAIN | Errno::INTR) => Read::NothingYet,
            Err(_) => Read::Closed,
        }
    }
}

/// Reads pipes into a transcript.
pub(crate) struct Reader<'a> {
    pub(crate) transcript: Transcript,
    sink: &'a Sink,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(output_limit: usize, sink: &'a Sink) -> Reader<'a> {
        Reader { transcript: Transcript::new(output_limit), sink, buffer: vec![0; READ_SIZE] }
    }

    /// One read of one pipe; a pipe that has ended is closed.
    pub(crate) fn read(&mut self, pipes: &mut Pipes, stream: Stream) -> Read {
        let end = pipes.end(stream);
        let Some(pipe) = end else { return Read::Closed };
        let read = if self.transcript.is_full() {
            self.sink.swallow_some(pipe, &mut self.buffer)
        } else {
            let read = Read::from(rustix::io::read(&*pipe, &mut self.buffer[..]));
            if let Read::Bytes(count) = read {
                self.transcript.push(stream, &self.buffer[..count]);
            }
            read
        };
        if read == Read::Closed {
            *end = None;
        }
        read
    }

    /// Takes what a dead tree left in its pipes. Bounded, for a writer that got hold of a pipe without being
    /// of the tree.
    pub(crate) fn empty(&mut self, pipes: &mut Pipes) {
        const MOST_READS: usize = 64;
        for stream in [Stream::Stdout, Stream::Stderr] {
            for _ in 0..MOST_READS {
                match self.read(pipes, stream) {
                    Read::Bytes(_) => {}
                    Read::NothingYet | Read::Closed => break,
                }
            }
        }
    }
}
