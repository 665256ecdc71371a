//! One entry becomes one line.

use serde_json::{Map, Value};

use crate::canonical::{
    Limits, digest_prefix, write_float, write_object, write_text, write_unsigned, write_value,
};
use crate::entry::{Entry, Identity, Outcome};
use crate::key::{Hex, KeyedMac};

/// The longest line the log writes, newline included, in bytes. A permit sets this much space aside.
pub const MAX_RECORD: usize = 64 << 10;

/// Ids, operations and error codes are cut here: none of ours comes near, but the wire's may be anything.
const MAX_ID: usize = 256;

/// Tried in turn until the line fits. After these the details are replaced by their size and digest.
const LEVELS: [Limits; 3] = [
    Limits { text: 16 << 10, items: 1024, depth: 32 },
    Limits { text: 1 << 10, items: 64, depth: 16 },
    Limits { text: 64, items: 16, depth: 2 },
];

/// `"hmac":"` … `",`: what a line has that its HMAC does not cover.
const HMAC_OPEN: &[u8] = b"\"hmac\":\"";
const HMAC_CLOSE: &[u8] = b"\",";

/// What the log knows of the line to come.
pub(crate) struct Position<'a> {
    pub(crate) seq: u64,
    pub(crate) prev: Option<&'a Hex>,
    /// Seconds since 1970.
    pub(crate) ts: f64,
}

/// The identity as it stands in each line.
pub(crate) struct IdentityText {
    machine_id: Vec<u8>,
    shim_version: Vec<u8>,
}

impl IdentityText {
    pub(crate) fn new(identity: &Identity) -> Self {
        let quoted = |text: &str| {
            let mut out = Vec::new();
            write_text(&mut out, text, MAX_ID);
            out
        };
        Self { machine_id: quoted(&identity.machine_id), shim_version: quoted(&identity.shim_version) }
    }
}

/// Writes the entry's line, newline included, over `out`, and returns its HMAC. The line is canonical itself: the
/// record with `hmac` in its sorted place, which is right after `details`.
pub(crate) fn seal(
    out: &mut Vec<u8>,
    entry: &Entry,
    position: &Position<'_>,
    identity: &IdentityText,
    mac: &KeyedMac,
) -> Hex {
    let fits = LEVELS.iter().find_map(|&limits| {
        let hmac_at = write_line(out, entry, position, identity, limits);
        (out.len() <= MAX_RECORD).then_some(hmac_at)
    });
    let hmac_at = fits.unwrap_or_else(|| {
        // Ids and identity are bounded, so that this one fits.
        let bare = Entry {
            details: size_of(&entry.details),
            result: Outcome { extra: Map::new(), ..entry.result.clone() },
            ..entry.clone()
        };
        write_line(out, &bare, position, identity, LEVELS[2])
    });
    let resumes_at = hmac_at + HMAC_OPEN.len() + 64 + HMAC_CLOSE.len();
    let hmac = mac.hex_of(&[&out[..hmac_at], &out[resumes_at..out.len() - 1]]);
    out[hmac_at + HMAC_OPEN.len()..][..64].copy_from_slice(&hmac);
    hmac
}

/// Writes the line with room for its HMAC, and returns where `"hmac"` begins.
fn write_line(
    out: &mut Vec<u8>,
    entry: &Entry,
    position: &Position<'_>,
    identity: &IdentityText,
    limits: Limits,
) -> usize {
    out.clear();
    out.extend_from_slice(b"{\"details\":");
    write_object(out, &entry.details, limits);
    out.push(b',');
    let hmac_at = out.len();
    out.extend_from_slice(HMAC_OPEN);
    out.extend_from_slice(&[b'0'; 64]);
    out.extend_from_slice(HMAC_CLOSE);
    out.extend_from_slice(b"\"machine_id\":");
    out.extend_from_slice(&identity.machine_id);
    out.extend_from_slice(b",\"op\":");
    write_text(out, &entry.op, MAX_ID);
    out.extend_from_slice(b",\"prev_hmac\":");
    match position.prev {
        Some(prev) => {
            out.push(b'"');
            out.extend_from_slice(prev);
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"request_id\":");
    write_optional(out, entry.request_id.as_deref());
    out.extend_from_slice(b",\"result\":");
    write_outcome(out, &entry.result, limits);
    out.extend_from_slice(b",\"seq\":");
    write_unsigned(out, position.seq);
    out.extend_from_slice(b",\"session_id\":");
    write_optional(out, entry.session_id.as_deref());
    out.extend_from_slice(b",\"shim_version\":");
    out.extend_from_slice(&identity.shim_version);
    out.extend_from_slice(b",\"ts\":");
    write_float(out, position.ts);
    out.extend_from_slice(b"}\n");
    hmac_at
}

fn write_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => write_text(out, text, MAX_ID),
        None => out.extend_from_slice(b"null"),
    }
}

