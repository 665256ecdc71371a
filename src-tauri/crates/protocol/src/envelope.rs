//! The envelope: `{"type", "id", "ts", "version", "pending_capacity"?, "payload"}`.
//!
//! A frame is parsed in two steps, so that one with a fault can still be answered: first the fields as they stand, then
//! each of them. The payload stays JSON until the request is admitted.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{MessageType, PROTOCOL_VERSION, Version};

/// The largest decoded message, both ways: 16 MiB.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// The largest HELLO; the platform closes 4400 above it.
pub const MAX_HELLO_BYTES: usize = 64 * 1024;

/// The longest id of a request that is served. It stands in every response, so it may not be of any length; a UUID has 36
/// bytes.
pub const MAX_ID_BYTES: usize = 4096;

/// The longest id under which a request is still told that its id is too long. Beyond it nobody is answered by name: such
/// answers could fill the memory.
pub const MAX_ANSWERED_ID_BYTES: usize = 64 * 1024;

/// A frame whose envelope is sound. The payload is not looked at yet.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The type as it stands; [`MessageType::named`] says whether we know it.
    pub kind: Cow<'a, str>,
    /// Not empty, at most [`MAX_ID_BYTES`].
    pub id: Cow<'a, str>,
    /// Seconds since the epoch.
    pub ts: Option<f64>,
    /// Absent, or one we cannot read, counts as the negotiated one.
    pub version: Option<Version>,
    /// What stood in `version` when it could not be read, shortened.
    pub unreadable_version: Option<String>,
    /// Free request slots after this frame.
    pub pending_capacity: Option<u32>,
    /// `{}` when absent or null.
    pub payload: &'a RawValue,
}

/// A frame that cannot be processed.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Nobody to answer: not a JSON object, or without a usable id.
    #[error("not a frame: {0}")]
    Unanswerable(String),
    /// The id is a text that no answer can carry, over [`MAX_ANSWERED_ID_BYTES`].
    #[error("field 'id' of the envelope: over {MAX_ID_BYTES} bytes")]
    EndlessId {
        /// How it begins, 64 characters.
        begins: String,
    },
    /// Somebody can be answered, and a field is not good.
    #[error("field '{field}' of the envelope: {problem}")]
    Malformed {
        /// Answer to this; not empty, at most [`MAX_ANSWERED_ID_BYTES`].
        id: String,
        /// The field at fault.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

#[derive(Deserialize)]
struct RawEnvelope<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    ts: Option<&'a RawValue>,
    #[serde(borrow)]
    version: Option<&'a RawValue>,
    #[serde(borrow)]
    pending_capacity: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str(raw.get()).ok().map(|Text(text)| text)
}

impl<'a> Frame<'a> {
    /// Parses a frame, of at most [`MAX_FRAME_BYTES`], which the socket has already enforced.
    ///
    /// # Errors
    ///
    /// [`FrameError`]: says whom to answer, and with which field.
    pub fn parse(bytes: &'a [u8]) -> Result<Frame<'a>, FrameError> {
        let raw: RawEnvelope<'a> =
            serde_json::from_slice(bytes).map_err(|e| FrameError::Unanswerable(e.to_string()))?;
        let id = raw.id.and_then(text).filter(|id| !id.is_empty());
        let id =
            id.ok_or_else(|| FrameError::Unanswerable("no 'id' that is a string with text".to_owned()))?;
        if id.len() > MAX_ANSWERED_ID_BYTES {
            return Err(FrameError::EndlessId { begins: id.chars().take(64).collect() });
        }
        let malformed = |field, problem: &str| FrameError::Malformed {
            id: id.clone().into_owned(),
            field,
            problem: problem.to_owned(),
        };
        if id.len() > MAX_ID_BYTES {
            return Err(malformed("id", &format!("over {MAX_ID_BYTES} bytes")));
        }
        let kind = raw.kind.and_then(text).ok_or_else(|| malformed("type", "must be a string"))?;
        let ts = match raw.ts.filter(not_null) {
            None => None,
            Some(ts) => {
                Some(serde_json::from_str(ts.get()).map_err(|_| malformed("ts", "must be a number"))?)
            }
        };
        let payload = raw.payload.filter(not_null).unwrap_or(empty());
        if !payload.get().starts_with('{') {
            return Err(malformed("payload", "must be an object"));
        }
        let stated = raw.version.filter(not_null);
        let version = stated.and_then(|v| serde_json::from_str(v.get()).ok());
        let unreadable_version = match (stated, version) {
            (Some(raw), None) => Some(raw.get().chars().take(40).collect()),
            (Some(_), Some(_)) | (None, _) => None,
        };
        let pending_capacity = raw.pending_capacity.and_then(|c| serde_json::from_str(c.get()).ok());
        Ok(Frame { kind, id, ts, version, unreadable_version, pending_capacity, payload })
    }

    /// The type, when it is one of the contract's.
    #[must_use]
    pub fn message_type(&self) -> Option<MessageType> {
        MessageType::named(&self.kind)
    }
}

fn not_null(raw: &&RawValue) -> bool {
    raw.get() != "null"
}

fn empty() -> &'static RawValue {
    #[expect(clippy::expect_used, reason = "a constant that is valid JSON")]
    serde_json::from_str("{}").expect("{} is JSON")
}

