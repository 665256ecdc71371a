//! Settings, folders and rules: `config.toml` is changed, then read again, as a person with an editor would do it.

use std::path::Path;

use jail::RootDir;
use serde_json::Value;

use super::preferences::{Appearance, USUAL_SHORTCUT};
use super::view::{Folder, Retention, Settings};
use super::{Front, blocking};
use crate::config::{self, EditError};

/// Capabilities that this version has. A switch for another would do nothing.
const WORKS: [&str; 1] = ["shell"];

impl Front {
    pub(super) async fn settings(&self) -> Result<Settings, String> {
        let shared = self.shared.clone();
        blocking(move || {
            let config = shared.executor.machine().config();
            let preferences = shared.preferences.get();
            let mut overridden = config::overridden(std::env::vars_os());
            if shared.platform_from_flag {
                overridden.push("platform_url".to_owned());
            }
            Settings {
                platform_url: config.platform_url.clone(),
                display_name: config.display_name(),
                browse_home: config.browse_home,
                trash: config.trash,
                max_concurrent: config.max_concurrent,
                command_timeout_seconds: config.command_timeout_seconds,
                max_file_size_bytes: config.max_file_size_bytes,
                capabilities: config.capabilities.clone(),
                consent: config.consent.clone(),
                rules: config.rules.clone(),
                rates: config.rates.clone(),
                recording: Retention { keep: config.recording.keep, keep_days: config.recording.keep_days },
                local_llm_url: config.local_llm.url.clone(),
                start_at_login: shared.native.starts_at_login(),
                appearance: preferences.appearance,
                shortcut: preferences.shortcut,
                overridden,
                works: WORKS.to_vec(),
            }
        })
        .await
    }

    pub(super) async fn set(&self, key: String, value: Value) -> Result<Settings, String> {
        let front = self.clone();
        blocking(move || match key.as_str() {
            "start_at_login" => {
                front.shared.native.set_start_at_login(value.as_bool().ok_or("it is on or off")?)
            }
            "appearance" => {
                let appearance: Appearance =
                    serde_json::from_value(value).map_err(|_| "it is system, light or dark")?;
                front.prefer(|preferences| preferences.appearance = appearance)?;
                front.shared.native.set_appearance(appearance);
                Ok(())
            }
            "shortcut" => {
                let keys = value.as_str().map(str::trim).filter(|keys| !keys.is_empty());
                let keys = keys.unwrap_or(USUAL_SHORTCUT).to_owned();
                front.shared.native.set_shortcut(&keys)?;
                front.prefer(|preferences| preferences.shortcut = keys)
            }
            _ => {
                let value = toml(value)?;
                front.edit(|file| config::set(file, &key, &value))
            }
        })
        .await??;
        self.changed();
        self.settings().await
    }

    pub(super) async fn remove_rule(&self, index: usize) -> Result<Settings, String> {
        let front = self.clone();
        blocking(move || {
            let config = front.shared.executor.machine().config();
            let rule = config.rules.get(index).ok_or("there is no such rule any more")?;
            front.edit(|file| config::remove_rule(file, index, rule))
        })
        .await??;
        self.settings().await
    }

    pub(super) fn folders(&self) -> Vec<Folder> {
        let machine = self.shared.executor.machine();
        machine.config().roots().iter().map(|path| self.folder(path)).collect()
    }

    pub(super) async fn add_folder(&self) -> Result<Option<Folder>, String> {
        let front = self.clone();
        blocking(move || {
            let Some(path) = front.shared.native.pick_folder() else { return Ok(None) };
            front.share(&path).map(Some)
        })
        .await?
    }

    /// `~/Deskhand`: the folder that is offered where nobody has one in mind.
    pub(super) async fn make_default_folder(&self) -> Result<Folder, String> {
        let front = self.clone();
        blocking(move || {
            let path = config::expand_home("~/Deskhand");
            std::fs::create_dir_all(&path)
                .map_err(|error| format!("{} cannot be made: {error}", path.display()))?;
            front.share(&path)
        })
        .await?
    }

    pub(super) async fn remove_folder(&self, path: String) -> Result<(), String> {
        let front = self.clone();
        blocking(move || front.edit(|file| config::remove_root(file, &path))).await?
    }

    fn share(&self, path: &Path) -> Result<Folder, String> {
        let options = self.shared.executor.machine().root_options();
        let root = RootDir::open(path, &options)
            .map_err(|error| format!("{} cannot be shared: {error}", path.display()))?;
        let text = root.path().to_str().ok_or("the folder's name is not UTF-8; it cannot be shared")?;
        self.edit(|file| config::add_root(file, text))?;
        Ok(self.folder(root.path()))
    }

    fn folder(&self, path: &Path) -> Folder {
        let opened = RootDir::open(path, &self.shared.executor.machine().root_options());
        let (usable, reason) = match opened {
            Ok(root) if root.is_whole_home() => (
                true,
                Some(
                    "This is your whole home folder, with keys, mail and browser profiles in it. A folder inside it is safer."
                        .to_owned(),
                ),
            ),
            Ok(_) => (true, None),
            Err(error) => (false, Some(error.to_string())),
        };
        Folder { path: path.display().to_string(), usable, reason }
    }

    /// Changes the file; what then holds is what the executor read.
    fn edit(&self, change: impl FnOnce(&Path) -> Result<bool, EditError>) -> Result<(), String> {
        let machine = self.shared.executor.machine();
        let changed = change(&machine.dirs.config_file()).map_err(|error| error.to_string())?;
        if changed {
            self.shared.executor.reload("SETTINGS_CHANGED").map_err(|error| error.0)?;
            self.changed();
        }
        Ok(())
    }

    fn prefer(&self, change: impl FnOnce(&mut super::Preferences)) -> Result<(), String> {
        self.shared.preferences.change(change).map_err(|error| format!("it cannot be remembered: {error}"))
    }

    pub(super) fn finish_first_run(&self) -> Result<(), String> {
        self.prefer(|preferences| preferences.first_run_done = true)?;
        self.changed();
        Ok(())
    }
}

/// The same value in a configuration's form.
fn toml(value: Value) -> Result<toml::Value, String> {
    toml::Value::try_from(value).map_err(|error| format!("that is no value for a setting: {error}"))
}
