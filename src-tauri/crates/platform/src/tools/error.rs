//! Errors as an agent reads them: base names only, and what to do next.

use protocol::{BASE64_CEILING_BYTES, ErrorCode};
use serde::Serialize;
use serde_json::{Map, Value};

use super::paths::base_name;
use crate::relay::CallError;

/// A tool that did not do what was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ToolError {
    /// A code of the wire, or of this platform.
    pub(crate) code: String,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Map<String, Value>>,
}

impl ToolError {
    pub(crate) fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), details: None }
    }

    pub(crate) fn arguments(problem: impl Into<String>) -> Self {
        Self::new("INVALID_ARGUMENTS", problem)
    }

    pub(crate) fn not_granted(feature: &str) -> Self {
        let message = format!("the machine has '{feature}' switched off; it is switched on there, not here");
        Self::new(ErrorCode::CapabilityNotGranted.as_str(), message)
    }

    pub(crate) fn too_large() -> Self {
        let most = BASE64_CEILING_BYTES >> 20;
        Self::new(
            ErrorCode::FileTooLarge.as_str(),
            format!("more than {most} MiB at once; take a part of it"),
        )
    }

    /// A machine's refusal names paths as the caller gave them, and a faulty one may name others.
    pub(crate) fn of_call(error: CallError, root: &str) -> Self {
        let code = error.code().to_owned();
        let message = base_names_only(&error.to_string(), root);
        let details = match error {
            CallError::Refused(error) => error.details.map(|details| scrub_map(details, root)),
            CallError::Offline
            | CallError::NotSent
            | CallError::Unconfirmed { .. }
            | CallError::NoAnswer
            | CallError::Busy
            | CallError::TooLarge
            | CallError::NotGranted(_)
            | CallError::Misbehaved(_) => None,
        };
        Self { code, message, details }
    }
}

fn scrub_map(map: Map<String, Value>, root: &str) -> Map<String, Value> {
    map.into_iter().map(|(key, value)| (key, scrub(value, root))).collect()
}

fn scrub(value: Value, root: &str) -> Value {
    match value {
        Value::String(text) => Value::String(base_names_only(&text, root)),
        Value::Array(values) => values.into_iter().map(|value| scrub(value, root)).collect(),
        Value::Object(map) => Value::Object(scrub_map(map, root)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Every path in a text, cut to its last part. What is in quotes is one piece, spaces and all; elsewhere spaces divide.
fn base_names_only(text: &str, root: &str) -> String {
    // What is below the root is relative first, so that spaces in the root do not divide it.
    let text =
        ["/", "\\"].iter().fold(text.to_owned(), |text, end| text.replace(&format!("{root}{end}"), ""));
    let text = text.replace(root, base_name(root));
    let mut out = String::with_capacity(text.len());
    let mut piece = String::new();
    let mut quote: Option<char> = None;
    for c in text.chars() {
        let ends = match quote {
            Some(open) => c == open,
            None => c.is_whitespace() || matches!(c, '\'' | '"' | '`'),
        };
        if !ends {
            piece.push(c);
            continue;
        }
        out.push_str(cut(&piece));
        piece.clear();
        out.push(c);
        quote = match quote {
            Some(_) => None,
            None => (!c.is_whitespace()).then_some(c),
        };
    }
    // A quote that was never closed is an apostrophe; then spaces divide after all.
    let rest: Vec<_> = piece.split(' ').map(cut).collect();
    out.push_str(&rest.join(" "));
    out
}

fn cut(piece: &str) -> &str {
    if piece.contains('/') || piece.contains('\\') { base_name(piece) } else { piece }
}

#[cfg(test)]
mod tests {
    use protocol::ErrorPayload;

    use super::*;

    #[test]
    fn an_agent_sees_base_names_only() {
        let root = "/home/ann/my work";
        for (from, to) in [
            ("no file '/home/ann/my work/a b/c.txt' here", "no file 'c.txt' here"),
            ("cannot open /etc/shadow: denied", "cannot open shadow: denied"),
            ("don't touch /home/ann/my work/x now", "don't touch x now"),
            (r"no C:\Users\ann\x.txt", "no x.txt"),
            ("'src/main.rs' is a directory", "'main.rs' is a directory"),
            ("plain words", "plain words"),
        ] {
            assert_eq!(base_names_only(from, root), to);
        }
    }

    #[test]
    fn details_are_cut_too() {
        let payload = ErrorPayload::new(ErrorCode::PathNotFound, "x").with("at", "/secret/place/name");
        let error = ToolError::of_call(CallError::Refused(payload), "/r");
        assert_eq!(error.details.unwrap()["at"], "name");
    }
}
