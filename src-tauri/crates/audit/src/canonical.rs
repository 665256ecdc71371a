//! RFC 8785 (JCS) text straight into a buffer, within limits.
//!
//! `serde_json_canonicalizer` builds a tree of buffers per object, which costs more than the rest of a record. This
//! writer gives the same bytes for everything it writes whole (a property test compares the two); numbers with a
//! fraction go through the library.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// The first integer that a JSON number (an IEEE double) may not carry exactly.
const TWO_53: u64 = 1 << 53;

/// How much of a value is written.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of a string.
    pub(crate) text: usize,
    /// Items of an array, keys of an object.
    pub(crate) items: usize,
    /// Levels of arrays and objects.
    pub(crate) depth: usize,
}

impl Limits {
    /// Everything that serde_json itself parses.
    pub(crate) const NONE: Self = Self { text: usize::MAX, items: usize::MAX, depth: 128 };
}

/// Writes any value.
pub(crate) fn write_value(out: &mut Vec<u8>, value: &Value, limits: Limits) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_text(out, text, limits.text),
        Value::Array(items) => write_array(out, items, limits),
        Value::Object(map) => write_object(out, map, limits),
    }
}

/// Writes an object, its keys in the order of their UTF-16 code units.
pub(crate) fn write_object(out: &mut Vec<u8>, map: &Map<String, Value>, limits: Limits) {
    let Some(depth) = limits.depth.checked_sub(1) else {
        return write_string(out, "…[cut: nested too deep]");
    };
    if map.len() > limits.items || map.keys().any(|key| key.len() > limits.text) {
        return write_string(out, &format!("…[cut: object of {} keys]", map.len()));
    }
    let inner = Limits { depth, ..limits };
    out.push(b'{');
    let mut first = true;
    let mut write_member = |key: &str, value: &Value| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        write_string(out, key);
        out.push(b':');
        write_value(out, value, inner);
    };
    if map.keys().is_sorted_by(|a, b| cmp_utf16(a, b).is_lt()) {
        map.iter().for_each(|(key, value)| write_member(key, value));
    } else {
        let mut members: Vec<_> = map.iter().collect();
        members.sort_unstable_by(|(a, _), (b, _)| cmp_utf16(a, b));
        members.into_iter().for_each(|(key, value)| write_member(key, value));
    }
    out.push(b'}');
}

fn write_array(out: &mut Vec<u8>, items: &[Value], limits: Limits) {
    let Some(depth) = limits.depth.checked_sub(1) else {
        return write_string(out, "…[cut: nested too deep]");
    };
    out.push(b'[');
    for (index, item) in items.iter().take(limits.items).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_value(out, item, Limits { depth, ..limits });
    }
    if items.len() > limits.items {
        if limits.items > 0 {
            out.push(b',');
        }
        write_string(out, &format!("…[cut: {} items]", items.len()));
    }
    out.push(b']');
}

/// An integer below 2^53 as digits, one beyond as a string, anything else as JavaScript writes it.
fn write_number(out: &mut Vec<u8>, number: &Number) {
    if let Some(value) = number.as_u64() {
        write_unsigned(out, value);
    } else if let Some(value) = number.as_i64() {
        if value.unsigned_abs() < TWO_53 {
            out.push(b'-');
            write_digits(out, value.unsigned_abs());
        } else {
            write_string(out, &value.to_string());
        }
    } else {
        write_float(out, number.as_f64().unwrap_or_default());
    }
}

/// An unsigned integer; from 2^53 on as a string.
pub(crate) fn write_unsigned(out: &mut Vec<u8>, value: u64) {
    if value < TWO_53 {
        write_digits(out, value);
    } else {
        write_string(out, &value.to_string());
    }
}

fn write_digits(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// A finite double. A whole number of 2^53 and above is a string, like any integer of that size; JSON values hold no
/// other than finite ones, and should one appear it is `null`.
pub(crate) fn write_float(out: &mut Vec<u8>, value: f64) {
    let text = serde_json_canonicalizer::to_vec(&value).unwrap_or_else(|_| b"null".to_vec());
    let whole_and_large =
        value.abs() >= TWO_53 as f64 && text.iter().all(|&b| b == b'-' || b.is_ascii_digit());
    if whole_and_large {
        out.push(b'"');
    }
    out.extend_from_slice(&text);
    if whole_and_large {
        out.push(b'"');
    }
}

/// A string, cut after `limit` bytes.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str, limit: usize) {
    if text.len() <= limit {
        return write_string(out, text);
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (bytes, digest) = (text.len(), digest_prefix(text.as_bytes()));
    write_string(out, &format!("{}…[cut: {bytes} bytes, sha256 {digest}]", &text[..end]));
}

/// The first 16 hex digits of the SHA-256.
pub(crate) fn digest_prefix(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..8])
}

