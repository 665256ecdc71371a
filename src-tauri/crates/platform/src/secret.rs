//! Tokens, codes and passwords: values that are shown once and never stored, printed or echoed.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// SHA-256 of a token. The tokens have 256 bits of entropy, so a plain hash cannot be searched.
pub(crate) type TokenHash = [u8; 32];

/// A fresh random value. No Debug, no Display, no Serialize: the one way out is [`Secret::expose`].
pub(crate) struct Secret(String);

impl Secret {
    /// A prefix that secret scanners can recognise, and 32 random bytes as base64url.
    pub(crate) fn random(prefix: &str) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes))))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_exposed(self) -> String {
        self.0
    }

    pub(crate) fn hash(&self) -> TokenHash {
        hash(&self.0)
    }
}

pub(crate) fn hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// Whether two texts are equal, in time that does not depend on where they differ.
pub(crate) fn same(a: &str, b: &str) -> bool {
    subtle::ConstantTimeEq::ct_eq(a.as_bytes(), b.as_bytes()).into()
}
