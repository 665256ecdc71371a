//! The thread that waits for a command, and the two that read its pipes.

use std::fs::File;
use std::io::{self, Read};
use std::os::windows::io::{AsRawHandle, OwnedHandle, RawHandle};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::handles::{is_signalled, wait};
use super::order::Report;
use super::{DRAIN_GRACE, STOP_GRACE, kill};
use crate::host::{Entry, Limits, Outcome};
use crate::output::{Stream, Transcript};

const READ_SIZE: usize = 128 << 10;

/// After a timeout: how often to look whether all of the tree has obeyed. A job has no event for it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Pipes whose writers are dead are read to their end well before.
const READ_OUT: Duration = Duration::from_secs(1);

const KILLED: i32 = -9;

/// What both readers fill. None before the command is waited for and after the answer.
type Shared = Arc<Mutex<Buffered>>;

/// What the readers put their bytes into. They start with the command, before its budget is known here, and
/// go on after the answer for the sake of what lives on.
enum Buffered {
    /// Nobody waits yet: the readers leave the bytes in the pipes.
    Held,
    Kept(Transcript),
    Dropped,
}

/// What of a command is held by the thread that waits for it.
pub(crate) struct Attended {
    supervisor: OwnedHandle,
    report: File,
    pipes: Option<(File, File)>,
    readers: Vec<JoinHandle<()>>,
    kept: Shared,
}

impl Attended {
    pub(super) fn new(
        supervisor: OwnedHandle,
        report: File,
        stdout: File,
        stderr: File,
    ) -> io::Result<Attended> {
        Ok(Attended {
            supervisor,
            report,
            pipes: Some((stdout, stderr)),
            readers: Vec::new(),
            kept: Arc::new(Mutex::new(Buffered::Held)),
        })
    }

    /// Waits until there is an outcome.
    pub(super) fn attend(&mut self, entry: &Arc<Entry>, limits: &Limits) -> Outcome {
        self.start_readers(limits.output);
        let mut watch =
            Watch { entry, attended: self, deadline: limits.deadline, exited: None, code: None, asked: None };
        watch.run();
        let timed_out = watch.asked.is_some();
        let exit = watch.code;
        let kept = std::mem::replace(&mut *lock(&self.kept), Buffered::Dropped);
        let (stdout, stderr, output_truncated) = match kept {
            Buffered::Kept(transcript) => transcript.finish(),
            Buffered::Held | Buffered::Dropped => (String::new(), String::new(), false),
        };
        Outcome {
            stdout,
            stderr,
            exit_code: if timed_out { -1 } else { exit.unwrap_or(KILLED) },
            timed_out,
            cancelled: entry.is_cancelled(),
            duration: limits.started.elapsed(),
            output_truncated,
        }
    }

    fn start_readers(&mut self, output_limit: usize) {
        let Some((stdout, stderr)) = self.pipes.take() else { return };
        *lock(&self.kept) = Buffered::Kept(Transcript::new(output_limit));
        for (stream, pipe) in [(Stream::Stdout, stdout), (Stream::Stderr, stderr)] {
            let kept = Arc::clone(&self.kept);
            let builder = thread::Builder::new().name("exec-reader".to_owned());
            // Without a thread to spare the pipe closes, and the command notices.
            self.readers.extend(builder.spawn(move || read(pipe, stream, &kept)).ok());
        }
    }

    /// As the supervisor reported it; None when the supervisor was killed.
    fn exit_code(&self) -> Option<i32> {
        match Report::receive(&self.report) {
            Ok(Some(Report::Exited(code))) => Some(code.cast_signed()),
            Ok(Some(Report::Started(_) | Report::Failed(_) | Report::Unsafe) | None) | Err(_) => None,
        }
    }

    fn all_read(&self) -> bool {
        self.readers.iter().all(JoinHandle::is_finished)
    }
}

fn lock(kept: &Shared) -> std::sync::MutexGuard<'_, Buffered> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(mut pipe: File, stream: Stream, kept: &Shared) {
    let mut buffer = vec![0; READ_SIZE];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                if let Buffered::Kept(transcript) = &mut *lock(kept) {
                    transcript.push(stream, &buffer[..count]);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

struct Watch<'a> {
    entry: &'a Arc<Entry>,
    attended: &'a Attended,
    deadline: Option<Instant>,
    exited: Option<Instant>,
    code: Option<i32>,
    /// When the timeout struck and the tree was asked to stop.
    asked: Option<Instant>,
}

/// What to do next.
enum Step {
    Wait(Option<Duration>),
    /// Everything is to die, then the answer.
    Kill,
    /// The command has ended by itself.
    Answer,
}

impl Watch<'_> {
    fn run(&mut self) {
        loop {
            if self.exited.is_none() && is_signalled(&self.attended.supervisor) {
                self.exited = Some(Instant::now());
                self.code = self.attended.exit_code();
            }
            match self.step(Instant::now()) {
                Step::Answer => return,
                Step::Kill => {
                    kill(std::slice::from_ref(self.entry));
                    self.read_out();
                    return;
                }
                Step::Wait(time) => self.wait(time),
            }
        }
    }

    fn step(&mut self, now: Instant) -> Step {
        if self.entry.is_cancelled() {
            return Step::Kill;
        }
        if let Some(asked) = self.asked {
            // The whole tree has to go, not the command alone.
            let rest = STOP_GRACE.saturating_sub(now - asked);
            let over = rest.is_zero() || self.entry.tree.job.is_empty();
            return if over { Step::Kill } else { Step::Wait(Some(rest.min(LOOK_EVERY))) };
        }
        if let Some(exited) = self.exited {
            if self.code.is_none() {
                // The command has killed its own supervisor.
                return Step::Kill;
            }
            let rest = DRAIN_GRACE.saturating_sub(now - exited);
            let over = rest.is_zero() || self.attended.all_read();
            return if over { Step::Answer } else { Step::Wait(Some(rest)) };
        }
        let rest = self.deadline.map(|deadline| deadline.saturating_duration_since(now));
        if rest.is_some_and(|rest| rest.is_zero()) {
            self.asked = Some(now);
            self.entry.tree.stop.set();
            return Step::Wait(Some(LOOK_EVERY));
        }
        Step::Wait(rest)
    }

    fn wait(&self, time: Option<Duration>) {
        let mut handles: Vec<RawHandle> = vec![self.entry.tree.interrupt.as_raw_handle()];
        match self.exited {
            None => handles.push(self.attended.supervisor.as_raw_handle()),
            Some(_) => handles.extend(self.unfinished()),
        }
        wait(&handles, time);
    }

    fn unfinished(&self) -> impl Iterator<Item = RawHandle> {
        self.attended.readers.iter().filter(|reader| !reader.is_finished()).map(AsRawHandle::as_raw_handle)
    }

    /// Takes what a dead tree left in its pipes.
    fn read_out(&self) {
        let deadline = Instant::now() + READ_OUT;
        while !self.attended.all_read() {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            let handles: Vec<RawHandle> = self.unfinished().collect();
            if !handles.is_empty() {
                wait(&handles, Some(rest));
            }
        }
    }
}