/// A whole string. RFC 8785 3.2.2.2: the short escapes, `\u00xx` for other control characters, all else as it is.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut plain_from = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[plain_from..index]);
        plain_from = index + 1;
        write_escape(out, byte);
    }
    out.extend_from_slice(&bytes[plain_from..]);
    out.push(b'"');
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        control => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(hex::encode([control]).as_bytes());
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// The order of UTF-16 code units, told from UTF-8: the two differ only where one string has a character beyond U+FFFF
/// (first byte F0 and up; surrogates, D800–DFFF) and the other one of U+E000–U+FFFF (first byte EE or EF).
pub(crate) fn cmp_utf16(a: &str, b: &str) -> Ordering {
    let differs = a.bytes().zip(b.bytes()).find(|(x, y)| x != y);
    match differs {
        None => a.len().cmp(&b.len()),
        Some((0xF0.., 0xEE | 0xEF)) => Ordering::Less,
        Some((0xEE | 0xEF, 0xF0..)) => Ordering::Greater,
        Some((x, y)) => x.cmp(&y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn canonical(value: &Value, limits: Limits) -> String {
        let mut out = Vec::new();
        write_value(&mut out, value, limits);
        String::from_utf8(out).unwrap()
    }

    /// Any JSON value; integers within what a number carries.
    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        let small = TWO_53 as i64 - 1;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-small..=small).prop_map(Value::from),
            any::<f64>()
                .prop_filter("finite, and no large whole number", |f| f.is_finite()
                    && (f.abs() < TWO_53 as f64 || f.abs() >= 1e21))
                .prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\\x00-\\x7f\u{fb33}\u{1f600}\u{e000}]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 8, |inner| {
            let key = prop_oneof![any::<String>(), "[\\x00-\\x7fö€\u{fb33}\u{1f600}\u{e000}\u{ffff}]{0,4}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_fast_writer_gives_the_bytes_of_the_library(value in any_value()) {
            prop_assert_eq!(
                canonical(&value, Limits::NONE),
                serde_json_canonicalizer::to_string(&value).unwrap()
            );
        }

        #[test]
        fn keys_are_ordered_by_utf16_code_units(a in any::<String>(), b in any::<String>()) {
            prop_assert_eq!(cmp_utf16(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }

        #[test]
        fn keys_around_the_surrogates_are_ordered_too(
            a in "[a\u{d7ff}\u{e000}\u{fb33}\u{ffff}\u{10000}\u{10ffff}]{0,4}",
            b in "[a\u{d7ff}\u{e000}\u{fb33}\u{ffff}\u{10000}\u{10ffff}]{0,4}",
        ) {
            prop_assert_eq!(cmp_utf16(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }
    }

    #[test]
    fn integers_beyond_2_to_the_53_are_strings() {
        let value = json!([
            9_007_199_254_740_991u64,
            9_007_199_254_740_992u64,
            u64::MAX,
            -9_007_199_254_740_991i64,
            i64::MIN,
            1e17,
            1e21
        ]);
        assert_eq!(
            canonical(&value, Limits::NONE),
            r#"[9007199254740991,"9007199254740992","18446744073709551615",-9007199254740991,"-9223372036854775808","100000000000000000",1e+21]"#
        );
    }

    #[test]
    fn what_is_too_long_says_how_long_it_was() {
        let limits = Limits { text: 4, items: 2, depth: 3 };
        assert_eq!(
            canonical(
                &json!({"a": "aöüß", "b": [1, 2, 3], "c": [[[1]]], "d": {"x": 1, "y": 2, "z": 3}}),
                Limits { items: 9, ..limits }
            ),
            format!(
                r#"{{"a":"aö…[cut: 7 bytes, sha256 {}]","b":[1,2,3],"c":[["…[cut: nested too deep]"]],"d":{{"x":1,"y":2,"z":3}}}}"#,
                digest_prefix("aöüß".as_bytes())
            )
        );
        assert_eq!(canonical(&json!([1, 2, 3]), limits), r#"[1,2,"…[cut: 3 items]"]"#);
        assert_eq!(canonical(&json!({"x": 1, "y": 2, "z": 3}), limits), r#""…[cut: object of 3 keys]""#);
    }
}
