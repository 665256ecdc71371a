//! The desktop around the app: dialogs, the browser, the kill switch's keys, login items.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use executor::front::{Appearance, Front, Licence, Native, Permission, PermissionState};
use rfd::{AsyncFileDialog, AsyncMessageDialog, MessageButtons, MessageDialogResult, MessageLevel};
use tauri::plugin::TauriPlugin;
use tauri::{AppHandle, Manager, Wry};
use tauri_plugin_autostart::ManagerExt as _;
use tauri_plugin_global_shortcut::{GlobalShortcutExt as _, Shortcut, ShortcutState};
use url::Url;

use crate::{prompts, tray, windows};

/// The app's own desktop.
pub(crate) struct Desktop {
    app: AppHandle,
    shortcut_works: AtomicBool,
}

impl Desktop {
    pub(crate) fn new(app: &AppHandle) -> Self {
        Self { app: app.clone(), shortcut_works: AtomicBool::new(false) }
    }

    /// Shows a dialog. The library makes it on the main thread; this one waits for the answer.
    fn ask<F: Future<Output = T> + Send + 'static, T: Send + 'static>(
        &self,
        dialog: impl FnOnce() -> F + Send + 'static,
    ) -> Option<T> {
        ask(&self.app, dialog)
    }
}

/// See [`Desktop::ask`].
pub(crate) fn ask<F: Future<Output = T> + Send + 'static, T: Send + 'static>(
    app: &AppHandle,
    dialog: impl FnOnce() -> F + Send + 'static,
) -> Option<T> {
    let (sender, answer) = mpsc::channel();
    windows::on_main_thread(app, move |_| {
        let shown = dialog();
        tauri::async_runtime::spawn(async move {
            // Whoever asked may have gone.
            let _ = sender.send(shown.await);
        });
    });
    answer.recv().ok()
}

/// Asks a question with two answers; true for the first. Blocks.
pub(crate) fn confirm(
    app: &AppHandle,
    title: &'static str,
    text: String,
    yes: &'static str,
    no: &'static str,
) -> bool {
    let answer = ask(app, move || {
        AsyncMessageDialog::new()
            .set_level(MessageLevel::Warning)
            .set_title(title)
            .set_description(text)
            .set_buttons(MessageButtons::OkCancelCustom(yes.to_owned(), no.to_owned()))
            .show()
    });
    matches!(answer, Some(MessageDialogResult::Ok))
        || matches!(answer, Some(MessageDialogResult::Custom(said)) if said == yes)
}

/// Says what went wrong. Blocks until it was read.
pub(crate) fn complain(app: &AppHandle, title: &'static str, text: String) {
    tracing::error!("{title}: {text}");
    ask(app, move || {
        AsyncMessageDialog::new().set_level(MessageLevel::Error).set_title(title).set_description(text).show()
    });
}

/// The keys of the kill switch throw it from the thread that hears them: no window and no main loop has a part in it.
pub(crate) fn shortcut_plugin() -> TauriPlugin<Wry> {
    tauri_plugin_global_shortcut::Builder::new()
        .with_handler(|app, _keys, event| {
            if event.state() == ShortcutState::Pressed
                && let Some(front) = app.try_state::<Front>()
            {
                front.executor().kill_switch().throw("shortcut");
            }
        })
        .build()
}

impl Native for Desktop {
    fn open_url(&self, url: &Url) -> Result<(), String> {
        executor::oauth::open_in_browser(url).map_err(|error| {
            format!("no browser can be opened ({error}); copy the address and open it yourself")
        })
    }

    fn pick_folder(&self) -> Option<PathBuf> {
        let picked =
            self.ask(|| AsyncFileDialog::new().set_title("Choose a folder for the agent").pick_folder());
        picked.flatten().map(|folder| folder.path().to_owned())
    }

    fn pick_file(&self, proposed: &str) -> Option<PathBuf> {
        let proposed = proposed.to_owned();
        let picked = self.ask(move || {
            AsyncFileDialog::new().set_title("Export the activity").set_file_name(proposed).save_file()
        });
        picked.flatten().map(|file| file.path().to_owned())
    }

    fn starts_at_login(&self) -> bool {
        self.app.autolaunch().is_enabled().unwrap_or(false)
    }

    fn set_start_at_login(&self, on: bool) -> Result<(), String> {
        let login = self.app.autolaunch();
        if on { login.enable() } else { login.disable() }
            .map_err(|error| format!("the login items cannot be changed: {error}"))
    }

    fn set_shortcut(&self, keys: &str) -> Result<(), String> {
        let wanted: Shortcut = keys
            .parse()
            .map_err(|_| format!("'{keys}' are no keys; choose for example Ctrl+Alt+Shift+Escape"))?;
        let shortcuts = self.app.global_shortcut();
        if self.shortcut_works() && shortcuts.is_registered(wanted) {
            return Ok(());
        }
        shortcuts.register(wanted).map_err(|_| {
            format!("{keys} belongs to another program, or this desktop has no such keys; choose others")
        })?;
        // The new ones work: only now are the old ones let go.
        let before = self.app.try_state::<Front>().map(|front| front.preferences().shortcut);
        if let Some(before) =
            before.and_then(|keys| keys.parse::<Shortcut>().ok()).filter(|before| *before != wanted)
            && shortcuts.is_registered(before)
            && let Err(error) = shortcuts.unregister(before)
        {
            tracing::warn!(%error, "the keys before cannot be let go");
        }
        self.shortcut_works.store(true, Ordering::Release);
        Ok(())
    }

    fn shortcut_works(&self) -> bool {
        self.shortcut_works.load(Ordering::Acquire)
    }

    fn has_tray(&self) -> bool {
        tray::is_shown()
    }

    fn show_prompt(&self) {
        prompts::bring_to_front(&self.app);
    }

    fn set_appearance(&self, _appearance: Appearance) {
        windows::on_main_thread(&self.app, |app| app.set_theme(windows::theme(app)));
    }

    fn permissions(&self) -> Vec<Permission> {
        let tray = if self.has_tray() {
            (PermissionState::Ok, "Deskhand's icon is in the tray.".to_owned())
        } else {
            (
                PermissionState::Warning,
                "This desktop shows no tray icons; the window stays in the task bar.".to_owned(),
            )
        };
        let keys = if self.shortcut_works() {
            (PermissionState::Ok, "The keys that stop everything work.".to_owned())
        } else {
            (
                PermissionState::Warning,
                "The keys that stop everything do nothing here; choose others in Settings.".to_owned(),
            )
        };
        let permission = |id, name, (state, detail)| Permission { id, name, state, detail, can_open: false };
        vec![permission("tray", "Tray icon", tray), permission("shortcut", "Stop keys", keys)]
    }

    fn open_permission(&self, id: &str) -> Result<(), String> {
        Err(format!("the system has no page for '{id}'"))
    }

    fn licences(&self) -> Vec<Licence> {
        serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/licences.json"))).unwrap_or_default()
    }
}
