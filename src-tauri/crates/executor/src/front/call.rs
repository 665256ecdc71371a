//! The table of commands: one row each.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::view::Filter;
use super::{Front, blocking};
use crate::consent::{Answer, PromptId};
use crate::events::Command;

/// Which window a command belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The main window.
    Main,
    /// A consent prompt's.
    Prompt,
}

/// Every command, and whose it is. The app's permissions are made from the same names.
pub const COMMANDS: [(&str, Window); 32] = [
    ("snapshot", Window::Main),
    ("connect", Window::Main),
    ("disconnect", Window::Main),
    ("pause", Window::Main),
    ("resume", Window::Main),
    ("stop", Window::Main),
    ("disconnect_chat", Window::Main),
    ("sign_in", Window::Main),
    ("sign_in_reopen", Window::Main),
    ("sign_in_cancel", Window::Main),
    ("sign_out", Window::Main),
    ("activity_summary", Window::Main),
    ("activity_rows", Window::Main),
    ("activity_verify", Window::Main),
    ("activity_export", Window::Main),
    ("folders", Window::Main),
    ("folder_add", Window::Main),
    ("folder_remove", Window::Main),
    ("folder_make_default", Window::Main),
    ("settings", Window::Main),
    ("setting_set", Window::Main),
    ("rule_remove", Window::Main),
    ("permissions", Window::Main),
    ("permission_open", Window::Main),
    ("about", Window::Main),
    ("first_run_done", Window::Main),
    ("show_prompt", Window::Main),
    ("prompt", Window::Prompt),
    ("prompt_seen", Window::Prompt),
    ("prompt_touch", Window::Prompt),
    ("prompt_answer", Window::Prompt),
    ("prompt_focus", Window::Prompt),
];

#[derive(Deserialize)]
struct Minutes {
    minutes: Option<u32>,
}
#[derive(Deserialize)]
struct MaybeSession {
    session_id: Option<String>,
}
#[derive(Deserialize)]
struct Session {
    session_id: String,
}
#[derive(Deserialize)]
struct Filtered {
    filter: Filter,
}
#[derive(Deserialize)]
struct Rows {
    filter: Filter,
    offset: usize,
    limit: usize,
}
#[derive(Deserialize)]
struct Path {
    path: String,
}
#[derive(Deserialize)]
struct Set {
    key: String,
    value: Value,
}
#[derive(Deserialize)]
struct Index {
    index: usize,
}
#[derive(Deserialize)]
struct Id {
    id: String,
}
#[derive(Deserialize)]
struct OfPrompt {
    id: PromptId,
}
#[derive(Deserialize)]
struct Answered {
    id: PromptId,
    answer: Answer,
}

fn args<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| format!("wrong arguments: {error}"))
}

fn answer(value: impl Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| format!("the answer cannot be written: {error}"))
}

impl Front {
    /// Carries out one command for a window.
    ///
    /// # Errors
    ///
    /// A sentence for the person: what went wrong and what to do.
    pub async fn call(&self, window: Window, name: &str, with: Value) -> Result<Value, String> {
        match COMMANDS.iter().find(|(known, _)| *known == name) {
            Some((_, whose)) if *whose == window => {}
            Some(_) | None => return Err(format!("this window has no command '{name}'")),
        }
        match window {
            Window::Main => self.call_main(name, with).await,
            Window::Prompt => self.call_prompt(name, with),
        }
    }

    async fn call_main(&self, name: &str, with: Value) -> Result<Value, String> {
        match name {
            "snapshot" => answer(self.snapshot()),
            "connect" => answer(self.command(Command::Connect).await?),
            "disconnect" => answer(self.command(Command::Disconnect).await?),
            "pause" => answer(self.pause(args::<Minutes>(with)?.minutes).await?),
            "resume" => answer(self.resume(args::<MaybeSession>(with)?.session_id).await?),
            "stop" => answer(self.command(Command::Stop).await?),
            "disconnect_chat" => {
                let Session { session_id } = args(with)?;
                answer(self.command(Command::EndSession { session_id }).await?)
            }
            "sign_in" => answer(self.sign_in().await?),
            "sign_in_reopen" => answer(self.sign_in_reopen().await?),
            "sign_in_cancel" => {
                self.sign_in_cancel();
                answer(())
            }
            "sign_out" => answer(self.sign_out().await?),
            "first_run_done" => answer(self.finish_first_run()?),
            "show_prompt" => {
                self.shared.native.show_prompt();
                answer(())
            }
            _ => self.call_pages(name, with).await,
        }
    }

    async fn call_pages(&self, name: &str, with: Value) -> Result<Value, String> {
        match name {
            "activity_summary" => answer(self.activity_summary(args::<Filtered>(with)?.filter).await?),
            "activity_rows" => {
                let Rows { filter, offset, limit } = args(with)?;
                answer(self.activity_rows(filter, offset, limit).await?)
            }
            "activity_verify" => answer(self.activity_verify().await?),
            "activity_export" => answer(self.activity_export().await?),
            "folders" => {
                let front = self.clone();
                answer(blocking(move || front.folders()).await?)
            }
            "folder_add" => answer(self.add_folder().await?),
            "folder_remove" => answer(self.remove_folder(args::<Path>(with)?.path).await?),
            "folder_make_default" => answer(self.make_default_folder().await?),
            "settings" => answer(self.settings().await?),
            "setting_set" => {
                let Set { key, value } = args(with)?;
                answer(self.set(key, value).await?)
            }
            "rule_remove" => answer(self.remove_rule(args::<Index>(with)?.index).await?),
            "permissions" => {
                let native = self.shared.native.clone();
                answer(blocking(move || native.permissions()).await?)
            }
            "permission_open" => {
                let (native, Id { id }) = (self.shared.native.clone(), args(with)?);
                answer(blocking(move || native.open_permission(&id)).await??)
            }
            "about" => answer(self.about()),
            _ => Err(format!("there is no command '{name}'")),
        }
    }

    fn call_prompt(&self, name: &str, with: Value) -> Result<Value, String> {
        match name {
            "prompt" => answer(self.prompt()),
            "prompt_seen" | "prompt_focus" => answer(self.prompt_reread(&args::<OfPrompt>(with)?.id)?),
            "prompt_touch" => answer(self.prompt_touch(&args::<OfPrompt>(with)?.id)?),
            "prompt_answer" => {
                let Answered { id, answer: said } = args(with)?;
                answer(self.prompt_answer(&id, said)?)
            }
            _ => Err(format!("there is no command '{name}'")),
        }
    }
}
