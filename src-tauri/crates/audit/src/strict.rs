//! JSON that means one thing only.
//!
//! An HMAC over the canonical form says nothing of what that form drops. A second `"op"` in a line would be dropped
//! by one parser and shown by another, and the last digits of an integer beyond 2^53 are lost in a double: both are
//! refused, so that a line that verifies cannot be read in two ways.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses one value.
///
/// # Errors
/// What makes it no JSON, or ambiguous.
pub(crate) fn parse(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice::<Unambiguous>(text).map(|value| value.0).map_err(|error| error.to_string())
}

struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Unambiguously).map(Self)
    }
}

struct Unambiguously;

/// The integer, if a double prints as the same digits.
fn exact<E: de::Error>(digits: &str, as_double: f64, number: Number) -> Result<Value, E> {
    let printed = serde_json_canonicalizer::to_string(&as_double).map_err(E::custom)?;
    if printed == digits {
        Ok(Value::Number(number))
    } else {
        Err(E::custom(format_args!("{digits} is beyond what a JSON number carries")))
    }
}

impl<'de> Visitor<'de> for Unambiguously {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        if value < 1 << 53 { Ok(value.into()) } else { exact(&value.to_string(), value as f64, value.into()) }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() < 1 << 53 {
            Ok(value.into())
        } else {
            exact(&value.to_string(), value as f64, value.into())
        }
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element::<Unambiguous>()? {
            array.push(item.0);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, value)) = members.next_entry::<String, Unambiguous>()? {
            if map.contains_key(&key) {
                return Err(de::Error::custom(format_args!("the key {key:?} stands twice")));
            }
            map.insert(key, value.0);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth() {
        assert!(parse(br#"{"op":"A","op":"B"}"#).is_err());
        assert!(parse(br#"{"a":[{"op":"A","\u006fp":"B"}]}"#).is_err());
        assert_eq!(parse(br#"{"a":{"op":1},"op":1}"#), Ok(json!({"a": {"op": 1}, "op": 1})));
    }

    #[test]
    fn an_integer_that_a_double_rounds_is_refused() {
        assert!(parse(b"9007199254740993").is_err());
        assert!(parse(b"-9007199254740993").is_err());
        assert!(parse(b"18446744073709551615").is_err());
        assert_eq!(parse(b"9007199254740991"), Ok(json!(9_007_199_254_740_991u64)));
        assert_eq!(parse(b"100000000000000000"), Ok(json!(100_000_000_000_000_000u64)));
    }
}
