//! Whether this machine stays off over restarts: after `stop` or `disconnect`, until the next `connect`.

use std::path::Path;
use std::{fs, io};

/// What was said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// `stop`: the kill switch.
    Stopped,
    /// `disconnect`.
    Disconnected,
}

impl Off {
    /// Why it is off, in words.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Off::Stopped => "the kill switch was thrown; 'deskhand connect' turns it on again",
            Off::Disconnected => "disconnected; 'deskhand connect' turns it on again",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Off::Stopped => "stopped",
            Off::Disconnected => "disconnected",
        }
    }
}

const FILE: &str = "off";

/// Whether it is off. A note that cannot be read counts as one: it fails closed.
#[must_use]
pub fn recall(state_dir: &Path) -> Option<Off> {
    match fs::read_to_string(state_dir.join(FILE)) {
        Ok(text) if text.trim() == Off::Disconnected.name() => Some(Off::Disconnected),
        Ok(_) => Some(Off::Stopped),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => Some(Off::Stopped),
    }
}

/// Notes it down.
///
/// # Errors
///
/// When the state folder cannot be written.
pub fn remember(state_dir: &Path, off: Off) -> io::Result<()> {
    crate::control::replace(&state_dir.join(FILE), off.name().as_bytes())
}

/// `connect` was said.
///
/// # Errors
///
/// When the note is there and cannot be removed.
pub(crate) fn forget(state_dir: &Path) -> io::Result<()> {
    match fs::remove_file(state_dir.join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_is_remembered_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(recall(dir.path()), None);
        for off in [Off::Stopped, Off::Disconnected] {
            remember(dir.path(), off).unwrap();
            assert_eq!(recall(dir.path()), Some(off));
        }
        forget(dir.path()).unwrap();
        forget(dir.path()).unwrap();
        assert_eq!(recall(dir.path()), None);
    }

    #[test]
    fn a_note_that_says_nothing_known_still_means_off() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("off"), "").unwrap();
        assert_eq!(recall(dir.path()), Some(Off::Stopped));
    }
}
