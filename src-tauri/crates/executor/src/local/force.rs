//! `stop` when nobody answers: the switch has to work then, too.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::instance::Instance;
use super::os;
use crate::mark::mark;
use crate::off::{self, Off};

/// A killed process is gone in milliseconds, unless it hangs in a system call.
const PATIENCE: Duration = Duration::from_secs(5);
/// The end of another program's process is no event of ours.
const RETRY: Duration = Duration::from_millis(5);

/// Why it may still run.
#[derive(Debug, thiserror::Error)]
pub enum ForceError {
    /// It could not be noted down that this machine stays off, or the process could not be ended.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The OS does not say which process it is.
    #[error("a deskhand runs, and the system does not say which process it is: end it yourself")]
    Unknown,
    /// It is still there.
    #[error(
        "process {0} does not end: it hangs in the operating system; cut this computer's network to be sure"
    )]
    Stuck(u32),
}

/// Notes down that this machine stays off until the next `connect`, and ends the process of the state folder if one
/// runs. Its commands end with it, and so does what commands of an earlier run have left behind. Returns the process
/// that was ended.
///
/// # Errors
/// See [`ForceError`]. The process is ended even where the note could not be written.
pub fn force_stop(state_dir: &Path) -> Result<Option<u32>, ForceError> {
    let noted = match std::fs::metadata(state_dir) {
        // Nothing ever ran here.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(_) | Err(_) => off::remember(state_dir, Off::Stopped),
    };
    let ended = end_holder(state_dir);
    exec::lineage::end_survivors(mark(state_dir));
    let ended = ended?;
    noted?;
    Ok(ended)
}

/// Ends whoever holds the state folder, until nobody does: a command may take the place of the one that was ended.
fn end_holder(state_dir: &Path) -> Result<Option<u32>, ForceError> {
    let deadline = Instant::now() + PATIENCE;
    let mut ended = None;
    loop {
        match (Instance::running(state_dir)?, ended) {
            (None, _) => return Ok(ended),
            (Some(Some(pid)), _) if pid == std::process::id() => return Err(ForceError::Unknown),
            (Some(Some(pid)), _) if ended != Some(pid) => {
                let holds_it = || matches!(Instance::running(state_dir), Ok(Some(Some(now))) if now == pid);
                if os::kill(pid, holds_it)? {
                    ended = Some(pid);
                }
            }
            (Some(None), None) => return Err(ForceError::Unknown),
            // It is ending.
            (Some(_), Some(pid)) if Instant::now() > deadline => return Err(ForceError::Stuck(pid)),
            (Some(_), _) => {}
        }
        thread::sleep(RETRY);
    }
}
