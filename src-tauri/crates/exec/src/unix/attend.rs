//! The loop of the one thread that waits for a command: output, exit, timeout and cancel in a single `poll`.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::notice::Notice;
use super::pipes::{Attended, Reader, Sink};
use super::{DRAIN_GRACE, STOP_GRACE};
use crate::host::{Entry, Limits, Outcome};
use crate::output::Stream;

/// What the loop does to the tree; each OS has its own.
pub(crate) trait Hands {
    /// SIGTERM to every process of the tree.
    fn ask_to_stop(&self);
    /// Kills the tree and returns when it is dead.
    fn kill(&self);
    /// Wakes whatever reports the command's end, which the command may have stopped.
    fn nudge(&self);
}

/// A command whose pipes are closed usually ends at once. If no end is reported, the reporter may be stopped.
const NUDGE_EVERY: Duration = Duration::from_millis(250);

const KILLED: i32 = -9;

/// Attends the command until there is an outcome.
pub(crate) fn attend(
    entry: &Entry,
    attended: &mut Attended,
    limits: &Limits,
    sink: &Sink,
    hands: &dyn Hands,
) -> Outcome {
    let reader = Reader::new(limits.output, sink);
    let mut watch = Watch {
        entry,
        attended,
        deadline: limits.deadline,
        hands,
        reader,
        exit: None,
        exited: None,
        asked: None,
        lost: false,
    };
    watch.run();
    let timed_out = watch.asked.is_some();
    let exit_code = if timed_out { -1 } else { watch.exit.unwrap_or(KILLED) };
    let (stdout, stderr, output_truncated) = watch.reader.transcript.finish();
    Outcome {
        stdout,
        stderr,
        exit_code,
        timed_out,
        cancelled: entry.is_cancelled(),
        duration: limits.started.elapsed(),
        output_truncated,
    }
}

struct Watch<'a> {
    entry: &'a Entry,
    attended: &'a mut Attended,
    deadline: Option<Instant>,
    hands: &'a dyn Hands,
    reader: Reader<'a>,
    exit: Option<i32>,
    exited: Option<Instant>,
    /// When the timeout struck and the tree was asked to stop.
    asked: Option<Instant>,
    /// The control socket has closed.
    lost: bool,
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
            match self.step(Instant::now()) {
                Step::Answer => return,
                Step::Kill => {
                    self.hands.kill();
                    self.hear();
                    self.reader.empty(&mut self.attended.pipes);
                    return;
                }
                Step::Wait(time) => self.poll(time),
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
            let over = rest.is_zero() || self.lost;
            return if over { Step::Kill } else { Step::Wait(Some(rest)) };
        }
        if let Some(exited) = self.exited {
            let rest = DRAIN_GRACE.saturating_sub(now - exited);
            let over = rest.is_zero() || self.attended.pipes.are_closed();
            return if over { Step::Answer } else { Step::Wait(Some(rest)) };
        }
        if self.lost {
            // Nobody will report its end: the command has killed its own supervisor.
            return Step::Kill;
        }
        let rest = self.deadline.map(|deadline| deadline.saturating_duration_since(now));
        if rest.is_some_and(|rest| rest.is_zero()) {
            self.asked = Some(now);
            self.hands.ask_to_stop();
            return Step::Wait(Some(STOP_GRACE));
        }
        if self.attended.pipes.are_closed() {
            return Step::Wait(Some(rest.map_or(NUDGE_EVERY, |rest| rest.min(NUDGE_EVERY))));
        }
        Step::Wait(rest)
    }

    fn poll(&mut self, time: Option<Duration>) {
        let ready = {
            let pipes = &self.attended.pipes;
            let mut fds = Vec::with_capacity(4);
            fds.push(PollFd::new(&self.entry.tree, PollFlags::IN));
            if !self.lost {
                fds.push(PollFd::new(&self.attended.control, PollFlags::IN));
            }
            let first_pipe = fds.len();
            fds.extend(
                [&pipes.stdout, &pipes.stderr].into_iter().flatten().map(|p| PollFd::new(p, PollFlags::IN)),
            );
            match poll(&mut fds, timespec(time).as_ref()) {
                Ok(0) => Ready::default(),
                Ok(_) => Ready {
                    any: true,
                    control: !self.lost && !fds[1].revents().is_empty(),
                    stdout: pipes.stdout.is_some() && !fds[first_pipe].revents().is_empty(),
                    stderr: pipes.stderr.is_some() && fds.last().is_some_and(|fd| !fd.revents().is_empty()),
                },
                Err(Errno::INTR) => return,
                // Only a bug in the arguments or no memory for the call itself: end the command rather than
                // spin.
                Err(_) => {
                    self.lost = true;
                    return;
                }
            }
        };
        if !ready.any && self.exited.is_none() && self.attended.pipes.are_closed() {
            self.hands.nudge();
        }
        if ready.stdout {
            self.reader.read(&mut self.attended.pipes, Stream::Stdout);
        }
        if ready.stderr {
            self.reader.read(&mut self.attended.pipes, Stream::Stderr);
        }
        if ready.control {
            self.hear();
        }
    }

    /// Takes all notices that have come.
    fn hear(&mut self) {
        while !self.lost {
            match Notice::receive(&self.attended.control) {
                Ok(Some(Notice::Exited(code))) => {
                    self.exit = Some(code);
                    self.exited = Some(Instant::now());
                }
                Ok(Some(Notice::Done)) => self.attended.done = true,
                Ok(Some(Notice::Started(_) | Notice::Failed(..))) => {}
                Ok(None) => self.lost = true,
                Err(_) => return,
            }
        }
    }
}

#[derive(Default)]
struct Ready {
    any: bool,
    control: bool,
    stdout: bool,
    stderr: bool,
}

pub(super) fn timespec(time: Option<Duration>) -> Option<Timespec> {
    // More than the clock can say is as good as for ever.
    time.and_then(|time| Timespec::try_from(time).ok())
}

/// A tree is polled for its wake flag.
impl std::os::fd::AsFd for crate::sys::Tree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
