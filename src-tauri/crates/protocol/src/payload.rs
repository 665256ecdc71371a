//! From a payload's JSON to its struct, with what a caller must be told when it does not fit.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

/// A payload and the keys in it that we do not know: a platform may be newer than we are.
#[derive(Debug, PartialEq)]
pub struct Parsed<T> {
    /// The payload.
    pub value: T,
    /// Paths of the keys that were ignored.
    pub unknown_keys: Vec<String>,
}

/// A payload that is not what its message type asks for.
#[derive(Debug, thiserror::Error)]
#[error("field '{field}' of the payload: {problem}")]
pub struct PayloadError {
    /// Path of the field at fault; `.` is the payload itself.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Parses a payload.
///
/// # Errors
///
/// When a field is missing or mistyped; the error names it.
pub fn parse_payload<T: DeserializeOwned>(payload: &RawValue) -> Result<Parsed<T>, PayloadError> {
    parse_payload_text(payload.get())
}

/// As [`parse_payload`], from the text of a payload.
///
/// # Errors
///
/// As [`parse_payload`].
pub fn parse_payload_text<T: DeserializeOwned>(payload: &str) -> Result<Parsed<T>, PayloadError> {
    let mut unknown_keys = Vec::new();
    let mut json = serde_json::Deserializer::from_str(payload);
    match serde_ignored::deserialize(&mut json, |path| unknown_keys.push(path.to_string())) {
        Ok(value) => Ok(Parsed { value, unknown_keys }),
        Err(first) => Err(explain::<T>(payload, &first)),
    }
}

/// The same parse once more, slower, to learn which field it was.
fn explain<T: DeserializeOwned>(payload: &str, first: &serde_json::Error) -> PayloadError {
    let mut json = serde_json::Deserializer::from_str(payload);
    let (field, problem) = match serde_path_to_error::deserialize::<_, T>(&mut json) {
        Ok(_) => (".".to_owned(), first.to_string()),
        Err(error) => (error.path().to_string(), error.inner().to_string()),
    };
    // serde names a missing or doubled field in its message and gives its parent's path.
    let named = problem.split('`').nth(1).filter(|_| problem.contains(" field `"));
    let field = match (named, field.as_str()) {
        (Some(name), ".") => name.to_owned(),
        (Some(name), parent) if !parent.ends_with(name) => format!("{parent}.{name}"),
        _ => field,
    };
    PayloadError { field, problem: shorten(&problem) }
}

/// serde quotes the offending value; a caller's 16 MiB string must not come back as an error message.
fn shorten(problem: &str) -> String {
    const LONGEST: usize = 300;
    if problem.chars().count() <= LONGEST {
        return problem.to_owned();
    }
    problem.chars().take(LONGEST).chain("…".chars()).collect()
}

/// Reads `null` as the default: platforms write optional fields out.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Encoding, ExecuteCommand, FileList, FileRead, FileStat, FileWrite};

    fn parse<T: DeserializeOwned>(json: &str) -> Result<Parsed<T>, PayloadError> {
        parse_payload(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn defaults_stand_for_what_is_absent_or_null() {
        let absent = parse::<FileRead>(r#"{"path":"a"}"#).unwrap();
        let null =
            parse::<FileRead>(r#"{"path":"a","encoding":null,"format":null,"offset":null,"length":null}"#);
        assert_eq!(absent, null.unwrap());
        assert_eq!(absent.value.encoding, Encoding::Utf8);
        assert!(parse::<FileStat>(r#"{"path":"a","follow_symlinks":null}"#).unwrap().value.follow_symlinks);
        assert_eq!(parse::<FileList>(r#"{"path":"a"}"#).unwrap().value.max_entries, 1000);
        assert!(parse::<ExecuteCommand>(r#"{"command":"ls","env":null}"#).unwrap().value.env.is_empty());
    }

    #[test]
    fn unknown_keys_are_named_and_ignored() {
        let parsed = parse::<FileStat>(r#"{"path":"a","target_machine":"m","x":{"y":1}}"#).unwrap();
        assert_eq!(parsed.unknown_keys, ["target_machine", "x"]);
    }

    #[test]
    fn the_field_at_fault_is_named() {
        let field = |error: PayloadError| error.field;
        assert_eq!(field(parse::<FileWrite>(r#"{"path":"a"}"#).unwrap_err()), "content");
        assert_eq!(field(parse::<FileWrite>(r#"{"path":7,"content":""}"#).unwrap_err()), "path");
        assert_eq!(field(parse::<FileRead>(r#"{"path":"a","offset":-1}"#).unwrap_err()), "offset");
        assert_eq!(field(parse::<FileRead>(r#"{"path":"a","length":0}"#).unwrap_err()), "length");
        assert_eq!(field(parse::<FileRead>(r#"{"path":"a","encoding":"latin-1"}"#).unwrap_err()), "encoding");
        assert_eq!(field(parse::<FileRead>(r#"{"path":"a","path":"b"}"#).unwrap_err()), "path");
        assert_eq!(field(parse::<ExecuteCommand>(r#"{"env":{"A":1}}"#).unwrap_err()), "env.A");
        assert_eq!(field(parse::<FileStat>("7").unwrap_err()), ".");
    }

    #[test]
    fn a_huge_wrong_value_does_not_come_back_in_the_message() {
        let json = format!(r#"{{"path":"a","encoding":"{}"}}"#, "x".repeat(1 << 20));
        assert!(parse::<FileRead>(&json).unwrap_err().problem.len() < 2000);
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_an_overflow() {
        let json = format!(r#"{{"path":{}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
        assert!(parse::<FileStat>(&json).is_err());
    }
}
