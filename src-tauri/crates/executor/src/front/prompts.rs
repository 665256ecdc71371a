//! What the prompt's window asks and says.

use serde::Serialize;

use super::{Change, Front};
use crate::consent::{Answer, PromptId, PromptView};

const GONE: &str = "there is no such prompt any more";

/// The prompt before the person.
#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    view: PromptView,
    /// A `data:` URL; none where there is nothing to see.
    picture: Option<String>,
}

impl Front {
    pub(super) fn prompt(&self) -> Option<Shown> {
        let first = self.shared.executor.consent().open_prompts().into_iter().next()?;
        Some(Shown { view: first, picture: None })
    }

    /// It is drawn only now, or has the focus again: whoever clicks now has not read it.
    pub(super) fn prompt_reread(&self, id: &PromptId) -> Result<(), String> {
        if self.shared.executor.consent().reread(id) {
            return Ok(());
        }
        Err(GONE.to_owned())
    }

    pub(super) fn prompt_touch(&self, id: &PromptId) -> Result<(), String> {
        if self.shared.executor.consent().touch(id) {
            self.tell(Change::Prompt);
            return Ok(());
        }
        Err(GONE.to_owned())
    }

    pub(super) fn prompt_answer(&self, id: &PromptId, answer: Answer) -> Result<(), String> {
        self.shared.executor.consent().answer(id, answer).map_err(|error| error.to_string())
    }
}
