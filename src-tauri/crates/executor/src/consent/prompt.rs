//! A question to a person, and who shows it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use super::action::{Action, ViewLine};
use super::capability::Capability;
use super::outcome::Withdrawal;
use super::text::visible_line;

/// Names one prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PromptId(Uuid);

impl PromptId {
    pub(super) fn new() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for PromptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for PromptId {
    type Err = UnknownPrompt;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self).map_err(|_| UnknownPrompt)
    }
}

/// The text names no prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is no such prompt")]
pub struct UnknownPrompt;

/// What a person can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// This action, and the equal ones that wait with it.
    AllowOnce,
    /// [`Prompt::covers`], for 15 minutes.
    #[serde(rename = "allow_15_minutes")]
    Allow15Minutes,
    /// [`Prompt::covers`], for as long as the chat lasts.
    AllowChat,
    /// No.
    Deny,
    /// No, and no more from this chat.
    DenyAndDisconnect,
}

/// An answer that changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// It was answered, ran out or was withdrawn before, or never existed.
    #[error("there is no such prompt any more")]
    NotOpen,
    /// This prompt does not offer it.
    #[error("this prompt does not offer that answer")]
    NotOffered,
    /// It stands behind another and nobody has seen it.
    #[error("this prompt has not been shown yet; it can only be denied")]
    NotShown,
    /// Nobody reads so fast.
    #[error("this prompt has only just appeared; read it first")]
    TooSoon,
}

/// All that a prompt shows. Every text is safe to show: visible, bounded, without line breaks where there is one
/// line to show it on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prompt {
    /// Its name.
    pub id: PromptId,
    /// The platform that asks.
    pub host: String,
    /// The chat that asks.
    pub session_id: String,
    /// The wire type.
    pub request_type: String,
    /// The class.
    pub capability: Capability,
    /// The chat's folder.
    pub root: String,
    /// What, in one sentence.
    pub title: String,
    /// What, exactly.
    pub lines: Vec<ViewLine>,
    /// Characters of the action that are not shown.
    pub left_out: usize,
    /// The answers there are, the default first.
    pub offers: Vec<Answer>,
    /// What the answers for 15 minutes and for the chat would allow: "run any command, started in /home/anna/work".
    pub covers: String,
}

impl Prompt {
    pub(super) fn of<P>(action: &Action<P>, host: &str) -> Self {
        // A recording is asked for each time, so no answer to one reaches further.
        let offers = match action.capability {
            Capability::Record => vec![Answer::Deny, Answer::AllowOnce, Answer::DenyAndDisconnect],
            Capability::Read
            | Capability::Write
            | Capability::Shell
            | Capability::Screen
            | Capability::Input
            | Capability::Clipboard => vec![
                Answer::Deny,
                Answer::AllowOnce,
                Answer::Allow15Minutes,
                Answer::AllowChat,
                Answer::DenyAndDisconnect,
            ],
        };
        let root = visible_line(&action.root.to_string_lossy());
        let everything = action.capability.everything();
        let covers = match action.capability {
            Capability::Read | Capability::Write => format!("{everything} in {root}"),
            // Where a command starts is no limit to what it reaches, so it is not called "in".
            Capability::Shell => format!("{everything}, started in {root}"),
            Capability::Screen | Capability::Input | Capability::Clipboard | Capability::Record => {
                everything.to_owned()
            }
        };
        Self {
            id: PromptId::new(),
            host: visible_line(host),
            session_id: visible_line(&action.session_id),
            request_type: visible_line(&action.request_type),
            capability: action.capability,
            root,
            title: action.view.title.clone(),
            lines: action.view.lines.clone(),
            left_out: action.view.left_out,
            offers,
            covers,
        }
    }
}

/// An open prompt and how it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PromptView {
    /// What it asks.
    #[serde(flatten)]
    pub prompt: Prompt,
    /// Whether it is the one before the person; the others wait behind it.
    pub shown: bool,
    /// Requests that wait for its answer.
    pub requests: usize,
    /// Seconds until it counts as denied; none while it waits, or once somebody touched it.
    pub seconds_left: Option<f64>,
}

/// How a prompt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Somebody answered it.
    Answered(Answer),
    /// An answer to another prompt covers it.
    Covered,
    /// Nobody answered it.
    TimedOut,
    /// A changed setting decides it.
    Rule,
    /// It was taken back.
    Withdrawn(Withdrawal),
}

/// Puts prompts before a person.
///
/// [`Prompter::show`] and [`Prompter::withdraw`] are called from one thread of their own, in turn: one that hangs
/// delays the next prompt and nothing else, and prompts that were never seen run out as denied.
pub trait Prompter: Send + Sync {
    /// Shows a prompt; there is none shown when this is called.
    fn show(&self, prompt: &Prompt);
    /// Takes the shown prompt away. Called once for each that was shown, however it ended.
    fn withdraw(&self, id: &PromptId, end: End);
    /// Whether somebody could see a prompt now. Asked from the request's own task: it must not block.
    fn available(&self) -> bool;
}
