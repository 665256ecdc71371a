//! Payloads of the local model.

use serde::{Deserialize, Serialize};

/// Who said a [`ChatMessage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// The instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who.
    pub role: ChatRole,
    /// What.
    pub content: String,
}

/// `LOCAL_LLM_COMPLETION`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalLlmCompletion {
    /// The model's name on this machine.
    pub model: String,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// At most this many tokens.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u32,
    /// Sampling temperature.
    #[serde(default)]
    pub temperature: f64,
    /// Nucleus sampling.
    #[serde(default = "one")]
    pub top_p: f64,
    /// In pieces as they come.
    #[serde(default = "yes")]
    pub stream: bool,
}

fn default_max_tokens() -> u32 {
    1024
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

/// Why a completion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The token limit.
    Length,
    /// The model's server refused to go on.
    ContentFilter,
}

/// `LOCAL_LLM_COMPLETION_CHUNK`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalLlmCompletionChunk {
    /// The next piece.
    pub delta: String,
    /// Set on the last one.
    pub finish_reason: Option<FinishReason>,
}

/// Token counts of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Read.
    pub prompt: u64,
    /// Written.
    pub completion: u64,
    /// Both.
    pub total: u64,
}

/// `LOCAL_LLM_COMPLETION_RESPONSE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalLlmCompletionResponse {
    /// The whole answer.
    pub content: String,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// Token counts.
    pub tokens: Tokens,
    /// How long it took.
    pub duration_seconds: f64,
}
