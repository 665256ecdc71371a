//! A record that is remembered outside of the log's folder.

use std::fmt;
use std::str::FromStr;

use crate::head::Head;
use crate::key::{hex_string, parse_hex};

/// A record that is known to be on disk, to be kept where who can write the log's folder cannot write: with the key. As
/// long as the log is whole, that record is in it. Its text is `<seq> <hmac>`.
///
/// [`crate::AuditLog::anchor`] makes one; [`crate::Options::anchor`], [`crate::verify_all`] and
/// [`crate::verify_current`] take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor(pub(crate) Head);

/// The text is no anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a record's number and hmac")]
pub struct NotAnAnchor;

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.seq, hex_string(&self.0.hmac))
    }
}

impl FromStr for Anchor {
    type Err = NotAnAnchor;

    fn from_str(text: &str) -> Result<Self, NotAnAnchor> {
        let (seq, hmac) = text.split_once(' ').ok_or(NotAnAnchor)?;
        let seq = seq.parse().map_err(|_| NotAnAnchor)?;
        let hmac = parse_hex(hmac.as_bytes()).ok_or(NotAnAnchor)?;
        Ok(Self(Head { seq, hmac }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_its_text() {
        let text = format!("17 {}", "0a".repeat(32));
        assert_eq!(text.parse::<Anchor>().unwrap().to_string(), text);
        for wrong in ["", "17", "17 ", "x 00", &text[..20], &text.to_uppercase(), &format!("{text} ")] {
            assert_eq!(wrong.parse::<Anchor>(), Err(NotAnAnchor), "{wrong}");
        }
    }
}
