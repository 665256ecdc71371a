//! Checks one line: a fast way for lines as this crate writes them, a general one for any other.
//!
//! Fast: a line of ours is the canonical record with `"hmac":"…",` inserted right after `details`, so the HMAC is
//! over the line without those bytes, and nothing needs parsing. The general way parses, takes `hmac` out and
//! canonicalises with `serde_json_canonicalizer`.
//!
//! Why the fast way accepts nothing that the general one would not: HMACs are made over canonical records alone, so once
//! the HMAC agrees, the line without the inserted bytes *is* a canonical record. The scan of `details` reads that
//! record's own first bytes, which are valid JSON, so it finds the true end of the top-level `details`; there the
//! bytes stand, hence at the top level, and the line is that record plus its `hmac`. Whatever does not agree goes the
//! general way, which decides. A property test holds the two against each other.

use serde_json::Value;

use crate::key::{Hex, KeyedMac, hex_string, parse_hex};
use crate::report::Fault;
use crate::strict;

/// What the chain needs of a line whose HMAC agrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) seq: u64,
    pub(crate) hmac: Hex,
    pub(crate) prev: Option<Hex>,
    /// It is one of the log's records about itself (`LOG_…`).
    pub(crate) about_the_log: bool,
}

/// A line that does not count, with its `seq` if it has one.
pub(crate) type BadLine = (Option<u64>, Fault);

/// Checks a line (without its newline).
pub(crate) fn check(line: &[u8], mac: &KeyedMac) -> Result<Link, BadLine> {
    match check_fast(line, mac) {
        Some(link) => Ok(link),
        None => check_general(line, mac),
    }
}

/// `Some` if the line is one of ours and its HMAC agrees.
pub(crate) fn check_fast(line: &[u8], mac: &KeyedMac) -> Option<Link> {
    let mut scan = Scan { line, at: 0 };
    scan.take(b"{\"details\":")?;
    scan.object()?;
    scan.take(b",")?;
    let hmac_at = scan.at;
    scan.take(b"\"hmac\":\"")?;
    let hmac = scan.hex()?;
    scan.take(b"\",")?;
    let resumes_at = scan.at;
    scan.take(b"\"machine_id\":")?;
    scan.string()?;
    scan.take(b",\"op\":")?;
    let op = scan.string()?;
    scan.take(b",\"prev_hmac\":")?;
    let prev = match scan.take(b"null") {
        Some(()) => None,
        None => {
            scan.take(b"\"")?;
            let prev = scan.hex()?;
            scan.take(b"\"")?;
            Some(prev)
        }
    };
    scan.take(b",\"request_id\":")?;
    scan.string_or_null()?;
    scan.take(b",\"result\":")?;
    scan.object()?;
    scan.take(b",\"seq\":")?;
    let seq = scan.integer()?;
    scan.take(b",")?;
    let about_the_log = op.starts_with(b"LOG_");
    mac.matches(&[&line[..hmac_at], &line[resumes_at..]], &hmac).then_some(Link {
        seq,
        hmac,
        prev,
        about_the_log,
    })
}

/// Checks any line.
pub(crate) fn check_general(line: &[u8], mac: &KeyedMac) -> Result<Link, BadLine> {
    let not_a_record = |seq, reason: &str| (seq, Fault::NotARecord { reason: reason.to_owned() });
    let mut value = strict::parse(line).map_err(|reason| not_a_record(None, &reason))?;
    let seq = value.get("seq").and_then(Value::as_u64);
    let record = value.as_object_mut().ok_or_else(|| not_a_record(None, "not an object"))?;
    let hmac =
        record.remove("hmac").as_ref().and_then(Value::as_str).and_then(|text| parse_hex(text.as_bytes()));
    let hmac = hmac.ok_or_else(|| not_a_record(seq, "no hmac of 64 lower-case hex digits"))?;
    let prev = match record.get("prev_hmac") {
        Some(Value::Null) => None,
        Some(Value::String(text)) => Some(
            parse_hex(text.as_bytes())
                .ok_or_else(|| not_a_record(seq, "prev_hmac is not 64 lower-case hex digits"))?,
        ),
        _ => return Err(not_a_record(seq, "no prev_hmac")),
    };
    let op = record.get("op").and_then(Value::as_str).ok_or_else(|| not_a_record(seq, "no op"))?;
    let about_the_log = op.starts_with("LOG_");
    let number = seq.ok_or_else(|| not_a_record(None, "no seq"))?;
    let canonical =
        serde_json_canonicalizer::to_vec(&value).map_err(|error| not_a_record(seq, &error.to_string()))?;
    if !mac.matches(&[&canonical], &hmac) {
        return Err((seq, Fault::Tampered));
    }
    Ok(Link { seq: number, hmac, prev, about_the_log })
}

/// Whether `next` may follow `last` (`None`: it is the file's first), and if not, why.
pub(crate) fn check_succession(last: Option<&Link>, next: &Link) -> Result<(), Fault> {
    let Some(last) = last else {
        return if next.seq == 1 && next.prev.is_none() {
            Ok(())
        } else {
            Err(Fault::BadStart { seq: next.seq })
        };
    };
    if next.seq != last.seq.saturating_add(1) {
        return Err(Fault::SequenceGap { after: last.seq, found: next.seq });
    }
    if next.prev != Some(last.hmac) {
        return Err(Fault::ChainBreak {
            after: last.seq,
            found: next.seq,
            expected: hex_string(&last.hmac),
            names: next.prev.as_ref().map(hex_string),
        });
    }
    Ok(())
}

