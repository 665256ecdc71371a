//! Proof Key for Code Exchange (RFC 7636), and the `state` of an attempt.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::OAuthError;

/// What only this process knows of an attempt: 32 random bytes as 43 unreserved characters, the least the RFC allows
/// and 256 bits.
pub(super) struct Verifier(SecretString);

impl Verifier {
    pub(super) fn new() -> Result<Self, OAuthError> {
        random().map(Self)
    }

    pub(super) fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Its S256 challenge, which may be seen.
    pub(super) fn challenge(&self) -> String {
        challenge(self.0.expose_secret())
    }
}

/// Ties a callback to the attempt that asked for it.
pub(super) struct State(SecretString);

impl State {
    pub(super) fn new() -> Result<Self, OAuthError> {
        random().map(Self)
    }

    pub(super) fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    pub(super) fn is(&self, other: &str) -> bool {
        self.0.expose_secret().as_bytes().ct_eq(other.as_bytes()).into()
    }
}

fn random() -> Result<SecretString, OAuthError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|e| vault::VaultError::Random(e.to_string()))?;
    Ok(SecretString::from(URL_SAFE_NO_PAD.encode(bytes)))
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_the_rfcs() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/vectors/pkce.json");
        let vector: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let verifier = vector["code_verifier"].as_str().unwrap();
        assert_eq!(challenge(verifier), vector["code_challenge"].as_str().unwrap());
    }

    #[test]
    fn a_verifier_is_long_enough_unreserved_and_never_the_same() {
        let (one, two) = (Verifier::new().unwrap(), Verifier::new().unwrap());
        assert!((43..=128).contains(&one.expose().len()));
        assert!(one.expose().bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b)));
        assert_ne!(one.expose(), two.expose());
    }
}
