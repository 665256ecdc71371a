//! The encrypted file. It is read afresh at every call, so another process' write is seen at once; the file is small
//! and the key is kept, so that costs microseconds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::sealed::{COST, Cost, Derived, OpenError, open, seal};
use crate::store::Store;
use crate::{SecretBytes, VaultError, atomic};

/// Ten times what a full vault needs; a larger file is not ours.
const LIMIT: u64 = 1 << 20;

type Items = BTreeMap<String, SecretBytes>;

pub(crate) struct FileVault {
    path: PathBuf,
    passphrase: SecretString,
    cost: Cost,
    key: Mutex<Option<Derived>>,
}

impl FileVault {
    /// Reads the file where there is one, so that a wrong passphrase is known at start.
    pub(crate) fn open(path: PathBuf, passphrase: SecretString) -> Result<Self, VaultError> {
        let vault = Self { path, passphrase, cost: COST, key: Mutex::new(None) };
        vault.read(&mut vault.key.lock().unwrap_or_else(PoisonError::into_inner))?;
        Ok(vault)
    }

    fn read(&self, key: &mut Option<Derived>) -> Result<Items, VaultError> {
        let damaged = |why: String| VaultError::damaged(self.path.display().to_string(), why);
        let Some(text) = atomic::read(&self.path, LIMIT)? else { return Ok(Items::new()) };
        let plain = open(&text, &self.passphrase, key).map_err(|e| match e {
            OpenError::WrongPassphrase => VaultError::WrongPassphrase { path: self.path.clone() },
            OpenError::Damaged(why) => damaged(why),
            OpenError::Other(e) => e,
        })?;
        unpack(&plain).ok_or_else(|| damaged("items".to_owned()))
    }

    fn change(&self, change: impl FnOnce(&mut Items)) -> Result<(), VaultError> {
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let mut items = self.read(&mut key)?;
        change(&mut items);
        let derived = match key.take() {
            Some(derived) => derived,
            None => Derived::fresh(&self.passphrase, self.cost)?,
        };
        let text = seal(&derived, &pack(&items));
        *key = Some(derived);
        let text = text?;
        if text.len() as u64 > LIMIT {
            return Err(VaultError::Refused(format!("the vault would be over {LIMIT} bytes")));
        }
        atomic::replace(&self.path, &text)
    }
}

impl Store for FileVault {
    fn load(&self, name: &str) -> Result<Option<SecretBytes>, VaultError> {
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.read(&mut key)?.remove(name))
    }

    fn store(&self, new: &[(&str, &[u8])]) -> Result<(), VaultError> {
        self.change(|items| {
            for (name, value) in new {
                items.insert((*name).to_owned(), SecretBytes::copied(value));
            }
        })
    }

    fn delete(&self, name: &str) -> Result<(), VaultError> {
        self.change(|items| {
            items.remove(name);
        })
    }
}

/// Each item: length of the name (u16), name, length of the value (u32), value; big endian. Not JSON, so that no
/// escaping or growing buffer leaves copies of a secret behind.
fn pack(items: &Items) -> Zeroizing<Vec<u8>> {
    let room = items.iter().map(|(name, value)| 6 + name.len() + value.expose_secret().len()).sum();
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    for (name, value) in items {
        let value = value.expose_secret();
        // The vault's limits on names and values keep both lengths in range.
        bytes.extend_from_slice(&(name.len() as u16).to_be_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&(value.len() as u32).to_be_bytes());
        bytes.extend_from_slice(value);
    }
    bytes
}

fn unpack(mut bytes: &[u8]) -> Option<Items> {
    let mut items = Items::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (name, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        items.insert(String::from_utf8(name.to_vec()).ok()?, SecretBytes::copied(value));
        bytes = rest;
    }
    Some(items)
}
