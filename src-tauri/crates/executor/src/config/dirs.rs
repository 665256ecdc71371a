//! The folders that hold what is ours.

use std::io;
use std::path::{Path, PathBuf};

use directories::BaseDirs;
use thiserror::Error;

/// Where things are kept. None of these may be reached by a session (safety.md §1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    /// `config.toml`.
    pub config: PathBuf,
    /// Vault, bindings, recordings, whether the switch is off.
    pub state: PathBuf,
    /// The local socket; gone after a restart of the machine where the OS has such a folder.
    pub runtime: PathBuf,
    /// The audit log and its rotated files.
    pub logs: PathBuf,
}

/// Why a folder cannot be used.
#[derive(Debug, Error)]
pub enum DirsError {
    /// The OS names no home folder.
    #[error("no home folder is known; set HOME, or give --config-dir and --state-dir")]
    NoHome,
    /// It cannot be made or looked at.
    #[error("cannot use the folder {path}: {source}", path = path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something else stands there.
    #[error("{path} is not a folder", path = path.display())]
    NotAFolder {
        /// What stands there.
        path: PathBuf,
    },
    /// Others could change what is in it.
    #[error("{path} is not private: {why}; it must be yours, and writable by nobody else (chmod go-w)", path = path.display())]
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl Dirs {
    /// The OS's own places, but for what `--config-dir` and `--state-dir` (or their variables) put elsewhere:
    /// with a state folder given, vault, log, recordings and socket are all below it.
    pub fn find(config_dir: Option<&Path>, state_dir: Option<&Path>) -> Result<Self, DirsError> {
        let full = |path: &Path| {
            std::path::absolute(path).map_err(|source| DirsError::Io { path: path.to_owned(), source })
        };
        let given = state_dir.map(full).transpose()?.map(|state| {
            let (runtime, logs) = (state.join("run"), state.clone());
            (state, runtime, logs)
        });
        let config = config_dir.map(full).transpose()?;
        let (config, (state, runtime, logs)) = match (config, given) {
            (Some(config), Some(given)) => (config, given),
            (config, given) => {
                let base = BaseDirs::new().ok_or(DirsError::NoHome)?;
                let config = config.unwrap_or_else(|| base.config_dir().join("deskhand"));
                (config, given.unwrap_or_else(|| native(&base)))
            }
        };
        Ok(Self { config, state, runtime, logs })
    }

    /// Makes what is missing, for the owner alone (0700), and refuses what others could write to. An existing
    /// folder is never changed: a mistyped `--state-dir /tmp` must not lock everybody else out of it.
    pub fn create(&self) -> Result<(), DirsError> {
        [&self.config, &self.state, &self.runtime, &self.logs].into_iter().try_for_each(|path| private(path))
    }

    /// The configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The audit log.
    pub fn audit_log(&self) -> PathBuf {
        self.logs.join("audit.log")
    }

    /// What may be a root of a session beside these folders.
    pub fn root_options(&self) -> jail::RootOptions {
        jail::RootOptions {
            forbidden: self.all().into_iter().map(Path::to_owned).collect(),
            home: BaseDirs::new().map(|base| base.home_dir().to_owned()),
            portable_names: false,
        }
    }

    /// All of them: the folders that no session may reach.
    pub fn all(&self) -> [&Path; 4] {
        [&self.config, &self.state, &self.runtime, &self.logs]
    }
}

/// (state, runtime, logs) by the OS's customs.
fn native(base: &BaseDirs) -> (PathBuf, PathBuf, PathBuf) {
    #[cfg(target_os = "macos")]
    {
        // Configuration is in `Application Support/deskhand` as well, so state has a folder within.
        let state = base.data_local_dir().join("deskhand").join("state");
        let logs = base.home_dir().join("Library").join("Logs").join("deskhand");
        (state.clone(), state.join("run"), logs)
    }
    #[cfg(windows)]
    {
        let state = base.data_local_dir().join("deskhand");
        (state.clone(), state.join("run"), state.join("logs"))
    }
    #[cfg(all(unix, not(target_os = "macos")))]
    {
        let state = base.state_dir().unwrap_or(base.data_local_dir()).join("deskhand");
        let runtime = base.runtime_dir().map_or_else(|| state.join("run"), |dir| dir.join("deskhand"));
        (state.clone(), runtime, state)
    }
}

fn private(path: &Path) -> Result<(), DirsError> {
    let io = |source| DirsError::Io { path: path.to_owned(), source };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(DirsError::NotAFolder { path: path.to_owned() });
        }
        Err(error) => return Err(io(error)),
    }
    let metadata = std::fs::metadata(path).map_err(io)?;
    if !metadata.is_dir() {
        return Err(DirsError::NotAFolder { path: path.to_owned() });
    }
    match exposed(&metadata) {
        Some(why) => Err(DirsError::NotPrivate { path: path.to_owned(), why }),
        None => Ok(()),
    }
}

#[cfg(unix)]
fn exposed(metadata: &std::fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        Some("it belongs to another user")
    } else if metadata.mode() & 0o022 != 0 {
        Some("other users can write to it")
    } else {
        None
    }
}

/// The folders of a user's profile are closed to others by the access list they inherit.
#[cfg(windows)]
fn exposed(_metadata: &std::fs::Metadata) -> Option<&'static str> {
    None
}
