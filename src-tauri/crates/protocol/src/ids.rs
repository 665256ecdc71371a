//! Identifiers with a fixed alphabet. Holding one means that it has been checked.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A text that does not have the form of the identifier it should be.
#[derive(Debug, thiserror::Error)]
#[error("not a valid {what}: 1 to {max} characters of A-Z a-z 0-9 . _ : -, starting with a letter or digit")]
pub struct InvalidId {
    what: &'static str,
    max: usize,
}

fn check(text: &str, what: &'static str, max: usize) -> Result<(), InvalidId> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    let starts = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    if starts && text.len() <= max && text.bytes().all(allowed) {
        Ok(())
    } else {
        Err(InvalidId { what, max })
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The identifier as it stands on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                check(&text, $what, $max).map(|()| Self(text))
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// One chat on the platform, at most 256 characters.
    SessionId, "session id", 256
);
id!(
    /// One machine, for as long as its state folder lives; at most 128 characters.
    MachineId, "machine id", 128
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_outside_their_alphabet_or_length_are_refused() {
        for good in ["a", "7b0c", "A.b_c:d-e", &"x".repeat(256)] {
            assert!(good.parse::<SessionId>().is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "a/b", "a b", "ä", "a\n", &"x".repeat(257)] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad:?}");
        }
        assert!("x".repeat(129).parse::<MachineId>().is_err());
    }
}
