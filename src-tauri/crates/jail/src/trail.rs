//! The chain of directories from the root to where we are.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Fault, Outcome};
use crate::sys::Dir;
use crate::types::Identity;

/// Handles kept open along the chain: deep trees must not use up the process's descriptors.
const OPEN_LEVELS: usize = 32;

/// Directories entered one by one, none of them through a link, each looked up in the one before.
#[derive(Clone, Debug)]
pub(crate) struct Trail {
    root: Arc<Dir>,
    levels: Vec<Level>,
}

#[derive(Clone, Debug)]
struct Level {
    name: OsString,
    /// Known once somebody needed it.
    identity: Option<Identity>,
    /// Closed far above where we are, opened again when we come back.
    dir: Option<Arc<Dir>>,
}

impl Trail {
    pub(crate) fn new(root: Arc<Dir>) -> Trail {
        Trail { root, levels: Vec::new() }
    }

    /// A chain that the kernel walked in one call.
    #[cfg(target_os = "linux")]
    pub(crate) fn jump(root: Arc<Dir>, names: &[OsString], last: Arc<Dir>) -> Trail {
        let level = |name: &OsString| Level { name: name.clone(), identity: None, dir: None };
        let mut levels: Vec<Level> = names.iter().map(level).collect();
        if let Some(level) = levels.last_mut() {
            level.dir = Some(last);
        }
        Trail { root, levels }
    }

    /// The directory we are in.
    pub(crate) fn dir(&self) -> Arc<Dir> {
        let last = self.levels.last().and_then(|level| level.dir.as_ref());
        Arc::clone(last.unwrap_or(&self.root))
    }

    pub(crate) fn at_root(&self) -> bool {
        self.levels.is_empty()
    }

    /// Names from the root down.
    pub(crate) fn names(&self) -> impl Iterator<Item = &OsStr> + Clone {
        self.levels.iter().map(|level| level.name.as_os_str())
    }

    /// Path of the directory, given that of the root.
    pub(crate) fn path(&self, root: &Path) -> PathBuf {
        let mut path = root.to_owned();
        path.extend(self.names());
        path
    }

    /// Enters a directory. `NotADirectory` when `name` is a link or anything else.
    pub(crate) fn enter(&mut self, name: &OsStr) -> std::io::Result<Identity> {
        let dir = Arc::new(self.dir().open_dir(name)?);
        let identity = dir.meta()?.identity;
        if let Some(above) = self.levels.len().checked_sub(OPEN_LEVELS) {
            self.levels[above].dir = None;
        }
        self.levels.push(Level { name: name.to_owned(), identity: Some(identity), dir: Some(dir) });
        Ok(identity)
    }

    /// Leaves for the directory that this one was entered from, and gives the name of the one left.
    pub(crate) fn leave(&mut self) -> Outcome<Option<OsString>> {
        let left = self.levels.pop().map(|level| level.name);
        if self.levels.last().is_some_and(|level| level.dir.is_none()) {
            self.reopen()?;
        }
        Ok(left)
    }

    pub(crate) fn restart(&mut self) {
        self.levels.clear();
    }

    /// Goes down from the root again, for handles that were closed. A directory that was replaced meanwhile is not the
    /// one that we were in.
    fn reopen(&mut self) -> Outcome<()> {
        let mut dir = Arc::clone(&self.root);
        let keep_from = self.levels.len().saturating_sub(OPEN_LEVELS);
        for (depth, level) in self.levels.iter_mut().enumerate() {
            dir = match level.dir.take() {
                Some(open) => open,
                None => Arc::new(dir.open_dir(&level.name).map_err(|_| Fault::Changed)?),
            };
            let identity = dir.meta()?.identity;
            if level.identity.is_some_and(|known| known != identity) {
                return Err(Fault::Changed);
            }
            level.identity = Some(identity);
            level.dir = (depth >= keep_from).then(|| Arc::clone(&dir));
        }
        Ok(())
    }
}
