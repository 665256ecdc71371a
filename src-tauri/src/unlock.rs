//! Where there is no keychain, the secrets are in a file with a passphrase, and this window asks for it: once for a new
//! file, and at each start for one that is there. It is the only window before the vault is open, and can do nothing else.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tauri::{AppHandle, Manager, State, WebviewUrl, WebviewWindowBuilder};
use tokio::sync::oneshot;
use vault::{SecretString, Vault, VaultError, VaultOptions};

use crate::windows;

/// Its label, which its permissions name.
pub(crate) const UNLOCK: &str = "unlock";

/// A file is as safe as its passphrase; a shorter one is guessed.
const SHORTEST: usize = 8;

/// What the window asks for.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    /// A passphrase for a file that is to be made.
    New,
    /// The one that opens it.
    Known,
}

struct Attempt {
    passphrase: SecretString,
    /// What is wrong with it; dropped when it fits.
    answer: oneshot::Sender<String>,
}

/// The question while it is open.
pub(crate) struct Question {
    wanted: Wanted,
    attempts: Mutex<Option<Sender<Attempt>>>,
}

impl Question {
    /// The window was closed: nobody will answer.
    pub(crate) fn give_up(&self) {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Opens the vault; asks where a passphrase is all that lacks. None when the person closes the question. Blocks.
pub(crate) fn open_vault(app: &AppHandle, mut options: VaultOptions) -> Result<Option<Vault>, VaultError> {
    let wanted = match Vault::open(&options) {
        Err(VaultError::NoStore { .. }) => Wanted::New,
        Err(VaultError::PassphraseMissing { .. }) => Wanted::Known,
        opened => return opened.map(Some),
    };
    let attempts = ask(app, wanted);
    let opened = loop {
        let Ok(Attempt { passphrase, answer }) = attempts.recv() else { break Ok(None) };
        options.passphrase = Some(passphrase);
        match Vault::open(&options) {
            Err(VaultError::WrongPassphrase { .. }) => {
                // The window may have gone meanwhile; then no more attempts come.
                let _ = answer.send("That passphrase does not fit. Try again.".to_owned());
            }
            Err(VaultError::PassphraseUnusable(why)) => {
                let _ = answer.send(format!("That passphrase cannot be used: {why}."));
            }
            opened => break opened.map(Some),
        }
    };
    windows::on_main_thread(app, |app| {
        if let Some(window) = app.get_webview_window(UNLOCK)
            && let Err(error) = window.destroy()
        {
            tracing::error!(%error, "the question for the passphrase cannot be closed");
        }
    });
    opened
}

fn ask(app: &AppHandle, wanted: Wanted) -> Receiver<Attempt> {
    let (attempts, receiver) = channel();
    app.manage(Question { wanted, attempts: Mutex::new(Some(attempts)) });
    windows::on_main_thread(app, |app| {
        let built = WebviewWindowBuilder::new(app, UNLOCK, WebviewUrl::App("unlock.html".into()))
            .title("Unlock Deskhand")
            .inner_size(480.0, 440.0)
            .resizable(false)
            .maximizable(false)
            .center()
            .disable_drag_drop_handler()
            .on_navigation(windows::is_ours)
            .build();
        if let Err(error) = built {
            tracing::error!(%error, "the question for the passphrase cannot be shown");
            if let Some(question) = app.try_state::<Question>() {
                question.give_up();
            }
        }
    });
    receiver
}

/// What the page shows.
#[tauri::command]
pub(crate) fn unlock_state(question: State<'_, Question>) -> Value {
    json!({"wanted": if question.wanted == Wanted::New { "new" } else { "known" }, "shortest": SHORTEST})
}

/// Tries a passphrase; the error is a sentence for the person.
#[tauri::command]
pub(crate) async fn unlock_with(question: State<'_, Question>, passphrase: String) -> Result<(), String> {
    if question.wanted == Wanted::New && passphrase.chars().count() < SHORTEST {
        return Err(format!("Choose a passphrase of at least {SHORTEST} characters."));
    }
    let passphrase = SecretString::from(passphrase);
    let (answer, wrong) = oneshot::channel();
    let attempts = question.attempts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    attempts
        .and_then(|attempts| attempts.send(Attempt { passphrase, answer }).ok())
        .ok_or("Nothing waits for a passphrase any more.")?;
    match wrong.await {
        Ok(wrong) => Err(wrong),
        Err(_) => Ok(()),
    }
}
