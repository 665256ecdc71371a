use std::sync::Arc;

use super::prompt::{End, Prompt, PromptId};

/// What others may want to know.
#[derive(Clone, Debug, PartialEq)]
pub enum ConsentEvent {
    /// A question was asked; it may wait behind others.
    Opened {
        /// The question.
        prompt: Arc<Prompt>,
    },
    /// It is before the person now.
    Shown {
        /// Which.
        id: PromptId,
    },
    /// It is gone.
    Closed {
        /// Which.
        id: PromptId,
        /// The chat that asked.
        session_id: String,
        /// How it ended.
        end: End,
    },
    /// The person said "deny and disconnect" to this chat. What that means for connections is the receiver's.
    DisconnectAsked {
        /// The chat.
        session_id: String,
    },
    /// More than five denials or time-outs in a row: nothing of this chat runs until it is resumed.
    ChatPaused {
        /// The chat.
        session_id: String,
    },
    /// A paused chat was resumed.
    ChatResumed {
        /// The chat.
        session_id: String,
    },
}
