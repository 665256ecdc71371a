//! What is asked for: the exact action, and how a person sees it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::capability::Capability;
use super::program::ProgramMatch;
use super::text::{MAX_TEXT, shortened, visible_line};

/// Most characters of a whole prompt, and most of its lines.
const MAX_PROMPT: usize = 2 * MAX_TEXT;
const MAX_LINES: usize = 100;

/// A request's payload in the one form that is compared: JSON, keys sorted, nothing between the tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Canonical(Vec<u8>);

impl Canonical {
    /// The canonical form of `payload`; an error when it has none in JSON.
    pub(super) fn of(payload: &impl Serialize) -> serde_json::Result<Self> {
        let mut bytes = Vec::new();
        write(&serde_json::to_value(payload)?, &mut bytes);
        Ok(Self(bytes))
    }
}

/// Sorts the keys itself: whether `serde_json`'s maps are sorted depends on what other crates switch on.
fn write(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            into.push(b'{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    into.push(b',');
                }
                into.extend_from_slice(Value::from(key.as_str()).to_string().as_bytes());
                into.push(b':');
                write(value, into);
            }
            into.push(b'}');
        }
        Value::Array(items) => {
            into.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    into.push(b',');
                }
                write(item, into);
            }
            into.push(b']');
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            into.extend_from_slice(plain.to_string().as_bytes());
        }
    }
}

/// One request that needs consent.
#[derive(Clone, Debug)]
pub struct Action<P> {
    /// The chat.
    pub session_id: String,
    /// The wire type, such as `EXECUTE_COMMAND`.
    pub request_type: String,
    /// Its class.
    pub capability: Capability,
    /// All of its payload: the very value that an approval gives back to be acted on. Its canonical form is made only when
    /// somebody has to be asked; of a file's content that takes longer than writing it.
    pub params: P,
    /// The session's canonical root.
    pub root: PathBuf,
    /// What a prompt shows.
    pub view: ActionView,
    /// For commands given as an argument list, which program it is.
    pub program: ProgramMatch,
}

impl<P: Serialize> Action<P> {
    /// What tells it from every other action.
    pub(super) fn digest(&self) -> serde_json::Result<Digest> {
        Ok(Digest::of(&self.session_id, &self.request_type, &self.root, &Canonical::of(&self.params)?))
    }
}

/// SHA-256 over session, request type, root and payload, each with its length before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    pub(super) fn of(session_id: &str, request_type: &str, root: &Path, payload: &Canonical) -> Self {
        let mut hash = Sha256::new();
        for part in
            [session_id.as_bytes(), request_type.as_bytes(), root.as_os_str().as_encoded_bytes(), &payload.0]
        {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

/// An action in words. Foreign text may be handed in as it came: it is made visible and bounded here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionView {
    /// One sentence: `Run a command`.
    pub title: String,
    /// The details, such as the command, its folder, the text to be typed.
    pub lines: Vec<ViewLine>,
    /// Characters that [`ActionView::with`] left out, over all lines.
    pub left_out: usize,
}

/// One labelled text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ViewLine {
    /// What it is.
    pub label: String,
    /// It, in as many lines as it has.
    pub text: String,
}

impl ActionView {
    /// A view without details.
    pub fn new(title: &str) -> Self {
        Self { title: visible_line(title).chars().take(200).collect(), lines: Vec::new(), left_out: 0 }
    }

    /// Adds a detail. Of a long one the beginning and the end are shown and the count of what is not; the approval
    /// is of the whole payload, and so is the digest by which equal requests share a prompt.
    #[must_use]
    pub fn with(mut self, label: &str, text: &str) -> Self {
        let used: usize = self.lines.iter().map(|line| line.text.len()).sum();
        let room =
            if self.lines.len() < MAX_LINES { MAX_PROMPT.saturating_sub(used).min(MAX_TEXT) } else { 0 };
        let (text, left_out) = shortened(text, room);
        if self.lines.len() <= MAX_LINES {
            let label = visible_line(label).chars().take(200).collect();
            self.lines.push(ViewLine { label, text });
        }
        self.left_out += left_out;
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_canonical_form_does_not_depend_on_the_order_of_keys() {
        let one: Value =
            serde_json::from_str(r#"{ "b": [1, {"y": null, "x": "é\"\n"}], "a": 1.5 }"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"a":1.5,"b":[1,{"x":"é\"\n","y":null}]}"#).unwrap();
        assert_eq!(Canonical::of(&one).unwrap(), Canonical::of(&other).unwrap());
        assert_eq!(Canonical::of(&one).unwrap().0, r#"{"a":1.5,"b":[1,{"x":"é\"\n","y":null}]}"#.as_bytes());
    }

    #[test]
    fn whatever_differs_in_an_action_differs_in_its_digest() {
        let payload = |text: &str| Canonical::of(&json!({"command": text})).unwrap();
        let root = Path::new("/r");
        let digest = Digest::of("s", "T", root, &payload("ls"));
        assert_eq!(digest, Digest::of("s", "T", root, &payload("ls")));
        for other in [
            Digest::of("s2", "T", root, &payload("ls")),
            Digest::of("s", "U", root, &payload("ls")),
            Digest::of("s", "T", Path::new("/r2"), &payload("ls")),
            Digest::of("s", "T", root, &payload("ls ")),
            Digest::of("sT", "", root, &payload("ls")),
        ] {
            assert_ne!(digest, other);
        }
    }

    #[test]
    fn a_view_is_bounded_whatever_is_put_in() {
        let mut view = ActionView::new(&"t".repeat(5000)).with("Command", &"x".repeat(1_000_000));
        for n in 0..5000 {
            view = view.with(&format!("V{n}"), &"y".repeat(1000));
        }
        let size: usize = view.lines.iter().map(|line| line.text.len() + line.label.len()).sum();
        assert!(size < 50_000 && view.lines.len() <= MAX_LINES + 1, "{size} in {}", view.lines.len());
        assert!(view.left_out > 5_000_000);
        assert_eq!(view.title.len(), 200);
    }
}
