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
/// A note for the kill switch, written while there is room: on a full disk it only has to be renamed.
const READY: &str = "off.ready";

/// Puts the kill switch's note in place.
///
/// # Errors
///
/// When the state folder cannot be written.
pub(crate) fn make_ready(state_dir: &Path) -> io::Result<()> {
    crate::control::replace(&state_dir.join(READY), Off::Stopped.name().as_bytes())
}

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
    let ready = || match off {
        Off::Stopped => fs::rename(state_dir.join(READY), state_dir.join(FILE)),
        Off::Disconnected => Err(io::ErrorKind::NotFound.into()),
    };
    ready().or_else(|_| crate::control::replace(&state_dir.join(FILE), off.name().as_bytes()))
}

/// `connect` was said.
///
/// # Errors
///
/// When the note is there and cannot be removed.
pub fn forget(state_dir: &Path) -> io::Result<()> {
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
    fn the_kill_switch_is_remembered_where_nothing_can_be_written() {
        let dir = tempfile::tempdir().unwrap();
        make_ready(dir.path()).unwrap();
        fs::create_dir(dir.path().join("off.new")).unwrap(); // as on a full disk, no new file can be made
        remember(dir.path(), Off::Stopped).unwrap();
        assert_eq!(recall(dir.path()), Some(Off::Stopped));
        assert!(remember(dir.path(), Off::Disconnected).is_err());
    }

    #[test]
    fn a_note_that_says_nothing_known_still_means_off() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("off"), "").unwrap();
        assert_eq!(recall(dir.path()), Some(Off::Stopped));
    }
}
