use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::error::random;
use crate::file::FileVault;
use crate::keychain::Keychain;
use crate::lock::{LockFile, LockGuard};
use crate::record::{self, Record};
use crate::store::Store;
use crate::{Backend, BackendChoice, SecretBytes, Tokens, VaultError, VaultOptions, atomic};

const TOKENS: &str = "tokens";
const AUDIT_KEY: &str = "audit-key";
const ROUND_TRIP: &str = "round-trip";

/// Another process holds the lock for one write, or one prompt of the keychain.
const LOCK_PATIENCE: Duration = Duration::from_secs(35);
/// A token request of another process ends in less than that (its HTTP timeout is 30 s).
const REFRESH_PATIENCE: Duration = Duration::from_secs(60);

const LONGEST_NAME: usize = 64;
const LONGEST_VALUE: usize = 64 * 1024;

/// The secrets of one installation. Clones share one store; every call blocks, for [`crate::KEYCHAIN_PATIENCE`] at
/// most when the keychain does not answer.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    store: Box<dyn Store>,
    backend: Backend,
    state_dir: PathBuf,
    lock: LockFile,
    refresh: LockFile,
}

impl Vault {
    /// Opens the store, and proves a keychain by a real round trip. A file vault is decrypted, so that a wrong
    /// passphrase shows now; where there is none yet, it is made by the first write.
    ///
    /// # Errors
    /// No usable store, a locked or silent keychain, a missing or wrong passphrase, a damaged file.
    pub fn open(options: &VaultOptions) -> Result<Self, VaultError> {
        atomic::make_folder(&options.state_dir)?;
        match options.backend {
            BackendChoice::Keychain => Self::in_keychain(options),
            BackendChoice::File => Self::in_file(options),
            BackendChoice::Auto => Self::wherever(options),
        }
    }

    /// The store that is in use stays in use: a desktop's secrets must not split because a keychain is away today.
    fn wherever(options: &VaultOptions) -> Result<Self, VaultError> {
        if file_path(&options.state_dir).exists() {
            return Self::in_file(options);
        }
        let recorded = Record::read(&options.state_dir)?.map(|record| record.store);
        match recorded {
            Some(record::RecordedStore::Keychain) => Self::in_keychain(options),
            Some(record::RecordedStore::File) => Self::in_file(options),
            None => Self::in_keychain(options).or_else(|e| match &options.passphrase {
                Some(_) => Self::in_file(options),
                None => Err(VaultError::NoStore { reason: e.to_string() }),
            }),
        }
    }

    fn in_keychain(options: &VaultOptions) -> Result<Self, VaultError> {
        let vault = Self::on_keychain_unproven(options)?;
        vault.round_trip()?;
        Ok(vault)
    }

    pub(crate) fn on_keychain_unproven(options: &VaultOptions) -> Result<Self, VaultError> {
        let store = Keychain::new(&options.service)?;
        Ok(Self::on(Box::new(store), Backend::Keychain, &options.state_dir))
    }

    fn in_file(options: &VaultOptions) -> Result<Self, VaultError> {
        let path = file_path(&options.state_dir);
        let Some(passphrase) = options.passphrase.clone() else {
            return Err(VaultError::PassphraseMissing { path });
        };
        let store = FileVault::open(path, passphrase)?;
        Ok(Self::on(Box::new(store), Backend::File, &options.state_dir))
    }

    fn on(store: Box<dyn Store>, backend: Backend, state_dir: &Path) -> Self {
        Self(Arc::new(Inner {
            store,
            backend,
            state_dir: state_dir.to_owned(),
            lock: LockFile::new(state_dir.join("vault.lock")),
            refresh: LockFile::new(state_dir.join("refresh.lock")),
        }))
    }

