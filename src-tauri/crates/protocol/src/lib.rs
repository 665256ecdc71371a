//! Deskhand's wire: what a platform and an executor say to each other, with no I/O.
//!
//! Both sides of the repository, the executor and the reference platform, share this crate and nothing else, so a
//! mistake in one of them cannot hide behind the same mistake in the other. It holds the envelope ([`Frame`]), the
//! handshake ([`Hello`], [`HelloAck`], [`negotiate`]), one struct for each payload, and the error codes. Bytes come in
//! through [`Frame::parse`] and [`parse_payload`], which name the field at fault, and go out through [`encode`].
#![forbid(unsafe_code)]

mod capability;
mod command;
mod computer_use;
mod control;
mod envelope;
mod error;
mod files;
mod handshake;
mod ids;
mod local_model;
mod message;
mod payload;
mod recording;
mod status;
mod version;

pub mod close;

pub use capability::{Capability, Coarse};
pub use command::{CommandResult, ExecuteCommand, ShellName};
pub use computer_use::*;
pub use control::*;
pub use envelope::{
    Frame, FrameError, MAX_ANSWERED_ID_BYTES, MAX_FRAME_BYTES, MAX_HELLO_BYTES, MAX_ID_BYTES, Response,
    encode, encode_as, new_id, now,
};
pub use error::{ErrorCode, ErrorPayload};
pub use files::*;
pub use handshake::{
    AckError, Connection, Hello, HelloAck, Limits, Negotiated, Platform, check_ack, negotiate,
};
pub use ids::{InvalidId, MachineId, SessionId};
pub use local_model::*;
pub use message::{Channel, MessageType, Request};
pub use payload::{Parsed, PayloadError, parse_payload, parse_payload_text};
pub use recording::*;
pub use status::{Ack, SessionRevoked, Status};
pub use version::{PROTOCOL_VERSION, Version};

/// The most raw bytes of text that a response may carry: every byte can grow six times in JSON (`\u0000`), and 64 KiB are
/// kept for the envelope.
pub const TEXT_CEILING_BYTES: u64 = (MAX_FRAME_BYTES as u64 - 64 * 1024) / 6;

/// The most raw bytes that a response may carry as base64, which grows by a third.
pub const BASE64_CEILING_BYTES: u64 = (MAX_FRAME_BYTES as u64 - 64 * 1024) / 4 * 3;
