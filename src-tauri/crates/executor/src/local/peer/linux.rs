//! Parents from `/proc`. Orphans stay in the tree: each command's supervisor is a child subreaper, and so is this process.

use std::io;

use rustix::process::{Pid, test_kill_process};

pub(super) struct Parents;

impl Parents {
    pub(super) fn now() -> io::Result<Self> {
        Ok(Self)
    }

    /// The parent of `pid`; none above the first process, and none that this process may see.
    pub(super) fn of(&mut self, pid: u32) -> io::Result<Option<u32>> {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => parent(&stat),
            Err(error) if is_foreign(pid) => {
                // `hidepid`: another user's process, and so none that an agent without that user's rights has started.
                tracing::debug!(pid, %error, "a parent is another user's and hidden");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Field 4 of proc_pid_stat(5). The name before it, in brackets, may hold anything.
fn parent(stat: &str) -> io::Result<Option<u32>> {
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields);
    let parent = fields.and_then(|fields| fields.split(' ').nth(1)).and_then(|field| field.parse().ok());
    match parent {
        Some(0) => Ok(None),
        Some(parent) => Ok(Some(parent)),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "no parent in /proc/<pid>/stat")),
    }
}

fn is_foreign(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::PERM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_whatever_the_process_calls_itself() {
        assert_eq!(parent("7 (a) S 1 (b)) R 42 7 7").unwrap(), Some(42));
        assert_eq!(parent("1 (init) S 0 1 1").unwrap(), None);
        assert!(parent("7 (a").is_err());
    }
}
