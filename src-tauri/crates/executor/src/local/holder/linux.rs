//! By the kernel's list of locks.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

/// Nothing more than the lock itself is needed.
#[derive(Debug)]
pub(in super::super) struct Claim;

impl Claim {
    pub(in super::super) fn take(_state_dir: &Path) -> io::Result<Self> {
        Ok(Self)
    }
}

/// The process that holds `lock`, which another one has. `said` is what a file says: it counts only where the kernel
/// does not tell, as on some stacked file systems, and only for a process of this same program.
pub(in super::super) fn of(lock: &File, _state_dir: &Path, said: Option<u32>) -> Option<u32> {
    let file = lock.metadata().ok()?;
    match holder(&fs::read_to_string("/proc/locks").unwrap_or_default(), &file) {
        Some(pid) if has_open(pid, &file) => Some(pid),
        // Taken by a process that has ended, and left to another one. The number may be anybody's.
        Some(_) => None,
        None => said.filter(|&pid| is_this_program(pid)),
    }
}

/// From `/proc/locks`: `1: FLOCK  ADVISORY  WRITE 24271 fe:00:6496287 0 EOF`. Who only waits has an arrow behind the
/// number. Some file systems (btrfs) show another device there than to `stat`; then the inode has to do.
fn holder(locks: &str, file: &Metadata) -> Option<u32> {
    let device = format!("{:02x}:{:02x}:", major(file.dev()), minor(file.dev()));
    let inode = format!(":{}", file.ino());
    let held = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let ["FLOCK", _, "WRITE", pid, place] = fields.get(1..6)? else { return None };
        let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
        place.ends_with(&inode).then_some((pid, place.starts_with(&device)))
    };
    let found: Vec<(u32, bool)> = locks.lines().filter_map(held).collect();
    match found.iter().find(|(_, same_device)| *same_device).or(found.first()) {
        Some((pid, true)) => Some(*pid),
        Some((pid, false)) => (found.len() == 1).then_some(*pid),
        None => None,
    }
}

/// Whether the process has the file open; true where it keeps that to itself, as Deskhand does.
fn has_open(pid: u32, file: &Metadata) -> bool {
    let Ok(handles) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return fs::exists(format!("/proc/{pid}")).unwrap_or(false);
    };
    let is_it = |open: Metadata| (open.dev(), open.ino()) == (file.dev(), file.ino());
    handles.flatten().any(|handle| fs::metadata(handle.path()).is_ok_and(is_it))
}

fn is_this_program(pid: u32) -> bool {
    let program = |pid: &str| fs::read_link(format!("/proc/{pid}/exe"));
    let name = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm"));
    let pid = pid.to_string();
    match (program(&pid), program("self")) {
        (Ok(its), Ok(ours)) => super::of_one_installation(&its, &ours),
        (Err(_), _) | (_, Err(_)) => matches!((name(&pid), name("self")), (Ok(its), Ok(ours)) if its == ours),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_read_from_the_kernels_list_and_no_waiter_or_reader_is_taken_for_it() {
        let file = tempfile::tempfile().unwrap().metadata().unwrap();
        let place = format!("{:02x}:{:02x}:{}", major(file.dev()), minor(file.dev()), file.ino());
        let line = |kind: &str, mode: &str, pid: u32, place: &str| {
            format!("7: {kind}  ADVISORY  {mode} {pid} {place} 0 EOF\n")
        };
        let others = format!(
            "{}{}{}{}",
            line("POSIX", "WRITE", 1, &place),
            line("FLOCK", "READ", 2, &place),
            line("-> FLOCK", "WRITE", 3, &place),
            line("FLOCK", "WRITE", 4, "08:01:1"),
        );
        assert_eq!(holder(&others, &file), None);
        assert_eq!(holder(&format!("{others}{}", line("FLOCK", "WRITE", 5, &place)), &file), Some(5));
        let elsewhere = format!("00:ff:{}", file.ino());
        let found = holder(&format!("{others}{}", line("FLOCK", "WRITE", 6, &elsewhere)), &file);
        assert_eq!(found, (!place.starts_with("00:ff:")).then_some(6));
        assert_eq!(holder(&line("FLOCK", "WRITE", 0, &place), &file), None);
    }
}
