//! HELLO and HELLO_ACK, the platform's side.

use axum::extract::ws::{Message, WebSocket};
use protocol::{
    Capability, Frame, Hello, HelloAck, Limits, MAX_HELLO_BYTES, MessageType, PROTOCOL_VERSION, Version,
    close, encode, negotiate, parse_payload,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::options::Timings;
use crate::store::sessions::Binding;

/// A handshake that failed, as a close frame.
#[derive(Debug, PartialEq)]
pub(crate) struct Rejected {
    pub(crate) code: u16,
    pub(crate) reason: String,
}

impl Rejected {
    pub(crate) fn new(code: u16, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

/// A greeting and the id to answer it with.
pub(crate) struct Greeting {
    pub(crate) id: String,
    pub(crate) hello: Hello,
}

/// Waits for HELLO. `None` when the machine left before it.
pub(crate) async fn receive(socket: &mut WebSocket, timings: &Timings) -> Result<Option<Greeting>, Rejected> {
    let first = async {
        loop {
            match socket.recv().await {
                Some(Ok(Message::Text(text))) => return Ok(Some(text.into())),
                Some(Ok(Message::Binary(bytes))) => return Ok(Some(bytes)),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_))) | None => return Ok(None),
                Some(Err(_)) => return Err(Rejected::new(close::BAD_HELLO, "HELLO cannot be read")),
            }
        }
    };
    let late = |_| Rejected::new(close::HELLO_TIMEOUT, "no HELLO in time");
    let Some(bytes) = timeout(timings.hello_timeout, first).await.map_err(late)?? else { return Ok(None) };
    parse(&bytes).map(Some)
}

fn parse(bytes: &[u8]) -> Result<Greeting, Rejected> {
    if bytes.len() > MAX_HELLO_BYTES {
        return Err(Rejected::new(close::BAD_HELLO, "HELLO is over 64 KiB"));
    }
    let bad = || Rejected::new(close::BAD_HELLO, "the first frame is no HELLO");
    let frame = Frame::parse(bytes).map_err(|_| bad())?;
    if frame.message_type() != Some(MessageType::Hello) {
        return Err(bad());
    }
    check_version(frame.payload)?;
    let payload = without_unknown_names(frame.payload)?;
    let hello = parse_payload::<Hello>(&payload)
        .map_err(|e| Rejected::new(close::BAD_HELLO, short(&format!("bad HELLO: field '{}'", e.field))))?
        .value;
    if hello.display_name.chars().count() > 128 {
        return Err(Rejected::new(close::BAD_HELLO, "bad HELLO: field 'display_name'"));
    }
    Ok(Greeting { id: frame.id.into_owned(), hello })
}

/// Looks at the version before anything else: a HELLO of another major may have another shape.
fn check_version(payload: &RawValue) -> Result<(), Rejected> {
    #[derive(serde::Deserialize)]
    struct VersionOnly {
        protocol_version: Version,
    }
    let theirs = parse_payload::<VersionOnly>(payload)
        .map_err(|_| Rejected::new(close::BAD_HELLO, "bad HELLO: field 'protocol_version'"))?;
    match negotiate(PROTOCOL_VERSION, theirs.value.protocol_version) {
        Ok(_) => Ok(()),
        Err(_) => {
            let reason = serde_json::json!({
                "error": "PROTOCOL_VERSION_MISMATCH",
                "shim_max": theirs.value.protocol_version, "platform_max": PROTOCOL_VERSION, "hint": "update",
            });
            Err(Rejected::new(close::VERSION_MISMATCH, reason.to_string()))
        }
    }
}

/// A later minor may offer what we do not know; it is not granted, and no reason to turn the machine away.
fn without_unknown_names(payload: &RawValue) -> Result<Box<RawValue>, Rejected> {
    let bad = |_| Rejected::new(close::BAD_HELLO, "bad HELLO");
    let mut fields: Map<String, Value> = serde_json::from_str(payload.get()).map_err(bad)?;
    let mut keep = |key: &str, known: fn(&str) -> bool| {
        if let Some(Value::Array(names)) = fields.get_mut(key) {
            names.retain(|name| name.as_str().is_none_or(known));
        }
    };
    keep("capabilities", |name| Capability::named(name).is_some());
    keep("computer_use_features_coarse", |name| protocol::Coarse::named(name).is_some());
    to_raw_value(&fields).map_err(bad)
}

/// A close reason has 123 bytes at most.
fn short(text: &str) -> String {
    text.char_indices()
        .take_while(|(at, c)| at + c.len_utf8() <= close::MAX_REASON_BYTES)
        .map(|(_, c)| c)
        .collect()
}

/// What control needs of a greeting.
pub(crate) fn check_control(hello: &Hello) -> Result<(), Rejected> {
    if !hello.capabilities.contains(&Capability::DirectoryBrowse) {
        return Err(Rejected::new(close::BAD_HELLO, "control must offer directory_browse"));
    }
    if hello.allowed_root.is_some() {
        return Err(Rejected::new(close::BAD_HELLO, "control has no allowed_root"));
    }
    Ok(())
}

/// What a session's data connection needs of a greeting: the machine and the folder that were bound.
pub(crate) fn check_data(hello: &Hello, binding: &Binding) -> Result<(), Rejected> {
    if hello.machine_id != binding.machine_id {
        return Err(Rejected::new(close::OWNED_ELSEWHERE, "another machine owns this session"));
    }
    if hello.allowed_root.as_ref() != Some(&binding.allowed_root) {
        return Err(Rejected::new(close::FORBIDDEN, "allowed_root is not the folder of this session"));
    }
    Ok(())
}

/// What is let through: all that is offered, but folder browsing on control only.
pub(crate) fn grant(hello: &Hello, session: Option<&str>) -> Vec<Capability> {
    let on_this = |c: &Capability| session.is_none() || *c != Capability::DirectoryBrowse;
    let mut granted: Vec<_> = hello.capabilities.iter().copied().filter(on_this).collect();
    granted.sort_unstable();
    granted.dedup();
    granted
}

/// The HELLO_ACK frame.
pub(crate) fn acknowledge(
    id: &str,
    session: Option<&str>,
    connection_id: &str,
    granted: &[Capability],
    limits: Limits,
) -> Result<String, serde_json::Error> {
    let ack = HelloAck {
        session_id: session.map(str::to_owned),
        connection_id: Some(connection_id.to_owned()),
        protocol_version: PROTOCOL_VERSION,
        granted_capabilities: granted.iter().map(|c| c.as_str().to_owned()).collect(),
        max_file_size_bytes: i64::try_from(limits.max_file_size_bytes).unwrap_or(i64::MAX),
        command_timeout_seconds: limits.command_timeout_seconds,
        max_concurrent: i64::from(limits.max_concurrent),
    };
    encode(MessageType::HelloAck, id, None, &ack)
}
