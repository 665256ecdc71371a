//! Reading `/proc`, and signalling a process without hitting a stranger that got its number.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// What `/proc/<pid>/stat` says, proc_pid_stat(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// In clock ticks since boot: with the number it names a process for good.
    pub(super) started: u64,
    pub(super) threads: u32,
    state: u8,
    flags: u32,
}

impl Stat {
    /// Errors when there is no such process.
    pub(super) fn of(pid: i32) -> io::Result<Stat> {
        let mut buffer = [0; 1024];
        let length = fs::File::open(format!("/proc/{pid}/stat"))?.read(&mut buffer)?;
        Stat::parse(pid, &buffer[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The second field, the name, may hold anything, parentheses and spaces too; the others do not.
    fn parse(pid: i32, text: &[u8]) -> Option<Stat> {
        let after_name = text.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(&text[after_name..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Stat {
            pid,
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            flags: fields.get(6)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// It runs no code any more. A process whose first thread has ended shows as a zombie while its other
    /// threads go on.
    pub(super) fn is_dead(&self) -> bool {
        self.state == b'X' || (self.state == b'Z' && self.threads <= 1)
    }

    /// Its end has begun: it adopts no more children, though it may still have some.
    pub(super) fn is_ending(&self) -> bool {
        /// linux/sched.h
        const PF_EXITING: u32 = 4;
        self.is_dead() || self.flags & PF_EXITING != 0
    }
}

/// The present, in the unit of [`Stat::started`].
pub(super) fn now() -> u64 {
    /// Of `/proc`, on all of today's architectures (USER_HZ), whatever the kernel's own tick is.
    const TICKS_PER_SECOND: u64 = 100;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec.unsigned_abs() * TICKS_PER_SECOND
        + now.tv_nsec.unsigned_abs() * TICKS_PER_SECOND / 1_000_000_000
}

/// A process's short name, for a person.
pub(super) fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// Who is whose child, now.
pub(super) enum Family {
    /// The kernel lists the children of a thread (CONFIG_PROC_CHILDREN, in all big distributions): the cost
    /// is that of the tree.
    Listed,
    /// It does not: one look at every process there is.
    Scanned(HashMap<i32, Vec<i32>>),
}

impl Family {
    pub(super) fn now() -> Family {
        static LISTED: OnceLock<bool> = OnceLock::new();
        if *LISTED.get_or_init(|| fs::exists("/proc/thread-self/children").unwrap_or(false)) {
            return Family::Listed;
        }
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for stat in numbers("/proc").unwrap_or_default().into_iter().filter_map(|pid| Stat::of(pid).ok()) {
            children.entry(stat.parent).or_default().push(stat.pid);
        }
        Family::Scanned(children)
    }

    /// The children of all threads of `pid`; none when there is no such process. `threads` as [`Stat`] has it, 0 when
    /// unknown.
    ///
    /// # Errors
    /// `/proc` cannot be read, for want of handles say: whether there are any is not known.
    pub(super) fn children(&self, pid: i32, threads: u32) -> io::Result<Vec<i32>> {
        let read = match self {
            Family::Scanned(children) => return Ok(children.get(&pid).cloned().unwrap_or_default()),
            // Most have one thread, of the same number.
            Family::Listed if threads == 1 => children_of_thread(pid, pid),
            Family::Listed => numbers(&format!("/proc/{pid}/task")).and_then(|threads| {
                let lists: io::Result<Vec<_>> =
                    threads.into_iter().map(|thread| children_of_thread(pid, thread)).collect();
                Ok(lists?.concat())
            }),
        };
        read.or_else(none_when_gone)
    }
}

fn children_of_thread(pid: i32, thread: i32) -> io::Result<Vec<i32>> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).or_else(none_when_gone)?;
    Ok(list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// A process may end at any moment of a look at it.
fn none_when_gone<T: Default>(error: io::Error) -> io::Result<T> {
    let is_gone =
        error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error());
    if is_gone { Ok(T::default()) } else { Err(error) }
}

pub(super) fn numbers(folder: &str) -> io::Result<Vec<i32>> {
    Ok(fs::read_dir(folder)?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// What came of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Struck {
    /// It lives, and has the signal.
    Alive(Stat),
    /// It has ended, and waits to be reaped.
    Dead,
    /// There is no such process any more.
    Gone,
    /// It is another one than was meant.
    Stranger,
    /// It runs as somebody else.
    Denied,
}

/// Sends `signals` to the process `pid` when it is the one that `is_it` knows. The handle is opened before
/// the look, so that what was looked at is what is struck.
pub(super) fn strike(pid: i32, signals: &[Signal], is_it: impl Fn(&Stat) -> bool) -> Struck {
    let Some(number) = Pid::from_raw(pid) else { return Struck::Gone };
    let handle = match pidfd_open(number, PidfdFlags::empty()) {
        Ok(handle) => Some(handle),
        Err(Errno::SRCH) => return Struck::Gone,
        // Before Linux 5.3, or no handle to spare: the number alone, with the look just before.
        Err(_) => None,
    };
    let stat = match Stat::of(pid) {
        Ok(stat) if !is_it(&stat) => return Struck::Stranger,
        Ok(stat) if stat.is_dead() => return Struck::Dead,
        Ok(found) => found,
        Err(_) => return Struck::Gone,
    };
    for signal in signals {
        let sent = match &handle {
            Some(handle) => pidfd_send_signal(handle, *signal),
            None => kill_process(number, *signal),
        };
        match sent {
            Ok(()) => {}
            Err(Errno::PERM) => return Struck::Denied,
            Err(_) => return Struck::Gone,
        }
    }
    Struck::Alive(stat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_shift_the_fields() {
        let text = b"77 (a) R 1 1 1 (b) S 12 77 70 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 3 0 987654 1 2\n";
        let stat = Stat::parse(77, text).unwrap();
        assert_eq!(
            stat,
            Stat {
                pid: 77,
                parent: 12,
                session: 70,
                started: 987_654,
                state: b'S',
                flags: 4_194_304,
                threads: 3
            }
        );
        assert_eq!(Stat::parse(77, b"77 (cut"), None);
        assert_eq!(Stat::parse(77, b"77 (cut) S 1"), None);
    }

    #[test]
    fn a_zombie_with_threads_is_alive() {
        let stat = Stat { pid: 1, parent: 1, session: 1, started: 1, state: b'Z', flags: 0, threads: 2 };
        assert!(!stat.is_dead());
        assert!(!stat.is_ending());
        assert!(Stat { flags: 4, ..stat }.is_ending());
        assert!(Stat { threads: 1, ..stat }.is_dead());
    }

    #[test]
    fn this_process_is_found_and_has_a_parent() {
        let me = std::process::id() as i32;
        let stat = Stat::of(me).unwrap();
        assert!(!stat.is_dead());
        assert!(Family::now().children(stat.parent, 0).unwrap().contains(&me));
        assert_eq!(Family::now().children(i32::MAX, 1).unwrap(), []);
    }

    #[test]
    fn a_process_starts_now() {
        let before = now();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let started = Stat::of(child.id() as i32).unwrap().started;
        child.kill().unwrap();
        child.wait().unwrap();
        assert!((before..=now()).contains(&started), "{before} {started} {}", now());
    }

    #[test]
    fn a_stranger_is_not_struck() {
        let me = std::process::id() as i32;
        assert_eq!(strike(me, &[Signal::KILL], |stat| stat.started == 1), Struck::Stranger);
    }
}
