use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a secret could not be read or kept. No variant carries a secret; each message says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// Neither a keychain nor a passphrase.
    #[error(
        "no OS keychain ({reason}) and no passphrase for an encrypted file: start a keychain, or give a passphrase in \
         DESKHAND_KEYCHAIN_PASSPHRASE or a file named by DESKHAND_KEYCHAIN_PASSPHRASE_FILE"
    )]
    NoStore {
        /// What the keychain said.
        reason: String,
    },
    /// The encrypted file is chosen or exists, and there is no passphrase for it.
    #[error(
        "the secrets are in {} and need its passphrase: give it in DESKHAND_KEYCHAIN_PASSPHRASE or a file named by \
         DESKHAND_KEYCHAIN_PASSPHRASE_FILE", path.display()
    )]
    PassphraseMissing {
        /// The vault file.
        path: PathBuf,
    },
    /// A passphrase was given that cannot be used (empty, not UTF-8, unreadable, or read too late).
    #[error("the passphrase cannot be used: {0}")]
    PassphraseUnusable(String),
    /// The file is whole, and this passphrase does not open it.
    #[error("the passphrase does not open {}: give the one it was made with", path.display())]
    WrongPassphrase {
        /// The vault file.
        path: PathBuf,
    },
    /// What is stored cannot be read: changed, cut off, or of a later version.
    #[error("{what} is damaged ({detail}): restore it from a backup, or remove it and sign in again")]
    Damaged {
        /// The file or item.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The keychain is locked, or its unlock prompt was refused.
    #[error("the OS keychain is locked ({0}): unlock it and try again")]
    Locked(String),
    /// There is no keychain to talk to.
    #[error("the OS keychain cannot be reached ({0}): run this in the desktop session that has it")]
    Unavailable(String),
    /// The keychain answered with an error of its own.
    #[error("the OS keychain failed ({0})")]
    Failed(String),
    /// The keychain did not answer in time; it may be asking the user to unlock it.
    #[error("the OS keychain did not answer within {} s: see whether it asks to be unlocked", .0.as_secs())]
    TimedOut(Duration),
    /// A round trip came back with other bytes than were written.
    #[error("the {0} does not keep what is written to it")]
    Forgetful(&'static str),
    /// An audit key was made here before and is not in the store any more.
    #[error(
        "the audit key of this installation is gone from the {store}: bring it back, or remove {} to begin a new \
         chain with a new key (the old log can then no longer be verified)", record.display()
    )]
    AuditKeyGone {
        /// Where it was looked for.
        store: &'static str,
        /// The file that remembers that there was one.
        record: PathBuf,
    },
    /// Another process holds the lock and does not let go.
    #[error("another process has been using {} for {} s: end it and try again", path.display(), waited.as_secs())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long we waited.
        waited: Duration,
    },
    /// A name or value outside the limits of the vault.
    #[error("a secret cannot be stored as asked: {0}")]
    Refused(String),
    /// The disk said no; what was stored before is still there.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gives no random bytes ({0})")]
    Random(String),
}

impl VaultError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), detail: detail.into() }
    }
}

/// Fills an array from the OS.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], VaultError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| VaultError::Random(e.to_string()))?;
    Ok(bytes)
}
