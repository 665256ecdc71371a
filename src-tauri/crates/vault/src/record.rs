//! Which store this installation uses, and whether an audit key was ever made: what lets a missing item be told from
//! a store that lost it, and a keychain that is away today from a machine that has none. Holds no secret.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Backend, VaultError, atomic};

const LIMIT: u64 = 4096;

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) store: RecordedStore,
    pub(crate) audit_key: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedStore {
    Keychain,
    File,
}

impl From<Backend> for RecordedStore {
    fn from(backend: Backend) -> Self {
        match backend {
            Backend::Keychain => Self::Keychain,
            Backend::File => Self::File,
        }
    }
}

pub(crate) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("vault-store.json")
}

impl Record {
    pub(crate) fn read(state_dir: &Path) -> Result<Option<Self>, VaultError> {
        let path = path(state_dir);
        let Some(text) = atomic::read(&path, LIMIT)? else { return Ok(None) };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|e| VaultError::damaged(path.display().to_string(), e.to_string()))
    }

    pub(crate) fn write(self, state_dir: &Path) -> Result<(), VaultError> {
        let path = path(state_dir);
        let text = serde_json::to_vec(&self)
            .map_err(|e| VaultError::damaged(path.display().to_string(), e.to_string()))?;
        atomic::replace(&path, &text)
    }
}