    /// Which store is in use.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.0.backend
    }

    /// The secret called `name`; `None` only where the store answered that there is none.
    ///
    /// # Errors
    /// The store failed, is locked, did not answer, or holds something damaged.
    pub fn load(&self, name: &str) -> Result<Option<SecretBytes>, VaultError> {
        check_name(name)?;
        self.0.store.load(name)
    }

    /// Stores all `items`: in one write in the file, one after the other in a keychain, where each single item is
    /// replaced whole.
    ///
    /// # Errors
    /// As [`Vault::load`]; the disk is full; another process holds the lock; a name is not 1–64 of `a-z 0-9 -`, a
    /// value is over 64 KiB. What was stored before is then still there.
    pub fn store(&self, items: &[(&str, &[u8])]) -> Result<(), VaultError> {
        let _lock = self.lock()?;
        self.store_locked(items)
    }

    /// Removes a secret; one that is not there is fine.
    ///
    /// # Errors
    /// As [`Vault::store`].
    pub fn delete(&self, name: &str) -> Result<(), VaultError> {
        check_name(name)?;
        let _lock = self.lock()?;
        self.0.store.delete(name)
    }

    /// Writes, reads and deletes a random value, for `doctor` and before anything relies on the store.
    ///
    /// # Errors
    /// As [`Vault::store`]; [`VaultError::Forgetful`] when it reads back something else.
    pub fn round_trip(&self) -> Result<(), VaultError> {
        let _lock = self.lock()?;
        self.round_trip_locked()
    }

    /// The key of the audit chain; made when this installation never had one.
    ///
    /// # Errors
    /// As [`Vault::store`]; [`VaultError::AuditKeyGone`] when there was one. A new key is never put in the place of
    /// one that merely cannot be read: that would break the chain without a word.
    pub fn audit_key(&self) -> Result<Zeroizing<[u8; 32]>, VaultError> {
        if let Some(key) = self.load_audit_key()? {
            return Ok(key);
        }
        let _lock = self.lock()?;
        // Some keychains hide their items while locked. Proving that a write works unlocks it, or fails here.
        self.round_trip_locked()?;
        if let Some(key) = self.load_audit_key()? {
            return Ok(key);
        }
        if Record::read(&self.0.state_dir)?.is_some_and(|record| record.audit_key) {
            return Err(VaultError::AuditKeyGone {
                store: self.0.backend.name(),
                record: record::path(&self.0.state_dir),
            });
        }
        let key = Zeroizing::new(random::<32>()?);
        self.store_locked(&[(AUDIT_KEY, &*key)])?;
        match self.load_audit_key()? {
            Some(kept) if *kept == *key => {}
            Some(_) | None => return Err(VaultError::Forgetful(self.0.backend.name())),
        }
        Record { store: self.0.backend.into(), audit_key: true }.write(&self.0.state_dir)?;
        Ok(key)
    }

    /// The sign-in, as it was last stored by any process.
    ///
    /// # Errors
    /// As [`Vault::load`].
    pub fn tokens(&self) -> Result<Option<Tokens>, VaultError> {
        self.load(TOKENS)?.as_ref().map(Tokens::from_bytes).transpose()
    }

    /// Replaces the sign-in, both tokens in one write.
    ///
    /// # Errors
    /// As [`Vault::store`]; the old sign-in is then still there.
    pub fn store_tokens(&self, tokens: &Tokens) -> Result<(), VaultError> {
        self.store(&[(TOKENS, &tokens.to_bytes()?)])
    }

    /// Forgets the sign-in.
    ///
    /// # Errors
    /// As [`Vault::store`].
    pub fn clear_tokens(&self) -> Result<(), VaultError> {
        self.delete(TOKENS)
    }

    /// Held while tokens are refreshed, so that one process of this machine does it at a time: a refresh token that
    /// is used twice counts as stolen. Read the tokens again once it is held.
    ///
    /// # Errors
    /// [`VaultError::Busy`] after 60 s.
    pub fn lock_refresh(&self) -> Result<LockGuard, VaultError> {
        self.0.refresh.hold(REFRESH_PATIENCE)
    }

    fn lock(&self) -> Result<LockGuard, VaultError> {
        self.0.lock.hold(LOCK_PATIENCE)
    }

    fn store_locked(&self, items: &[(&str, &[u8])]) -> Result<(), VaultError> {
        for (name, value) in items {
            check_name(name)?;
            if value.len() > LONGEST_VALUE {
                return Err(VaultError::Refused(format!("{name} is over {LONGEST_VALUE} bytes")));
            }
        }
        // Before the secret itself, so that there is none that no later start looks for.
        if Record::read(&self.0.state_dir)?.is_none() {
            Record { store: self.0.backend.into(), audit_key: false }.write(&self.0.state_dir)?;
        }
        self.0.store.store(items)
    }

    fn round_trip_locked(&self) -> Result<(), VaultError> {
        let value = random::<32>()?;
        let store = &self.0.store;
        store.store(&[(ROUND_TRIP, &value)])?;
        let kept = store.load(ROUND_TRIP)?;
        store.delete(ROUND_TRIP)?;
        let gone = store.load(ROUND_TRIP)?.is_none();
        if gone && kept.is_some_and(|kept| kept.expose_secret() == value) {
            Ok(())
        } else {
            Err(VaultError::Forgetful(self.0.backend.name()))
        }
    }

    fn load_audit_key(&self) -> Result<Option<Zeroizing<[u8; 32]>>, VaultError> {
        let Some(secret) = self.load(AUDIT_KEY)? else { return Ok(None) };
        let key = secret.expose_secret().try_into().map_err(|_| {
            VaultError::damaged(format!("the audit key in the {}", self.0.backend.name()), "not 32 bytes")
        })?;
        Ok(Some(Zeroizing::new(key)))
    }
}

fn file_path(state_dir: &Path) -> PathBuf {
    state_dir.join("vault.json")
}

fn check_name(name: &str) -> Result<(), VaultError> {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(allowed) {
        return Err(VaultError::Refused(format!("the name {name:?}")));
    }
    Ok(())
}