fn write_outcome(out: &mut Vec<u8>, outcome: &Outcome, limits: Limits) {
    if !outcome.extra.is_empty() {
        let mut whole = outcome.extra.clone();
        whole.insert("ok".to_owned(), outcome.ok.into());
        whole.insert("exit_code".to_owned(), outcome.exit_code.into());
        whole.insert("duration_ms".to_owned(), outcome.duration_ms.into());
        whole.insert("error_code".to_owned(), outcome.error_code.clone().into());
        return write_object(out, &whole, limits);
    }
    out.extend_from_slice(b"{\"duration_ms\":");
    write_unsigned(out, outcome.duration_ms);
    out.extend_from_slice(b",\"error_code\":");
    write_optional(out, outcome.error_code.as_deref());
    out.extend_from_slice(b",\"exit_code\":");
    write_value(out, &outcome.exit_code.into(), limits);
    out.extend_from_slice(if outcome.ok { b",\"ok\":true}" } else { b",\"ok\":false}" });
}

/// Stands in for details that no cutting makes fit.
fn size_of(details: &Map<String, Value>) -> Map<String, Value> {
    let mut whole = Vec::new();
    write_object(&mut whole, details, Limits::NONE);
    let mut stand_in = Map::new();
    stand_in.insert("cut_bytes".to_owned(), whole.len().into());
    stand_in.insert("cut_sha256_prefix".to_owned(), digest_prefix(&whole).into());
    stand_in
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::AuditKey;
    use serde_json::json;

    fn sealed(entry: &Entry) -> Vec<u8> {
        let identity = Identity { machine_id: "m".into(), shim_version: "0.1.0".into() };
        let mut out = Vec::new();
        let position = Position { seq: 1, prev: None, ts: 1_712_345_678.123 };
        seal(&mut out, entry, &position, &IdentityText::new(&identity), &AuditKey::new([7; 32]).mac());
        out
    }

    fn with_details(details: Value) -> Entry {
        let Value::Object(details) = details else { panic!("details are an object") };
        Entry::event("EXECUTE_COMMAND", details)
    }

    #[test]
    fn a_line_is_canonical_with_its_hmac_in_it() {
        let mut entry = with_details(json!({"z": 1, "a": "ö\n", "n": null}));
        entry.result.extra.insert("output_truncated".into(), true.into());
        entry.result.extra.insert("ok".into(), "not this one".into());
        let line = sealed(&entry);
        let value: Value = serde_json::from_slice(&line).unwrap();
        let canonical = serde_json_canonicalizer::to_vec(&value).unwrap();
        assert_eq!(line.strip_suffix(b"\n").unwrap(), canonical);
        assert_eq!(value["result"]["ok"], true);
        assert_eq!(value["result"]["output_truncated"], true);
    }

    #[test]
    fn no_entry_makes_a_line_longer_than_the_limit() {
        let megabyte = "\u{1}".repeat(1 << 20);
        let wide: Vec<_> = (0..100_000).map(|n| n.to_string()).collect();
        let nested = (0..100).fold(json!(1), |inner, _| json!([inner]));
        let escaped: Map<_, _> =
            (0..1000).map(|n| (format!("{n}{}", "\u{2}".repeat(500)), json!("\u{3}".repeat(900)))).collect();
        for details in [
            json!({"command": megabyte}),
            json!({"argv": wide}),
            json!({"nested": nested}),
            json!({"argv": vec![vec![vec!["\u{1}".repeat(64); 16]; 16]; 16]}),
            Value::Object(escaped),
            json!({megabyte.clone(): 1}),
        ] {
            let mut entry = with_details(details.clone());
            entry.session_id = Some(megabyte.clone());
            entry.request_id = Some(megabyte.clone());
            entry.op = megabyte.clone().into();
            entry.result = Outcome::failure(megabyte.clone(), u64::MAX);
            if let Value::Object(map) = details {
                entry.result.extra = map;
            }
            let line = sealed(&entry);
            assert!(line.len() <= MAX_RECORD, "{} bytes", line.len());
            let value: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(serde_json_canonicalizer::to_vec(&value).unwrap(), line.strip_suffix(b"\n").unwrap());
        }
    }

    #[test]
    fn a_long_command_keeps_its_beginning_its_length_and_its_digest() {
        let command = "x".repeat(1 << 20);
        let line = sealed(&with_details(json!({"command": command})));
        let value: Value = serde_json::from_slice(&line).unwrap();
        let logged = value["details"]["command"].as_str().unwrap();
        let expected = format!("x…[cut: 1048576 bytes, sha256 {}]", digest_prefix(command.as_bytes()));
        assert!(logged.starts_with("xxx") && logged.ends_with(&expected), "{logged}");
    }
}
