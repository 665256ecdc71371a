//! Killing trees for good: stop everything first, so that nothing forks away, then kill, then look again
//! until nothing is left.
//!
//! It depends on nobody's help: not on the supervisor (which the command may have stopped or killed) nor on
//! process groups or sessions (which it may have left). It runs in this process, and in a supervisor that has
//! lost us.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, waitid};

use super::proc::{Family, Stat, Struck, strike};
use super::process::known_supervisors;

/// The process whose descendants are hunted; not itself struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) pid: i32,
    pub(super) started: u64,
}

impl Root {
    pub(super) fn of(pid: i32) -> std::io::Result<Root> {
        Stat::of(pid).map(|stat| Root { pid, started: stat.started })
    }

    fn is(&self, stat: &Stat) -> bool {
        stat.pid == self.pid && stat.started == self.started
    }
}

/// Nothing that can be killed survives this long but a process in an uninterruptible system call, which ends
/// with it.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Each pass stops most of what runs, so even a fork bomb is still after a few. Then the killing starts in
/// any case.
const STOP_FOR: Duration = Duration::from_millis(500);

/// The end of the hunt, even if every pass has found something new.
pub(super) const MOST: Duration = Duration::from_secs(60);

/// Two looks in a row that find nothing: a single one can miss a process whose parent ends during the look.
pub(super) const QUIET_PASSES: usize = 2;

pub(super) struct Hunt<'a> {
    roots: &'a [Root],
    orphans_since: Option<u64>,
    seen: HashSet<i32>,
    dead: HashSet<i32>,
}

/// A process whose children are to be looked at, and how many threads it has.
type Parent = (i32, u32);

const UNKNOWN: u32 = 0;

/// What one walk over the trees found.
#[derive(Default)]
struct Pass {
    alive: Vec<i32>,
    /// One that no pass before had found.
    fresh: bool,
    /// Something changed under the walk: it may have missed a process.
    unsettled: bool,
}

impl<'a> Hunt<'a> {
    pub(super) fn below(roots: &'a [Root]) -> Hunt<'a> {
        Hunt { roots, orphans_since: None, seen: HashSet::new(), dead: HashSet::new() }
    }

    /// Descendants whose supervisor has died come to us, as the next subreaper: direct children of this
    /// process, but in another session (a process cannot get back into ours), and no supervisor. They are
    /// younger than the order that their supervisor got at `since`. What this program itself has launched
    /// after that, into a session of its own, looks the same: so this is for supervisors that their commands
    /// have killed, and for nothing else.
    pub(super) fn orphans(since: u64) -> Hunt<'static> {
        Hunt { orphans_since: Some(since), ..Hunt::below(&[]) }
    }

    /// Kills them all; false when some would not die in time.
    pub(super) fn kill(&mut self) -> bool {
        let begun = Instant::now();
        let mut last_fresh = begun;
        let mut signals = [Signal::STOP];
        let mut quiet = 0;
        while quiet < QUIET_PASSES {
            let found = self.pass(&signals);
            if found.alive.is_empty() && !found.unsettled {
                quiet += 1;
                continue;
            }
            quiet = 0;
            if found.fresh {
                last_fresh = Instant::now();
            }
            if signals == [Signal::STOP] {
                if !found.fresh || begun.elapsed() > STOP_FOR {
                    signals = [Signal::KILL];
                    last_fresh = Instant::now();
                }
                continue;
            }
            if last_fresh.elapsed() > PATIENCE || begun.elapsed() > MOST {
                return false;
            }
            if !found.fresh {
                // The kernel takes a moment to end a process, and there is no event for the end of somebody
                // else's child.
                thread::sleep(Duration::from_micros(200));
            }
        }
        true
    }

    /// Takes the dead out of the process table, where the death of their supervisor has made them our
    /// children.
    pub(super) fn bury(&self) {
        for pid in self.seen.union(&self.dead) {
            reap(*pid);
        }
    }

    /// Asks all of them to end. Stopped ones are continued, or they would not notice.
    pub(super) fn terminate(&mut self) {
        self.pass(&[Signal::TERM, Signal::CONT]);
    }

    /// The live ones, untouched.
    pub(super) fn members(&mut self) -> Vec<i32> {
        self.pass(&[]).alive
    }

    fn pass(&mut self, signals: &[Signal]) -> Pass {
        let family = Family::now();
        let mut found = Pass::default();
        let mut parents = HashSet::new();
        let mut next = Vec::new();
        for root in self.roots {
            if let Ok(stat) = Stat::of(root.pid)
                && root.is(&stat)
            {
                next.push((root.pid, stat.threads));
            }
        }
        self.pass_orphans(&family, signals, &mut found, &mut next);
        parents.extend(next.iter().map(|(pid, _)| *pid));
        while let Some((parent, threads)) = next.pop() {
            let Ok(children) = family.children(parent, threads) else {
                found.unsettled = true;
                continue;
            };
            for child in children {
                if parents.contains(&child) {
                    continue;
                }
                // Its parent may have ended meanwhile, and then it has another one of the tree.
                match strike(child, signals, |stat| parents.contains(&stat.parent)) {
                    Struck::Alive(stat) => self.note(&stat, &mut found, &mut next),
                    Struck::Denied => next.push((child, UNKNOWN)),
                    Struck::Dead => {
                        self.dead.insert(child);
                        continue;
                    }
                    Struck::Gone | Struck::Stranger => {
                        found.unsettled = true;
                        continue;
                    }
                }
                parents.insert(child);
            }
        }
        found
    }

    fn note(&mut self, stat: &Stat, found: &mut Pass, next: &mut Vec<Parent>) {
        found.fresh |= self.seen.insert(stat.pid);
        found.alive.push(stat.pid);
        next.push((stat.pid, stat.threads));
    }

    fn pass_orphans(
        &mut self,
        family: &Family,
        signals: &[Signal],
        found: &mut Pass,
        next: &mut Vec<Parent>,
    ) {
        let Some(since) = self.orphans_since else { return };
        let us = getpid().as_raw_nonzero().get();
        // Not `getsid`: where our session leads from outside our PID namespace it is 0, which rustix does not take.
        let Ok(Stat { session, .. }) = Stat::of(us) else {
            found.unsettled = true;
            return;
        };
        let Ok(children) = family.children(us, UNKNOWN) else {
            found.unsettled = true;
            return;
        };
        // Asked for after the look: a supervisor leaves our session only once it is known.
        let supervisors = known_supervisors();
        for child in children.into_iter().filter(|child| !supervisors.contains(child)) {
            let is_orphan =
                |stat: &Stat| stat.parent == us && stat.session != session && stat.started >= since;
            match strike(child, signals, is_orphan) {
                Struck::Alive(stat) => self.note(&stat, found, next),
                Struck::Denied => next.push((child, UNKNOWN)),
                Struck::Dead => reap(child),
                Struck::Gone => found.unsettled = true,
                Struck::Stranger => {}
            }
        }
    }
}

/// Takes a dead child of ours out of the process table.
fn reap(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}
