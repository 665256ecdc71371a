use std::path::{Path, PathBuf};

use secrecy::SecretString;
use sha2::{Digest, Sha256};

/// Where and how the vault is opened.
#[derive(Clone)]
pub struct VaultOptions {
    /// The installation's state folder: `vault.json`, its lock and the record of the store in use go here.
    pub state_dir: PathBuf,
    /// The keychain's service name, see [`service_name`].
    pub service: String,
    /// The passphrase of the encrypted file, from [`crate::passphrase_from_env`].
    pub passphrase: Option<SecretString>,
    /// Which store to use.
    pub backend: BackendChoice,
}

/// Which store the caller wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// The store this installation already uses; else the keychain where it works; else the file where there is a
    /// passphrase.
    #[default]
    Auto,
    /// The OS keychain or an error.
    Keychain,
    /// The encrypted file or an error.
    File,
}

/// Which store is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The OS keychain.
    Keychain,
    /// The encrypted file.
    File,
}

impl Backend {
    /// How messages name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Keychain => "OS keychain",
            Self::File => "encrypted file",
        }
    }
}

/// The keychain service of an installation: `deskhand`, with a suffix made from `state_dir` where that is not the
/// usual one, so that two installations of one user share no secret.
#[must_use]
pub fn service_name(state_dir: &Path, usual_state_dir: &Path) -> String {
    let canonical = |dir: &Path| {
        std::fs::canonicalize(dir).or_else(|_| std::path::absolute(dir)).unwrap_or_else(|_| dir.to_owned())
    };
    let state_dir = canonical(state_dir);
    if state_dir == canonical(usual_state_dir) {
        return "deskhand".to_owned();
    }
    let digest = Sha256::digest(state_dir.as_os_str().as_encoded_bytes());
    let suffix: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("deskhand-{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_state_folders_have_two_services() {
        let usual = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        assert_eq!(service_name(usual.path(), usual.path()), "deskhand");
        let named = service_name(other.path(), usual.path());
        assert!(named.starts_with("deskhand-") && named.len() == "deskhand-".len() + 12, "{named}");
        assert_eq!(named, service_name(&other.path().join("."), usual.path()));
    }
}