#[derive(Serialize)]
struct Outgoing<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    id: &'a str,
    ts: f64,
    version: Version,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_capacity: Option<u32>,
    payload: &'a T,
}

/// A frame of ours as text, with the time of now and [`PROTOCOL_VERSION`].
///
/// # Errors
///
/// When the payload cannot be written as JSON; for the payloads of this crate that does not happen.
pub fn encode<T: Serialize>(
    kind: MessageType,
    id: &str,
    pending_capacity: Option<u32>,
    payload: &T,
) -> Result<String, serde_json::Error> {
    encode_as(PROTOCOL_VERSION, kind.as_str(), id, pending_capacity, payload)
}

/// As [`encode`], of any version and type.
///
/// # Errors
///
/// As [`encode`].
pub fn encode_as<T: Serialize>(
    version: Version,
    kind: &str,
    id: &str,
    pending_capacity: Option<u32>,
    payload: &T,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Outgoing { kind, id, ts: now(), version, pending_capacity, payload })
}

/// A response as text whose `pending_capacity` is still open: how many slots are free is known only when it is sent, and by
/// then a payload of megabytes should not be written once more.
#[derive(Debug)]
pub struct Response {
    text: String,
    capacity_at: usize,
}

/// Room for any `u32`; JSON allows the blanks.
const CAPACITY_WIDTH: usize = 10;

impl Response {
    /// Writes the response to the request `id`.
    ///
    /// # Errors
    ///
    /// As [`encode`].
    pub fn encode<T: Serialize>(
        kind: MessageType,
        id: &str,
        payload: &T,
    ) -> Result<Response, serde_json::Error> {
        Self::encode_sized(kind, id, payload, 0)
    }

