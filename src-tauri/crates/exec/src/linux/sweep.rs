//! Killing all that has a mark: wherever it is, whoever holds it, and however many there are.
//!
//! A flood of processes takes the processor too, from us as well: all that takes long takes a thousand times as long
//! then. So this asks the kernel three small questions about a process where a walk of the trees reads files of
//! `/proc`; most of a flood is struck within the first moment that we run at all.

use std::collections::{BTreeSet, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use super::hunt::{MOST, PATIENCE, QUIET_PASSES};
use super::mark::Lineage;
use super::proc::{Struck, numbers, strike};
use crate::lineage::Mark;

pub(super) struct Sweep {
    mark: Mark,
    spared: BTreeSet<i32>,
    seen: HashSet<i32>,
}

/// What a look at all processes found.
#[derive(Default)]
struct Pass {
    alive: usize,
    /// One that no pass before had found.
    fresh: bool,
}

impl Sweep {
    /// Of all that have `mark` or a spoilt one, but for our own process and those `spared`.
    pub(super) fn of(mark: Mark, mut spared: BTreeSet<i32>) -> Sweep {
        spared.insert(getpid().as_raw_nonzero().get());
        Sweep { mark, spared, seen: HashSet::new() }
    }

    /// Kills them, and looks again until nothing is left. A process with a signal to come cannot fork any more, so that
    /// each look finds only what was started before it: nothing is won by stopping them first.
    pub(super) fn kill(&mut self) {
        let begun = Instant::now();
        let mut last_fresh = begun;
        let mut quiet = 0;
        while quiet < QUIET_PASSES && last_fresh.elapsed() < PATIENCE && begun.elapsed() < MOST {
            let found = self.pass();
            if found.fresh {
                last_fresh = Instant::now();
            }
            if found.alive == 0 {
                quiet += 1;
                continue;
            }
            quiet = 0;
            // There is no event for the end of somebody else's child.
            thread::sleep(Duration::from_micros(500));
        }
    }

    /// How many it has found alive.
    pub(super) fn found(&self) -> usize {
        self.seen.len()
    }

    fn pass(&mut self) -> Pass {
        let mut found = Pass::default();
        for pid in numbers("/proc").unwrap_or_default() {
            if !self.spared.contains(&pid) && self.is_meant(pid) && self.end(pid) {
                found.alive += 1;
                found.fresh |= self.seen.insert(pid);
            }
        }
        found
    }

    fn is_meant(&self, pid: i32) -> bool {
        Lineage::of_ours(pid).is_for(self.mark, pid)
    }

    /// Kills one, and answers whether it was alive. What is looked at is what is struck: a number changes hands only
    /// after the process has ended that the handle is of.
    fn end(&self, pid: i32) -> bool {
        let Some(number) = Pid::from_raw(pid) else { return false };
        let Ok(handle) = pidfd_open(number, PidfdFlags::empty()) else {
            // Before Linux 5.3, no handle to spare, or gone.
            let struck = strike(pid, &[Signal::KILL], |stat| self.is_meant(stat.pid));
            return matches!(struck, Struck::Alive(_));
        };
        if !self.is_meant(pid) {
            return false;
        }
        // It is readable from the end of the last thread on.
        let mut ended = [PollFd::new(&handle, PollFlags::IN)];
        if poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(1) {
            return false;
        }
        pidfd_send_signal(&handle, Signal::KILL).is_ok()
    }
}
