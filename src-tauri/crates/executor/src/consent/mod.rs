//! Who may do what, and the question to the person where that is open (safety.md §3).
//!
//! [`Consent::decide`] takes an [`Action`] and gives an [`Approved`] or a [`Denied`]. Nothing else makes an
//! [`Approved`], it owns the payload of the action that was asked for, and it is used up by the one call that acts on it:
//! what runs is what was shown. Equal requests share a prompt; a digest of the exact action tells which are equal.
//!
//! Invariants:
//! - Nobody there, a hanging prompter, a full queue, a lost task: each ends as a denial.
//! - One prompt is before the person at a time, in the order they were asked. Its countdown starts when it is
//!   shown, so that waiting behind another is never a denial.
//! - What denies is looked at first, always: no standing approval reaches past it.
//! - The kill switch waits for nobody. The one lock is held for short and pure steps only, never while a
//!   prompter, an event's receiver or a task runs, and approvals already given end with one atomic store.

mod action;
mod capability;
mod decide;
mod desk;
mod event;
mod grants;
mod outcome;
mod policy;
mod program;
mod prompt;
mod terminal;
#[cfg(test)]
mod tests;
mod text;

pub use action::{Action, ActionView, ViewLine};
pub use capability::Capability;
pub use decide::Consent;
pub use event::ConsentEvent;
pub use outcome::{ApprovalWithdrawn, Approved, Denied, Facts, Reason, Scope, Withdrawal};
pub use policy::Policy;
pub use program::ProgramMatch;
pub use prompt::{Answer, AnswerError, End, Prompt, PromptId, PromptView, Prompter, UnknownPrompt};
pub use terminal::TerminalPrompter;
pub use text::{quoted, visible, visible_line};
