//! How a request for consent ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::capability::Capability;
use super::prompt::PromptId;

/// What an approval rests on, and so how far it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The class's setting.
    Default,
    /// A rule.
    Rule,
    /// An answer to this action alone.
    Once,
    /// An answer that holds for 15 minutes.
    #[serde(rename = "15_minutes")]
    FifteenMinutes,
    /// An answer that holds for the chat.
    Chat,
}

impl Scope {
    /// The name in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Rule => "rule",
            Self::Once => "once",
            Self::FifteenMinutes => "15_minutes",
            Self::Chat => "chat",
        }
    }
}

/// Why not; the `reason` in the details of `CONSENT_REQUIRED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The person said no.
    Declined,
    /// Nobody answered.
    TimedOut,
    /// The question was taken back; [`Denied::withdrawal`] says why.
    Withdrawn,
    /// A setting says no, or there is nobody to ask and no setting says yes.
    Rule,
}

impl Reason {
    /// The name on the wire and in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Declined => "declined",
            Self::TimedOut => "timed_out",
            Self::Withdrawn => "withdrawn",
            Self::Rule => "rule",
        }
    }
}

/// Why a question was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withdrawal {
    /// The request was cancelled: its connection ended.
    Cancelled,
    /// The kill switch.
    Killed,
    /// The chat ended.
    SessionEnded,
    /// The chat is paused, after too many denials in a row. On the wire this is `SHIM_OVERLOADED`, paused.
    Paused,
    /// Nobody can be asked now: the screen is locked, the terminal is gone.
    NobodyThere,
    /// Too many questions are open.
    QueueFull,
}

/// What the audit log's `CONSENT` record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The class asked for.
    pub capability: Capability,
    /// `allowed`, or the reason's name.
    pub decision: &'static str,
    /// What an approval rests on.
    pub scope: Option<Scope>,
    /// From the request to the decision, in milliseconds.
    pub waited_ms: u64,
    /// The prompt that was answered, also when that was an earlier request's.
    pub prompt_id: Option<PromptId>,
}

/// No.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.message())]
pub struct Denied {
    /// Why.
    pub reason: Reason,
    /// The class asked for.
    pub capability: Capability,
    /// Why the question was taken back, when it was.
    pub withdrawal: Option<Withdrawal>,
    /// For the audit log.
    pub facts: Facts,
}

impl Denied {
    fn message(&self) -> &'static str {
        match (self.reason, self.withdrawal) {
            (Reason::Declined, _) => "The user declined this action.",
            (Reason::TimedOut, _) => "The user did not answer in time. Ask again when they are there.",
            (Reason::Rule, _) => "The user's settings do not allow this action.",
            (Reason::Withdrawn, Some(Withdrawal::Paused)) => "The user has to resume this chat first.",
            (Reason::Withdrawn, Some(Withdrawal::NobodyThere)) => "Nobody can be asked on that computer now.",
            (Reason::Withdrawn, Some(Withdrawal::QueueFull)) => {
                "Too many questions are open. Wait for answers."
            }
            (
                Reason::Withdrawn,
                Some(Withdrawal::Cancelled | Withdrawal::Killed | Withdrawal::SessionEnded) | None,
            ) => "The question was taken back before it was answered.",
        }
    }
}

/// Yes, to exactly one action: only [`super::Consent::decide`] makes one, out of that action, whose payload it keeps. Nothing
/// reaches the payload but [`Approved::take`] and [`Approved::attempt`], which use the approval up: what runs is what was
/// approved.
#[must_use = "an approval is for one action; take what was approved out of it"]
pub struct Approved<P> {
    pub(super) params: P,
    pub(super) program: Option<PathBuf>,
    pub(super) facts: Facts,
    pub(super) era: Era,
}

/// The kill switch came between the approval and its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the approval was withdrawn")]
pub struct ApprovalWithdrawn;

/// Without the payload, which may be anybody's secret.
impl<P> std::fmt::Debug for Approved<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approved").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl<P> Approved<P> {
    /// For the audit log.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// For a command given as an argument list, the file that a rule compared. Run this one.
    pub fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    /// Uses the approval, right before the action happens, and gives what was approved.
    ///
    /// # Errors
    ///
    /// [`ApprovalWithdrawn`] when the kill switch was thrown since it was asked for.
    pub fn take(self) -> Result<P, ApprovalWithdrawn> {
        if self.era.is_over() { Err(ApprovalWithdrawn) } else { Ok(self.params) }
    }

    /// Uses the approval if the action can be done right here, which `act` says by giving a result.
    ///
    /// # Errors
    ///
    /// The approval, unused: nothing was done, or the kill switch came first, which [`Approved::take`] will say.
    pub fn attempt<R>(self, act: impl FnOnce(&P) -> Option<R>) -> Result<R, Self> {
        if self.era.is_over() {
            return Err(self);
        }
        act(&self.params).ok_or(self)
    }
}

/// The time between two uses of the kill switch. No lock: the switch ends it in one store.
#[derive(Clone, Debug)]
pub(super) struct Era {
    number: u64,
    current: Arc<AtomicU64>,
}

impl Era {
    pub(super) fn current(current: &Arc<AtomicU64>) -> Self {
        Self { number: current.load(Ordering::SeqCst), current: Arc::clone(current) }
    }

    pub(super) fn is_over(&self) -> bool {
        self.number != self.current.load(Ordering::SeqCst)
    }
}
