//! Root grants: what lets a platform restore a session on a folder that the person picked earlier, without being able to
//! name a folder itself. `v1.<b64url(claims)>.<b64url(hmac)>`, made and checked here only.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use protocol::{MachineId, SessionId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Label under which the grant key is derived from the audit key.
pub(crate) const KEY_LABEL: &str = "autogpt-root-grant-v1";

/// What a grant says. Fields in the order of their names: the JSON is sorted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    pub(crate) allowed_root: String,
    pub(crate) fingerprint: String,
    pub(crate) issued_at: f64,
    pub(crate) machine_id: String,
    pub(crate) revision: u64,
    pub(crate) session_id: String,
}

/// Why a grant does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GrantError {
    #[error("it is not of the form v1.claims.signature")]
    Form,
    #[error("its signature is not this machine's")]
    Signature,
    #[error("its claims are incomplete or mistyped")]
    Claims,
    #[error("it is for another machine")]
    OtherMachine,
    #[error("it is for another session")]
    OtherSession,
}

/// Signs and checks grants.
pub(crate) struct GrantKey([u8; 32]);

impl GrantKey {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    fn mac(&self, encoded_claims: &str) -> Hmac<Sha256> {
        #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes any key");
        mac.update(encoded_claims.as_bytes());
        mac
    }

    /// The grant for these claims.
    pub(crate) fn sign(&self, claims: &Claims) -> String {
        let encoded = URL_SAFE_NO_PAD.encode(ascii_json(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.mac(&encoded).finalize().into_bytes());
        format!("v1.{encoded}.{signature}")
    }

    /// The claims of a grant that this machine gave to this session. The signature is compared in constant time, before
    /// anything else is looked at.
    pub(crate) fn verify(
        &self,
        grant: &str,
        machine: &MachineId,
        session: &SessionId,
    ) -> Result<Claims, GrantError> {
        let mut parts = grant.split('.');
        let (Some("v1"), Some(encoded), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(GrantError::Form);
        };
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| GrantError::Form)?;
        self.mac(encoded).verify_slice(&signature).map_err(|_| GrantError::Signature)?;
        let json = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| GrantError::Form)?;
        let claims: Claims = serde_json::from_slice(&json).map_err(|_| GrantError::Claims)?;
        if claims.revision == 0 {
            return Err(GrantError::Claims);
        }
        if claims.machine_id != machine.as_str() {
            return Err(GrantError::OtherMachine);
        }
        if claims.session_id != session.as_str() {
            return Err(GrantError::OtherSession);
        }
        Ok(claims)
    }
}

/// Lowercase hex SHA-256 over device, inode and canonical path: says whether a folder is still the very same.
pub(crate) fn fingerprint(identity: jail::Identity, path: &str) -> String {
    #[derive(Serialize)]
    struct Input<'a> {
        device: u64,
        inode: u64,
        path: &'a str,
    }
    let input = Input { device: identity.device, inode: identity.inode, path };
    hex::encode(Sha256::digest(ascii_json(&input)))
}

/// Compact JSON with everything but printable ASCII as `\uXXXX`, which is part of the format.
fn ascii_json<T: Serialize>(value: &T) -> String {
    #[expect(clippy::expect_used, reason = "structs of strings and numbers, as above")]
    let json = serde_json::to_string(value).expect("plain structs are JSON");
    let mut ascii = String::with_capacity(json.len());
    for character in json.chars() {
        if matches!(character, ' '..='~') {
            ascii.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../../../../tests/vectors/root-grants.json")).unwrap()
    }

    fn key(vectors: &Value) -> GrantKey {
        let bytes = hex::decode(vectors["grant_key_hex"].as_str().unwrap()).unwrap();
        GrantKey::new(bytes.try_into().unwrap())
    }

    #[test]
    fn the_grant_of_the_vectors_is_written_and_read() {
        let v = vectors();
        let claims: Claims = serde_json::from_value(v["claims"].clone()).unwrap();
        let grant = v["grant"].as_str().unwrap();
        assert_eq!(key(&v).sign(&claims), grant);
        let machine = claims.machine_id.parse().unwrap();
        let session = claims.session_id.parse().unwrap();
        assert_eq!(key(&v).verify(grant, &machine, &session).unwrap(), claims);
    }

    #[test]
    fn no_invalid_grant_of_the_vectors_holds() {
        let v = vectors();
        let machine = v["claims"]["machine_id"].as_str().unwrap().parse().unwrap();
        let session = v["claims"]["session_id"].as_str().unwrap().parse().unwrap();
        for case in v["invalid"].as_array().unwrap() {
            let grant = case["grant"].as_str().unwrap();
            assert!(key(&v).verify(grant, &machine, &session).is_err(), "{}", case["why"]);
        }
    }

    #[test]
    fn fingerprints_of_the_vectors_come_out() {
        for case in vectors()["fingerprints"].as_array().unwrap() {
            let identity = jail::Identity {
                device: case["device"].as_u64().unwrap(),
                inode: case["inode"].as_u64().unwrap(),
            };
            assert_eq!(
                fingerprint(identity, case["path"].as_str().unwrap()),
                case["sha256"].as_str().unwrap()
            );
        }
    }

    #[test]
    fn characters_beyond_the_first_plane_are_written_as_two_units() {
        assert_eq!(ascii_json(&"é😀\u{7f}"), r#""\u00e9\ud83d\ude00\u007f""#);
    }
}
