//! Protocol versions: `major.minor`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The highest version that this crate speaks.
pub const PROTOCOL_VERSION: Version = Version { major: 1, minor: 1 };

/// A protocol version. Ordered by major, then minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Versions of another major cannot talk to each other.
    pub major: u32,
    /// A later minor only adds.
    pub minor: u32,
}

impl Version {
    /// The version that both sides speak: the same major and the smaller minor; `None` when the majors differ.
    #[must_use]
    pub fn common(self, other: Version) -> Option<Version> {
        (self.major == other.major).then(|| self.min(other))
    }
}

/// A version that is not of the form `major.minor`.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not a protocol version of the form 1.1")]
pub struct InvalidVersion(String);

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidVersion(text.chars().take(32).collect());
        let (major, minor) = text.split_once('.').ok_or_else(invalid)?;
        let number = |part: &str| {
            let plain = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| part.parse().ok()).flatten().ok_or_else(invalid)
        };
        Ok(Version { major: number(major)?, minor: number(minor)? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_version_is_the_smaller_minor_of_one_major() {
        let v = |text: &str| text.parse::<Version>().unwrap();
        assert_eq!(v("1.1").common(v("1.7")), Some(v("1.1")));
        assert_eq!(v("1.10").common(v("1.9")), Some(v("1.9")), "minors are numbers, not text");
        assert_eq!(v("1.1").common(v("2.1")), None);
    }

    #[test]
    fn a_version_that_is_not_two_numbers_is_refused() {
        for text in ["", "1", "1.", ".1", "1.1.1", "+1.1", "1.-1", "a.b", "99999999999.1"] {
            assert!(text.parse::<Version>().is_err(), "{text:?}");
        }
    }
}
