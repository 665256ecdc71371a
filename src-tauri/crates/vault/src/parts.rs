//! Long values in a keychain whose items are short (Credential Manager: 2560 bytes, a JWT pair can be longer).
//!
//! A value that fits is stored as base64. A longer one is cut into parts, items of their own, and the item itself
//! becomes a list of them: writing that list is the one step that replaces the old value, so a reader sees the old or
//! the new one. Parts alternate between two sets, so that the old ones stay until then and leftovers are overwritten.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::VaultError;

/// No base64 text begins like this.
const LIST: &str = "parts:";

/// What an item's text says.
pub(crate) enum Text {
    Whole(Zeroizing<Vec<u8>>),
    Parts(Parts),
}

/// The list an item holds in place of a long value.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    set: char,
    count: usize,
    /// Of the joined text: finds parts of two writers mixed.
    digest: String,
}

impl Parts {
    /// The names of the items that hold the parts of `name`.
    pub(crate) fn names(&self, name: &str) -> impl Iterator<Item = String> {
        let (name, set) = (name.to_owned(), self.set);
        (0..self.count).map(move |index| format!("{name}.{set}{index}"))
    }

    pub(crate) fn join(&self, parts: &[Zeroizing<Vec<u8>>]) -> Option<Zeroizing<Vec<u8>>> {
        let mut text = Zeroizing::new(Vec::with_capacity(parts.iter().map(|part| part.len()).sum()));
        for part in parts {
            text.extend_from_slice(part);
        }
        (digest(&text) == self.digest).then(|| decode(&text)).flatten()
    }

    fn text(&self) -> String {
        format!("{LIST}{}:{}:{}", self.set, self.count, self.digest)
    }
}

/// The items to write for a value, the one that replaces the old value last.
pub(crate) fn split(
    name: &str,
    value: &[u8],
    longest: usize,
    old: Option<&Parts>,
) -> Vec<(String, Zeroizing<Vec<u8>>)> {
    let mut text = Zeroizing::new(vec![0; value.len().div_ceil(3) * 4]);
    // The buffer has base64's exact length, so encoding cannot fail.
    let length = BASE64.encode_slice(value, &mut text).unwrap_or_default();
    debug_assert_eq!(length, text.len());
    if text.len() <= longest {
        return vec![(name.to_owned(), text)];
    }
    let set = if old.is_some_and(|old| old.set == 'a') { 'b' } else { 'a' };
    let parts = Parts { set, count: text.len().div_ceil(longest), digest: digest(&text) };
    let mut items: Vec<_> = parts
        .names(name)
        .zip(text.chunks(longest))
        .map(|(name, chunk)| (name, Zeroizing::new(chunk.to_vec())))
        .collect();
    items.push((name.to_owned(), Zeroizing::new(parts.text().into_bytes())));
    items
}

/// Reads an item's text.
pub(crate) fn parse(name: &str, text: &[u8]) -> Result<Text, VaultError> {
    let damaged = || VaultError::damaged(format!("the keychain item {name}"), "not what this program writes");
    let Some(list) = text.strip_prefix(LIST.as_bytes()) else {
        return decode(text).map(Text::Whole).ok_or_else(damaged);
    };
    let list = std::str::from_utf8(list).map_err(|_| damaged())?;
    let mut fields = list.splitn(3, ':');
    let set = fields.next().and_then(|set| set.parse().ok());
    let count = fields.next().and_then(|count| count.parse().ok());
    match (set, count, fields.next()) {
        (Some(set @ ('a' | 'b')), Some(count @ 2..=256), Some(digest)) => {
            Ok(Text::Parts(Parts { set, count, digest: digest.to_owned() }))
        }
        (_, _, _) => Err(damaged()),
    }
}

fn decode(text: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    BASE64.decode(text).ok().map(Zeroizing::new)
}

fn digest(text: &[u8]) -> String {
    BASE64.encode(Sha256::digest(text))
}
