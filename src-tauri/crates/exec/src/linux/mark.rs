//! Marks on processes: see [`crate::lineage`].

use std::fs;
use std::io;
use std::ptr;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, getuid, prlimit, test_kill_process};

use crate::lineage::Mark;

/// So high that it limits nothing, and no administrator has thought of it.
const BASE: u64 = 1 << 62;

const SPAN: u64 = u32::MAX as u64;

/// Of the two limits, one goes up with the mark's number and the other goes down. Lowering either changes the sum, so
/// that no mark becomes another one.
fn limits(mark: Mark) -> [u64; 2] {
    let number = u64::from(mark.0);
    [BASE + number, BASE + SPAN - number]
}

/// What a process comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lineage {
    /// No command.
    Free,
    /// A command with this mark.
    Marked(Mark),
    /// A command of whichever mark that has lowered its limits.
    Spoilt,
}

impl Lineage {
    /// By the hard limits of file locks and of resident memory; none: unlimited.
    fn from_limits(locks: Option<u64>, resident: Option<u64>) -> Lineage {
        let (Some(locks), Some(resident)) = (locks, resident) else { return Lineage::Free };
        if locks > BASE + SPAN || resident > BASE + SPAN {
            return Lineage::Free;
        }
        match u32::try_from(locks.wrapping_sub(BASE)).map(Mark) {
            Ok(mark) if limits(mark) == [locks, resident] => Lineage::Marked(mark),
            Ok(_) | Err(_) => Lineage::Spoilt,
        }
    }

    /// Of this process.
    pub(super) fn ours() -> Lineage {
        Lineage::from_limits(getrlimit(Resource::Locks).maximum, getrlimit(Resource::Rss).maximum)
    }

    /// Of any process. Errors when there is none, or the OS hides it.
    pub(super) fn of(pid: i32) -> io::Result<Lineage> {
        match (hard(pid, libc::RLIMIT_LOCKS), hard(pid, libc::RLIMIT_RSS)) {
            (Ok(locks), Ok(resident)) => Ok(Lineage::from_limits(locks, resident)),
            // It has another group or user than we, by a program that is set so, and can be read of all the same.
            (Err(Errno::PERM), _) | (_, Err(Errno::PERM)) => Lineage::read(pid),
            (Err(errno), _) | (_, Err(errno)) => Err(errno.into()),
        }
    }

    /// As [`Lineage::of`], and `Free` at once for processes that we may not signal, which are most.
    pub(super) fn of_ours(pid: i32) -> Lineage {
        let may_signal = || Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok());
        match (hard(pid, libc::RLIMIT_LOCKS), hard(pid, libc::RLIMIT_RSS)) {
            (Ok(locks), Ok(resident)) => Lineage::from_limits(locks, resident),
            (Err(Errno::PERM), _) if may_signal() => Lineage::read(pid).unwrap_or(Lineage::Free),
            (Err(_), _) | (_, Err(_)) => Lineage::Free,
        }
    }

    fn read(pid: i32) -> io::Result<Lineage> {
        let text = fs::read_to_string(format!("/proc/{pid}/limits"))?;
        let (locks, resident) = parse(&text).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Lineage::from_limits(locks, resident))
    }

    /// Whether `mark`'s installation may end such a process, `pid`: those of its own, and spoilt ones of the same user.
    pub(super) fn is_for(self, mark: Mark, pid: i32) -> bool {
        match self {
            Lineage::Free => false,
            Lineage::Marked(other) => other == mark,
            Lineage::Spoilt => user(pid) == Some(getuid().as_raw()),
        }
    }
}

/// The hard limits of file locks and resident memory, of what `/proc/<pid>/limits` says (proc_pid_limits(5)).
fn parse(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let hard = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        match rest.split_ascii_whitespace().nth(1)? {
            "unlimited" => Some(None),
            number => Some(Some(number.parse().ok()?)),
        }
    };
    Some((hard("Max file locks")?, hard("Max resident set")?))
}

/// None: unlimited.
fn hard(pid: i32, resource: libc::__rlimit_resource_t) -> Result<Option<u64>, Errno> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: nothing is set; what there is is written to a structure of ours.
    match unsafe { libc::prlimit64(pid, resource, ptr::null(), &raw mut limit) } {
        0 => Ok(Some(limit.rlim_max).filter(|limit| *limit != libc::RLIM64_INFINITY)),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// The real user that a process runs as.
fn user(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_ascii_whitespace().next()?.parse().ok()
}

/// Whether a process of ours can be marked: not when its limits, and so ours, are as low already.
pub(super) fn can_mark() -> bool {
    let room = |limit: Option<u64>| limit.is_none_or(|limit| limit > BASE + SPAN);
    room(getrlimit(Resource::Locks).maximum) && room(getrlimit(Resource::Rss).maximum)
}

/// Marks a child of ours, for good.
pub(super) fn put(pid: i32, mark: Mark) -> io::Result<()> {
    let [locks, resident] = limits(mark);
    for (resource, limit) in [(Resource::Locks, locks), (Resource::Rss, resident)] {
        prlimit(Pid::from_raw(pid), resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowering_a_limit_never_makes_another_mark() {
        for number in [0, 1, 77, u32::MAX - 1, u32::MAX] {
            let [locks, resident] = limits(Mark(number));
            let lineage = |locks, resident| Lineage::from_limits(Some(locks), Some(resident));
            assert_eq!(lineage(locks, resident), Lineage::Marked(Mark(number)));
            for (less_locks, less_resident) in [(1, 0), (0, 1), (1, 1), (BASE, 0), (BASE, BASE), (0, BASE)] {
                let lowered = lineage(locks - less_locks, resident - less_resident);
                assert_eq!(lowered, Lineage::Spoilt, "{number} {less_locks} {less_resident}");
            }
            assert_eq!(lineage(0, 0), Lineage::Spoilt);
        }
    }

    #[test]
    fn a_process_with_limits_of_an_administrator_is_free() {
        assert_eq!(Lineage::from_limits(None, None), Lineage::Free);
        assert_eq!(Lineage::from_limits(Some(1000), None), Lineage::Free);
        assert_eq!(Lineage::from_limits(None, Some(1 << 34)), Lineage::Free);
        assert_eq!(Lineage::from_limits(Some(u64::MAX - 1), Some(u64::MAX - 1)), Lineage::Free);
    }

    #[test]
    fn both_ways_of_looking_agree() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id() as i32;
        if can_mark() {
            assert_eq!(Lineage::of(pid).unwrap(), Lineage::Free);
            put(pid, Mark(0xDEAD_BEEF)).unwrap();
        }
        let seen = Lineage::of(pid).unwrap();
        assert_eq!(seen, Lineage::read(pid).unwrap());
        assert_eq!(seen, Lineage::of_ours(pid));
        assert_eq!(seen == Lineage::Marked(Mark(0xDEAD_BEEF)), can_mark());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(Lineage::of(pid).is_err());
        // The first process is not ours to signal, or has no mark.
        assert_eq!(Lineage::of_ours(1), Lineage::ours());
    }

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max resident set          5                    unlimited            bytes     \n\
                    Max file locks            7                    4611686018427387911  locks     \n";
        assert_eq!(parse(text), Some((Some(BASE + 7), None)));
        assert_eq!(parse("Max file locks 7 8 locks"), None);
    }
}
