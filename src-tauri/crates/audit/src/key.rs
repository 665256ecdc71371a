//! The key, and the one way HMACs are made with it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// An HMAC as it stands in a line: 64 lower-case hex digits.
pub(crate) type Hex = [u8; 64];

/// SHA-256's block, to which HMAC pads its key with zeros.
const BLOCK: usize = 64;

/// The audit key: 32 random bytes, kept in the keychain. Wiped when dropped; has no `Debug`.
pub struct AuditKey {
    bytes: Zeroizing<[u8; 32]>,
}

impl AuditKey {
    /// Takes the key. The caller wipes its own copy.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self { bytes: Zeroizing::new(bytes) }
    }

    /// A key for another purpose: HMAC-SHA256(key, label). Root grants use `autogpt-root-grant-v1`. No label is a JSON
    /// object, so none is ever the text of a record.
    #[must_use]
    pub fn derive(&self, label: &str) -> [u8; 32] {
        self.mac().of(&[label.as_bytes()])
    }

    /// The keyed state, computed once rather than for each record.
    pub(crate) fn mac(&self) -> KeyedMac {
        KeyedMac::new(&self.bytes)
    }
}

/// HMAC-SHA256 with the key already taken in.
#[derive(Clone)]
pub(crate) struct KeyedMac(Hmac<Sha256>);

impl KeyedMac {
    /// Keyed with 32 bytes.
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let mut block = [0u8; BLOCK];
        block[..key.len()].copy_from_slice(key);
        let mac = Hmac::<Sha256>::new(&block.into());
        block.zeroize();
        Self(mac)
    }

    /// The HMAC of the parts, one after the other.
    pub(crate) fn of(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// [`Self::of`] in hex.
    pub(crate) fn hex_of(&self, parts: &[&[u8]]) -> Hex {
        to_hex(&self.of(parts))
    }

    /// Whether `claimed` is the HMAC of the parts.
    pub(crate) fn matches(&self, parts: &[&[u8]], claimed: &Hex) -> bool {
        self.hex_of(parts).ct_eq(claimed).into()
    }
}

/// Lower-case hex.
pub(crate) fn to_hex(bytes: &[u8; 32]) -> Hex {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0u8; 64];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

/// The digits as a string.
pub(crate) fn hex_string(hex: &Hex) -> String {
    hex.iter().copied().map(char::from).collect()
}

/// Reads 64 lower-case hex digits.
pub(crate) fn parse_hex(text: &[u8]) -> Option<Hex> {
    let hex: Hex = text.try_into().ok()?;
    hex.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hmac_is_that_of_rfc_4231_case_2() {
        let short = {
            let mut key = [0u8; 32];
            key[..4].copy_from_slice(b"Jefe"); // HMAC pads with zeros, so a padded key is the same key
            KeyedMac::new(&key)
        };
        assert_eq!(
            hex_string(&short.hex_of(&[b"what do ya want ", b"for nothing?"])),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn a_derived_key_is_the_hmac_of_its_label() {
        let key = AuditKey::new(std::array::from_fn(|i| u8::try_from(i).unwrap()));
        assert_eq!(key.derive("a label"), key.mac().of(&[b"a label"]));
        assert_ne!(key.derive("a label"), key.derive("another"));
    }
}
