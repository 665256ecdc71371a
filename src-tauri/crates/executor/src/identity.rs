//! Which machine this is: its id, and what HELLO says of its system.

use std::path::Path;
use std::{fs, io};

use protocol::{MachineId, Platform};

/// This machine cannot be told apart from others.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The state folder does not take or give the id.
    #[error(
        "{path}: {source}; the machine id is kept there, so the state folder must be readable and writable"
    )]
    Io {
        /// The file.
        path: String,
        /// What went wrong.
        source: io::Error,
    },
    /// The file holds something else.
    #[error(
        "{path} does not hold a machine id; delete the file to get a new id (sessions of the old one end)"
    )]
    Damaged {
        /// The file.
        path: String,
    },
    /// A processor that the contract has no name for.
    #[error("this processor ({0}) is not supported: x86_64 and arm64 are")]
    UnsupportedArch(&'static str),
}

/// The id in `state_dir/machine_id`, made on the first call.
///
/// # Errors
///
/// When the file cannot be read or written, or holds something else.
pub fn machine_id(state_dir: &Path) -> Result<MachineId, IdentityError> {
    let path = state_dir.join("machine_id");
    let io = |source| IdentityError::Io { path: path.display().to_string(), source };
    match fs::read_to_string(&path) {
        Ok(text) => {
            text.trim().parse().map_err(|_| IdentityError::Damaged { path: path.display().to_string() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(&path).map_err(io),
        Err(error) => Err(io(error)),
    }
}

/// Writes a new id beside and links it into place, so that a crash leaves no empty file and of two processes that start
/// at once both end up with the one that was first.
fn create(path: &Path) -> io::Result<MachineId> {
    let fresh = path.with_extension(protocol::new_id());
    fs::write(&fresh, protocol::new_id())?;
    let linked = fs::hard_link(&fresh, path).or_else(|_| match path.exists() {
        true => Ok(()),
        false => fs::rename(&fresh, path),
    });
    let _ = fs::remove_file(&fresh);
    linked?;
    let text = fs::read_to_string(path)?;
    text.trim().parse().map_err(|_| io::Error::other("the new machine id did not reach the disk"))
}

/// The operating system, with Linux under Windows told apart.
#[must_use]
pub(crate) fn platform() -> Platform {
    if cfg!(windows) {
        Platform::Windows
    } else if cfg!(target_os = "macos") {
        Platform::Darwin
    } else if fs::read_to_string("/proc/version").is_ok_and(|v| v.to_ascii_lowercase().contains("microsoft"))
    {
        Platform::Wsl2
    } else {
        Platform::Linux
    }
}

/// The processor's name in the contract.
///
/// # Errors
///
/// When it has none.
pub(crate) fn arch() -> Result<&'static str, IdentityError> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("x86_64"),
        "aarch64" => Ok("arm64"),
        other => Err(IdentityError::UnsupportedArch(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_stays() {
        let dir = tempfile::tempdir().unwrap();
        let first = machine_id(dir.path()).unwrap();
        assert_eq!(machine_id(dir.path()).unwrap(), first);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn processes_that_start_at_once_agree() {
        let dir = tempfile::tempdir().unwrap();
        let ids: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| machine_id(dir.path()).unwrap())).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }

    #[test]
    fn a_damaged_id_is_not_replaced_silently() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("machine_id"), "no id/at all").unwrap();
        assert!(matches!(machine_id(dir.path()), Err(IdentityError::Damaged { .. })));
    }
}