/// Steps over the parts of a line. On text that is not JSON it may step anywhere within the line, or give up.
struct Scan<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn take(&mut self, expected: &[u8]) -> Option<()> {
        self.line[self.at..].starts_with(expected).then(|| self.at += expected.len())
    }

    fn hex(&mut self) -> Option<Hex> {
        let hex = parse_hex(self.line.get(self.at..self.at + 64)?)?;
        self.at += 64;
        Some(hex)
    }

    /// Past a string, returning what is between its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b"\"")?;
        let from = self.at;
        loop {
            match self.line.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(&self.line[from..self.at - 1]);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    fn string_or_null(&mut self) -> Option<()> {
        self.take(b"null").or_else(|| self.string().map(|_| ()))
    }

    /// Past an object with everything in it.
    fn object(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.line.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' => depth += 1,
                b'}' if depth <= 1 => {
                    self.at += 1;
                    return (depth == 1).then_some(());
                }
                b'}' => depth -= 1,
                _ if depth == 0 => return None,
                _ => {}
            }
            self.at += 1;
        }
    }

    fn integer(&mut self) -> Option<u64> {
        let digits = self.line[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let text = std::str::from_utf8(&self.line[self.at..self.at + digits]).ok()?;
        self.at += digits;
        text.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Entry, Identity, Outcome};
    use crate::key::AuditKey;
    use crate::record::{IdentityText, Position, seal};
    use proptest::prelude::*;
    use serde_json::{Map, json};

    fn mac() -> KeyedMac {
        AuditKey::new([3; 32]).mac()
    }

    fn line_of(details: Map<String, Value>, extra: Map<String, Value>, id: Option<String>) -> Vec<u8> {
        let mut out = Vec::new();
        let identity = Identity { machine_id: "m\"\\}".into(), shim_version: "0".into() };
        let entry = Entry {
            session_id: id.clone(),
            request_id: id,
            op: "FILE_READ".into(),
            details,
            result: Outcome { extra, ..Outcome::failure("X", 3) },
        };
        let position = Position { seq: 8, prev: Some(&[b'a'; 64]), ts: 1.5 };
        seal(&mut out, &entry, &position, &IdentityText::new(&identity), &mac());
        out.pop();
        out
    }

    fn map() -> impl Strategy<Value = Map<String, Value>> {
        let leaf = prop_oneof![
            any::<String>().prop_map(Value::from),
            "[{}\\[\\]\",:\\\\hmac]{0,12}".prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(3, 24, 4, |inner| {
            prop::collection::btree_map("[a-z\"\\\\}{]{0,3}|hmac|machine_id", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        });
        prop::collection::btree_map("[a-z]{0,3}|hmac|machine_id", value, 0..4)
            .prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        #[test]
        fn both_ways_accept_every_line_we_write_alike(
            details in map(), extra in map(), id in any::<Option<String>>(),
        ) {
            let line = line_of(details, extra, id);
            let fast = check_fast(&line, &mac());
            prop_assert!(fast.is_some());
            prop_assert_eq!(Ok(fast.unwrap()), check_general(&line, &mac()));
        }

        #[test]
        fn what_the_fast_way_accepts_the_general_one_accepts(
            details in map(), extra in map(),
            from in any::<prop::sample::Index>(), len in 0usize..90, to in any::<prop::sample::Index>(),
            flip in any::<Option<(prop::sample::Index, u8)>>(),
        ) {
            // Moves any stretch of the line elsewhere, and may change a byte.
            let mut line = line_of(details, extra, None);
            let from = from.index(line.len());
            let moved: Vec<u8> = line.drain(from..(from + len).min(line.len())).collect();
            let to = to.index(line.len() + 1);
            line.splice(to..to, moved);
            if let Some((at, byte)) = flip {
                let at = at.index(line.len());
                line[at] = byte;
            }
            if let Some(link) = check_fast(&line, &mac()) {
                prop_assert_eq!(Ok(link), check_general(&line, &mac()));
            }
        }
    }

    #[test]
    fn an_hmac_moved_into_details_is_not_accepted() {
        let details = json!({"a": {}, "machine_id": "x", "o": {"p": {}}});
        let Value::Object(details) = details else { unreachable!() };
        let line = String::from_utf8(line_of(details.clone(), details, None)).unwrap();
        let at = line.find("\"hmac\"").unwrap();
        let (field, rest) = (line[at..at + 74].to_owned(), [&line[..at], &line[at + 74..]].concat());
        let mut accepted = 0;
        for to in (0..=rest.len()).filter(|&to| rest.is_char_boundary(to)) {
            let moved = [&rest[..to], &field, &rest[to..]].concat();
            if check(moved.as_bytes(), &mac()).is_ok() {
                accepted += 1;
                let value: Value = serde_json::from_str(&moved).unwrap();
                assert!(value.get("hmac").is_some(), "{moved}");
            }
        }
        // Before any of the ten other fields: the general way takes any order.
        assert_eq!(accepted, 10);
    }

    #[test]
    fn lines_that_are_no_records_say_why() {
        for (line, reason) in [
            ("", "EOF"),
            ("[]", "not an object"),
            ("{}", "no hmac"),
            (r#"{"hmac":1}"#, "no hmac"),
            ("{\"a\":1,\"a\":2}", "twice"),
        ] {
            let Err((_, Fault::NotARecord { reason: found })) = check(line.as_bytes(), &mac()) else {
                panic!("{line} passes")
            };
            assert!(found.contains(reason), "{line}: {found}");
        }
    }
}
