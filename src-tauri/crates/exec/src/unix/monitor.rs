//! The thread that looks after what commands leave behind: it keeps the pipes of background processes
//! flowing, so that a server left running does not stop at its next line of output, and notices when a tree
//! has gone.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::attend::timespec;
use super::notice::Notice;
use super::pipes::{Attended, Read, Sink};
use super::wake::Wake;
use crate::host::Entry;

pub(crate) struct Monitor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    inbox: Mutex<Vec<Left>>,
    wake: Wake,
    quit: AtomicBool,
}

/// A tree nobody waits for.
struct Left {
    entry: Arc<Entry>,
    attended: Attended,
}

/// What the monitor does for its OS.
pub(crate) trait Duties: Send + 'static {
    /// The tree's control socket has closed; `done` when it had said that the tree is empty.
    fn ended(&mut self, entry: &Entry, done: bool);
    /// Called whenever the thread wakes; answers when to wake it at the latest.
    fn tick(&mut self) -> Option<Duration>;
}

impl Monitor {
    pub(crate) fn start(mut duties: impl Duties) -> io::Result<Monitor> {
        let shared =
            Arc::new(Shared { inbox: Mutex::default(), wake: Wake::new()?, quit: AtomicBool::new(false) });
        let sink = Sink::new()?;
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("exec-monitor".to_owned())
            .spawn(move || theirs.run(&sink, &mut duties))?;
        Ok(Monitor { shared, thread: Some(thread) })
    }

    /// Hands over a tree nobody waits for any more.
    pub(crate) fn take(&self, entry: &Arc<Entry>, attended: Attended) {
        let left = Left { entry: Arc::clone(entry), attended };
        self.shared.inbox.lock().unwrap_or_else(PoisonError::into_inner).push(left);
        self.wake();
    }

    pub(crate) fn wake(&self) {
        self.shared.wake.raise();
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, sink: &Sink, duties: &mut impl Duties) {
        let mut all: Vec<Left> = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        while !self.quit.load(Ordering::SeqCst) {
            let time = duties.tick();
            self.wait(&all, time);
            self.wake.lower();
            all.append(&mut self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
            all.retain_mut(|left| {
                drain(&mut left.attended, sink, &mut buffer);
                let ended = has_ended(&mut left.attended);
                if ended {
                    duties.ended(&left.entry, left.attended.done);
                }
                !ended
            });
        }
    }

    fn wait(&self, all: &[Left], time: Option<Duration>) {
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        for Left { attended, .. } in all {
            fds.push(PollFd::new(&attended.control, PollFlags::IN));
            let pipes = [&attended.pipes.stdout, &attended.pipes.stderr];
            fds.extend(pipes.into_iter().flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        }
        // An interrupted or failed wait is a look too many, no more.
        let _ = poll(&mut fds, timespec(time).as_ref());
    }
}

fn drain(attended: &mut Attended, sink: &Sink, buffer: &mut [u8]) {
    let drop_when_closed = |pipe: &mut Option<OwnedFd>, buffer: &mut [u8]| {
        if pipe.as_ref().is_some_and(|pipe| sink.swallow(pipe, buffer) == Read::Closed) {
            *pipe = None;
        }
    };
    drop_when_closed(&mut attended.pipes.stdout, buffer);
    drop_when_closed(&mut attended.pipes.stderr, buffer);
}

fn has_ended(attended: &mut Attended) -> bool {
    loop {
        match Notice::receive(&attended.control) {
            Ok(Some(notice)) => attended.done |= notice == Notice::Done,
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