    /// As [`Response::encode`], for a payload that will have about so many bytes: a text of megabytes that grows leaves behind
    /// what it has outgrown.
    ///
    /// # Errors
    ///
    /// As [`encode`].
    pub fn encode_sized<T: Serialize>(
        kind: MessageType,
        id: &str,
        payload: &T,
        payload_bytes: usize,
    ) -> Result<Response, serde_json::Error> {
        let id = serde_json::to_string(id)?;
        let mut text = format!(
            r#"{{"type":"{kind}","id":{id},"ts":{ts},"version":"{PROTOCOL_VERSION}","pending_capacity":"#,
            ts = serde_json::to_string(&now())?,
        );
        let capacity_at = text.len();
        text.push_str(&" ".repeat(CAPACITY_WIDTH));
        text.push_str(r#","payload":"#);
        let mut bytes = text.into_bytes();
        bytes.reserve(payload_bytes);
        serde_json::to_writer(&mut bytes, payload)?;
        bytes.push(b'}');
        let text = String::from_utf8(bytes).map_err(serde::ser::Error::custom)?;
        Ok(Response { text, capacity_at })
    }

    /// Its size, which [`MAX_FRAME_BYTES`] limits.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a response is never empty")]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// The frame, with the free slots after it.
    #[must_use]
    pub fn with_capacity(mut self, free: u32) -> String {
        let digits = format!("{free:>CAPACITY_WIDTH$}");
        self.text.replace_range(self.capacity_at..self.capacity_at + CAPACITY_WIDTH, &digits);
        self.text
    }
}

/// Seconds since the epoch, with fractions.
#[must_use]
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// A fresh envelope id: UUID v4.
#[must_use]
pub fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Ack, ErrorCode, ErrorPayload};

    #[test]
    fn what_we_write_we_read() {
        let text = encode(MessageType::Ack, "a1", Some(3), &Ack::ok()).unwrap();
        let frame = Frame::parse(text.as_bytes()).unwrap();
        assert_eq!((frame.message_type(), &*frame.id), (Some(MessageType::Ack), "a1"));
        assert_eq!((frame.version, frame.pending_capacity), (Some(PROTOCOL_VERSION), Some(3)));
        assert_eq!(frame.payload.get(), r#"{"ok":true}"#);
    }

    #[test]
    fn a_response_takes_its_capacity_when_it_is_sent() {
        for free in [0, 3, u32::MAX] {
            let text = Response::encode(MessageType::Ack, "a\"ä", &Ack::ok()).unwrap().with_capacity(free);
            let frame = Frame::parse(text.as_bytes()).unwrap();
            assert_eq!((&*frame.kind, &*frame.id, frame.pending_capacity), ("ACK", "a\"ä", Some(free)));
            assert_eq!((frame.payload.get(), frame.version), (r#"{"ok":true}"#, Some(PROTOCOL_VERSION)));
        }
    }

    #[test]
    fn an_error_has_its_wire_form() {
        let error = ErrorPayload::new(ErrorCode::ShimOverloaded, "busy").with("max_concurrent", 4);
        insta::assert_json_snapshot!(error, @r#"
        {
          "code": "SHIM_OVERLOADED",
          "message": "busy",
          "fatal": false,
          "details": {
            "max_concurrent": 4
          }
        }
        "#);
    }

    #[test]
    fn real_platforms_leave_fields_out() {
        let frame = Frame::parse(br#"{"type":"PING","id":"x","target_machine":"m"}"#).unwrap();
        assert_eq!((frame.version, frame.ts, frame.payload.get()), (None, None, "{}"));
        assert!(frame.unreadable_version.is_none());
    }

    #[test]
    fn an_unreadable_version_is_kept_to_be_logged() {
        let frame = Frame::parse(br#"{"type":"PING","id":"x","version":7}"#).unwrap();
        assert_eq!((frame.version, frame.unreadable_version.as_deref()), (None, Some("7")));
    }

    #[test]
    fn a_fault_with_a_usable_id_can_be_answered() {
        for (json, at) in [
            (r#"{"id":"a"}"#, "type"),
            (r#"{"id":"a","type":7}"#, "type"),
            (r#"{"id":"a","type":"PING","ts":"now"}"#, "ts"),
            (r#"{"id":"a","type":"PING","payload":[]}"#, "payload"),
        ] {
            match Frame::parse(json.as_bytes()) {
                Err(FrameError::Malformed { id, field, .. }) => {
                    assert_eq!((&*id, field), ("a", at), "{json}")
                }
                other => panic!("{json}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_long_id_is_answered_as_far_as_an_answer_can_carry_it() {
        let parse = |length: usize| {
            let json = format!(r#"{{"type":"PING","id":"{}"}}"#, "x".repeat(length));
            Frame::parse(json.as_bytes()).map(drop)
        };
        assert!(parse(MAX_ID_BYTES).is_ok());
        for length in [MAX_ID_BYTES + 1, MAX_ANSWERED_ID_BYTES] {
            let error = parse(length).unwrap_err();
            assert!(matches!(&error, FrameError::Malformed { id, field: "id", .. } if id.len() == length));
        }
        let error = parse(MAX_ANSWERED_ID_BYTES + 1).unwrap_err();
        assert!(matches!(&error, FrameError::EndlessId { begins } if *begins == "x".repeat(64)), "{error}");
    }

    #[test]
    fn a_fault_without_one_is_unanswerable_and_not_fatal() {
        let deep = format!(r#"{{"id":{}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
        let bad: &[&[u8]] = &[
            b"",
            b"7",
            b"[]",
            b"{",
            b"{}",
            b"\xff\xfe",
            br#"{"type":"PING"}"#,
            br#"{"type":"PING","id":""}"#,
            br#"{"type":"PING","id":7}"#,
            br#"{"type":"PING","id":"a","id":"b"}"#,
            deep.as_bytes(),
        ];
        for bytes in bad {
            assert!(matches!(Frame::parse(bytes), Err(FrameError::Unanswerable(_))));
        }
    }

    #[test]
    fn deep_nesting_in_the_payload_leaves_the_envelope_readable() {
        let deep = format!(
            r#"{{"type":"X","id":"a","payload":{{"p":{}{}}}}}"#,
            "[".repeat(200_000),
            "]".repeat(200_000)
        );
        assert_eq!(Frame::parse(deep.as_bytes()).unwrap().id, "a");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            let _ = Frame::parse(&bytes);
        }

        #[test]
        fn any_id_and_type_survive_the_round_trip(kind in ".{1,20}", id in "[^\u{0}]{1,60}") {
            let text = encode_as(PROTOCOL_VERSION, &kind, &id, None, &Ack::ok()).unwrap();
            let frame = Frame::parse(text.as_bytes()).unwrap();
            prop_assert_eq!((&*frame.kind, &*frame.id), (&*kind, &*id));
        }

        #[test]
        fn json_of_any_shape_is_a_frame_or_an_error(
            id in prop_oneof![Just("\"a\""), Just("7"), Just("null"), Just("[]")],
            kind in prop_oneof![Just("\"PING\""), Just("{}"), Just("null")],
            payload in prop_oneof![Just("{}"), Just("null"), Just("[1]"), Just("\"x\"")],
        ) {
            let json = format!(r#"{{"id":{id},"type":{kind},"payload":{payload}}}"#);
            let good = id == "\"a\"" && kind == "\"PING\"" && (payload == "{}" || payload == "null");
            prop_assert_eq!(Frame::parse(json.as_bytes()).is_ok(), good);
        }
    }
}
