//! Proof Key for Code Exchange (RFC 7636), S256 only.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// Whether a verifier has 43 to 128 unreserved characters.
pub(crate) fn is_verifier(text: &str) -> bool {
    let unreserved = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
    (43..=128).contains(&text.len()) && text.bytes().all(unreserved)
}

/// Whether a challenge can be one of S256: 32 bytes in base64url.
pub(crate) fn is_challenge(text: &str) -> bool {
    URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == 32)
}

/// The challenge of a verifier.
pub(crate) fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_the_standard_holds() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/vectors/pkce.json");
        let vector: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let verifier = vector["code_verifier"].as_str().unwrap();
        assert_eq!(challenge(verifier), vector["code_challenge"].as_str().unwrap());
        assert!(is_verifier(verifier) && is_challenge(&challenge(verifier)));
    }

    #[test]
    fn verifiers_out_of_bounds_are_refused() {
        assert!(is_verifier(&"a".repeat(43)) && is_verifier(&"~".repeat(128)));
        for bad in ["a".repeat(42), "a".repeat(129), "a".repeat(42) + "+", "a".repeat(42) + "é"] {
            assert!(!is_verifier(&bad), "{bad}");
        }
        assert!(!is_challenge("plain") && !is_challenge(&"a".repeat(44)));
    }
}
