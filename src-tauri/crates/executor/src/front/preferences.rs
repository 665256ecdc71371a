//! What the app remembers for itself, in `app.json` of the state folder: nothing in it allows anything.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// Keys that no desktop we know of uses.
pub const USUAL_SHORTCUT: &str = "Ctrl+Alt+Shift+Escape";

/// Which colours the windows have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Appearance {
    /// The desktop's.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

/// The app's own settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preferences {
    /// The first-run screens were seen or skipped.
    pub first_run_done: bool,
    /// Which colours the windows have.
    pub appearance: Appearance,
    /// The keys of the kill switch.
    pub shortcut: String,
}

impl Default for Preferences {
    fn default() -> Self {
        Self { first_run_done: false, appearance: Appearance::System, shortcut: USUAL_SHORTCUT.to_owned() }
    }
}

/// The file.
pub(super) struct Store {
    path: PathBuf,
    now: Mutex<Preferences>,
}

impl Store {
    /// A file that is missing or unreadable means the usual settings: the app must start.
    pub(super) fn open(state_dir: &Path) -> Self {
        let path = state_dir.join("app.json");
        let now = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Self { path, now: Mutex::new(now.unwrap_or_default()) }
    }

    pub(super) fn get(&self) -> Preferences {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Preferences)) -> io::Result<()> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = now.clone();
        change(&mut new);
        if new != *now {
            let temporary = self.path.with_extension("json.new");
            std::fs::write(&temporary, serde_json::to_vec_pretty(&new)?)?;
            std::fs::rename(&temporary, &self.path)?;
            *now = new;
        }
        Ok(())
    }
}
