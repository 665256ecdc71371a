//! HELLO and its acknowledgement.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use protocol::{
    AckError, Connection, Frame, Hello, HelloAck, MAX_HELLO_BYTES, MessageType, Negotiated, check_ack, close,
    encode, new_id, parse_payload,
};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::dial::Socket;

/// How long the platform has to answer HELLO.
pub(crate) const ACK_TIMEOUT: Duration = Duration::from_secs(10);

/// A handshake that came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The platform closed, or the line broke.
    #[error("the connection ended during the greeting{}", describe(*code, reason))]
    Closed { code: Option<u16>, reason: String },
    #[error("the platform did not acknowledge the greeting within {} s", ACK_TIMEOUT.as_secs())]
    TimedOut,
    /// What came is not the acknowledgement. Closed with 4400, not retried.
    #[error("the platform's answer to the greeting breaks the contract: {0}")]
    NotAnAck(String),
    /// The acknowledgement breaks the contract. Closed with its code, not retried.
    #[error("{0}")]
    Refused(#[from] AckError),
    #[error("the greeting has {0} bytes, over the {MAX_HELLO_BYTES} that are allowed; shorten display_name")]
    HelloTooLong(usize),
}

pub(crate) fn describe(code: Option<u16>, reason: &str) -> String {
    match (code, reason) {
        (None, "") => String::new(),
        (None, reason) => format!(" ({reason})"),
        (Some(code), "") => format!(" ({code})"),
        (Some(code), reason) => format!(" ({code}: {reason})"),
    }
}

/// Greets, and checks the answer. On a refusal the socket is closed with the code of the contract.
pub(crate) async fn greet(
    socket: &mut Socket,
    hello: &Hello,
    connection: Connection<'_>,
) -> Result<Negotiated, HandshakeError> {
    let id = new_id();
    let text =
        encode(MessageType::Hello, &id, None, hello).map_err(|e| HandshakeError::NotAnAck(e.to_string()))?;
    if text.len() > MAX_HELLO_BYTES {
        return Err(HandshakeError::HelloTooLong(text.len()));
    }
    let lost = |reason: String| HandshakeError::Closed { code: None, reason };
    socket.send(Message::text(text)).await.map_err(|e| lost(e.to_string()))?;
    let result = match tokio::time::timeout(ACK_TIMEOUT, answer(socket, &id)).await {
        Ok(Ok(ack)) => check_ack(hello, ack, connection).map_err(HandshakeError::from),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(HandshakeError::TimedOut),
    };
    if let Err(error) = &result {
        let (code, reason) = match error {
            HandshakeError::TimedOut => (close::HELLO_TIMEOUT, "no HELLO_ACK".to_owned()),
            HandshakeError::NotAnAck(_) => (close::BAD_HELLO, "expected HELLO_ACK to this HELLO".to_owned()),
            HandshakeError::Refused(ack) => (ack.close_code(), ack.close_reason()),
            HandshakeError::Closed { .. } | HandshakeError::HelloTooLong(_) => return result,
        };
        close_with(socket, code, reason).await;
    }
    result
}

async fn answer(socket: &mut Socket, id: &str) -> Result<HelloAck, HandshakeError> {
    loop {
        let message = match socket.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(HandshakeError::Closed { code: None, reason: error.to_string() }),
            None => return Err(HandshakeError::Closed { code: None, reason: String::new() }),
        };
        let bytes = match message {
            Message::Text(text) => text.into(),
            Message::Binary(bytes) => bytes,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            Message::Close(frame) => {
                let (code, reason) = close_parts(frame);
                return Err(HandshakeError::Closed { code, reason });
            }
        };
        let frame = Frame::parse(&bytes).map_err(|e| HandshakeError::NotAnAck(e.to_string()))?;
        if frame.message_type() != Some(MessageType::HelloAck) {
            let kind: String = frame.kind.chars().take(64).collect();
            return Err(HandshakeError::NotAnAck(format!("it is a {kind}")));
        }
        if frame.id != id {
            return Err(HandshakeError::NotAnAck("it answers another HELLO".to_owned()));
        }
        let parsed = parse_payload::<HelloAck>(frame.payload);
        return parsed.map(|p| p.value).map_err(|e| HandshakeError::NotAnAck(e.to_string()));
    }
}

/// Code and reason of a close frame.
pub(crate) fn close_parts(frame: Option<CloseFrame>) -> (Option<u16>, String) {
    frame.map_or((None, String::new()), |f| {
        (Some(f.code.into()), f.reason.as_str().chars().take(200).collect())
    })
}

/// Sends a close frame; gives up after a second, since the peer may be gone.
pub(crate) async fn close_with(socket: &mut Socket, code: u16, reason: String) {
    let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
    let _ = tokio::time::timeout(Duration::from_secs(1), socket.close(Some(frame))).await;
}
