//! The highest revision that each session ever had here, kept over restarts: an older grant must not come back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

/// Sessions remembered. The ones with the lowest `order`, touched longest ago, go first.
const MAX_SESSIONS: usize = 4096;

/// What is remembered of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Highest {
    pub(crate) revision: u64,
    pub(crate) fingerprint: String,
    order: u64,
}

/// The file `revisions.json` of the state folder.
#[derive(Debug)]
pub(crate) struct Revisions {
    path: PathBuf,
    sessions: BTreeMap<String, Highest>,
}

impl Revisions {
    /// Reads the file. One that is missing is empty; one that is damaged is an error, since forgetting lets old grants back.
    pub(crate) fn load(state_dir: &Path) -> io::Result<Self> {
        let path = state_dir.join("revisions.json");
        let sessions = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
                let advice = "delete it if every session may be restored from its older grants";
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{} is damaged ({e}); {advice}", path.display()),
                )
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { path, sessions })
    }

    pub(crate) fn highest(&self, session: &str) -> Option<&Highest> {
        self.sessions.get(session)
    }

    /// Remembers a revision, on disk first. What was remembered before stays when the disk is full.
    pub(crate) fn raise(&mut self, session: &str, revision: u64, fingerprint: &str) -> io::Result<()> {
        let order = self.sessions.values().map(|h| h.order).max().unwrap_or(0) + 1;
        let mut next = self.sessions.clone();
        next.insert(session.to_owned(), Highest { revision, fingerprint: fingerprint.to_owned(), order });
        while next.len() > MAX_SESSIONS {
            let oldest = next.iter().min_by_key(|(_, h)| h.order).map(|(id, _)| id.clone());
            oldest.and_then(|id| next.remove(&id));
        }
        let bytes = serde_json::to_vec(&next).map_err(io::Error::other)?;
        replace(&self.path, &bytes)?;
        self.sessions = next;
        Ok(())
    }
}

/// The old content or the new one, never a mix.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let fresh = path.with_extension("new");
    let written = (|| {
        let mut file = fs::File::create(&fresh)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_survive_a_restart_and_the_oldest_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let mut revisions = Revisions::load(dir.path()).unwrap();
        revisions.raise("a", 1, "f1").unwrap();
        revisions.raise("b", 1, "f1").unwrap();
        revisions.raise("a", 2, "f2").unwrap();
        let again = Revisions::load(dir.path()).unwrap();
        let highest = again.highest("a").unwrap();
        assert_eq!((highest.revision, &*highest.fingerprint), (2, "f2"));
        assert!(again.highest("c").is_none());
    }

    #[test]
    fn a_damaged_file_is_not_forgotten_silently() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("revisions.json"), "{").unwrap();
        assert!(Revisions::load(dir.path()).unwrap_err().to_string().contains("damaged"));
    }

    #[test]
    fn what_cannot_be_kept_is_not_raised() {
        let dir = tempfile::tempdir().unwrap();
        let mut revisions = Revisions::load(dir.path()).unwrap();
        revisions.raise("a", 1, "f").unwrap();
        fs::create_dir(dir.path().join("revisions.new")).unwrap();
        assert!(revisions.raise("a", 2, "f").is_err());
        assert_eq!(revisions.highest("a").unwrap().revision, 1);
    }
}
