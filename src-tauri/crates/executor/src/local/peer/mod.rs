//! Who is at the other end.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod os;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod os;
#[cfg(windows)]
#[path = "windows.rs"]
mod os;

use std::io;

/// Longer chains of parents are made on purpose.
const DEEPEST: usize = 1024;

/// A process of the chain can end while it is walked; then its child has a new parent.
const WALKS: usize = 5;

/// What a peer may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// A process of the person's.
    Person,
    /// A process that this one started, directly or not: a command of the agent's. Or one of which that cannot be told.
    OwnCommand,
}

/// The standing of process `pid`, which is at the other end now. `None`: the OS does not say which one it is.
///
/// The id is the one that connected. It is looked at right after it was accepted, so that it stands for another process only
/// when that one has ended and the OS has gone through all ids since; and it would have to be a process of the person's then.
pub(super) fn standing(pid: Option<u32>) -> Standing {
    let us = std::process::id();
    let Some(pid) = pid else { return Standing::OwnCommand };
    for _ in 0..WALKS {
        match descends(pid, us) {
            Ok(false) => return Standing::Person,
            Ok(true) => return Standing::OwnCommand,
            Err(_) => {}
        }
    }
    Standing::OwnCommand
}

/// Whether `pid` is a child of `ancestor`, or a child's child, and so on. A process does not descend from itself.
fn descends(pid: u32, ancestor: u32) -> io::Result<bool> {
    if pid == ancestor {
        return Ok(false);
    }
    let mut parents = os::Parents::now()?;
    let mut current = pid;
    for _ in 0..DEEPEST {
        match parents.of(current)? {
            None => return Ok(false),
            Some(parent) if parent == ancestor => return Ok(true),
            Some(parent) => current = parent,
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_descends_and_its_parent_and_the_process_itself_do_not() {
        let us = std::process::id();
        assert!(!descends(us, us).unwrap());
        #[cfg(unix)]
        {
            let mut child = std::process::Command::new("sh")
                .args(["-c", "sleep 60 & echo $!; wait"])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            std::io::BufRead::read_line(
                &mut std::io::BufReader::new(child.stdout.take().unwrap()),
                &mut line,
            )
            .unwrap();
            let grandchild: u32 = line.trim().parse().unwrap();
            assert!(descends(child.id(), us).unwrap());
            assert!(descends(grandchild, us).unwrap());
            assert!(!descends(us, child.id()).unwrap());
            assert_eq!(standing(Some(grandchild)), Standing::OwnCommand);
            assert_eq!(standing(Some(std::os::unix::process::parent_id())), Standing::Person);
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(grandchild.cast_signed()).unwrap(),
                rustix::process::Signal::KILL,
            )
            .unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_process_that_cannot_be_looked_at_counts_as_a_command() {
        assert_eq!(standing(None), Standing::OwnCommand);
        assert_eq!(standing(Some(0)), Standing::OwnCommand);
        assert_eq!(standing(Some(u32::MAX)), Standing::OwnCommand);
    }
}
