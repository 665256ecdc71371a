//! The format of `vault.json`: a readable header and one sealed blob.
//!
//! Argon2id makes 64 bytes of the passphrase: the first half is the key of XChaCha20-Poly1305, the second half, kept
//! in the header, tells a wrong passphrase from a damaged file (it helps a guesser no more than the seal itself does).
//! The header is the seal's associated data, and a plain SHA-256 over header and blob finds accidents first.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::VaultError;
use crate::error::random;

const FORMAT: &str = "deskhand-vault";
const VERSION: u32 = 1;
const CIPHER: &str = "xchacha20poly1305";

/// The cost of trying one passphrase. Read from the file, so a later default opens an older vault.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

/// RFC 9106 section 4, the second recommended option (64 MiB, 3 passes, 4 lanes), for machines without 2 GiB to
/// spare; above every choice of the OWASP password storage cheat sheet. About a quarter of a second, once a start.
pub(crate) const COST: Cost = Cost { memory_kib: 64 * 1024, passes: 3, lanes: 4 };

impl Cost {
    /// What a file may ask for: at least OWASP's smallest memory (7 MiB), at most what a small machine survives.
    fn is_bounded(self) -> bool {
        (7 * 1024..=1024 * 1024).contains(&self.memory_kib)
            && (1..=32).contains(&self.passes)
            && (1..=16).contains(&self.lanes)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    kdf: Kdf,
    cipher: String,
    nonce: String,
    key_check: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kdf {
    algorithm: KdfAlgorithm,
    cost: Cost,
    salt: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KdfAlgorithm {
    Argon2id,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedFile {
    header: Header,
    data: String,
    sha256: String,
}

/// What the passphrase turns into under one salt and cost: kept for the life of the vault, so that a write does not
/// pay for it again.
pub(crate) struct Derived {
    salt: [u8; 16],
    cost: Cost,
    /// 32 bytes of key, 32 of check.
    output: Zeroizing<[u8; 64]>,
}

impl Derived {
    /// A key under a new salt.
    pub(crate) fn fresh(passphrase: &SecretString, cost: Cost) -> Result<Self, VaultError> {
        Self::derive(passphrase, random()?, cost)
    }

    fn derive(passphrase: &SecretString, salt: [u8; 16], cost: Cost) -> Result<Self, VaultError> {
        let refused = |e: argon2::Error| VaultError::Refused(format!("key derivation: {e}"));
        let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(64)).map_err(refused)?;
        let mut output = Zeroizing::new([0; 64]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.expose_secret().as_bytes(), &salt, &mut *output)
            .map_err(refused)?;
        Ok(Self { salt, cost, output })
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        let mut key = Zeroizing::new([0; 32]);
        key.copy_from_slice(&self.output[..32]);
        XChaCha20Poly1305::new((&*key).into())
    }

    fn check(&self) -> &[u8] {
        &self.output[32..]
    }
}

/// The text of a vault file that holds `plain`, under a new nonce.
pub(crate) fn seal(key: &Derived, plain: &[u8]) -> Result<Vec<u8>, VaultError> {
    let nonce: [u8; 24] = random()?;
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        kdf: Kdf { algorithm: KdfAlgorithm::Argon2id, cost: key.cost, salt: BASE64.encode(key.salt) },
        cipher: CIPHER.to_owned(),
        nonce: BASE64.encode(nonce),
        key_check: BASE64.encode(key.check()),
    };
    let refused = |why: String| VaultError::Refused(why);
    let aad = serde_json::to_vec(&header).map_err(|e| refused(e.to_string()))?;
    let data = key
        .cipher()
        .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: &aad })
        .map_err(|e| refused(e.to_string()))?;
    let sha256 = checksum(&aad, &data);
    let file = SealedFile { header, data: BASE64.encode(data), sha256 };
    serde_json::to_vec_pretty(&file).map_err(|e| refused(e.to_string()))
}

/// Why a vault file did not open; the caller knows its path.
pub(crate) enum OpenError {
    WrongPassphrase,
    Damaged(String),
    Other(VaultError),
}

/// What a vault file holds. `cached` is used where it fits the file and replaced where it does not.
pub(crate) fn open(
    text: &[u8],
    passphrase: &SecretString,
    cached: &mut Option<Derived>,
) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    let damaged = |why: &str| OpenError::Damaged(why.to_owned());
    let file: SealedFile = serde_json::from_slice(text).map_err(|e| OpenError::Damaged(e.to_string()))?;
    let header = &file.header;
    if header.format != FORMAT || header.version != VERSION || header.cipher != CIPHER {
        return Err(OpenError::Damaged(format!("{} version {}", header.format, header.version)));
    }
    let aad = serde_json::to_vec(header).map_err(|e| OpenError::Damaged(e.to_string()))?;
    let data = BASE64.decode(&file.data).map_err(|_| damaged("data"))?;
    if checksum(&aad, &data) != file.sha256 {
        return Err(damaged("checksum"));
    }
    if !header.kdf.cost.is_bounded() {
        return Err(damaged("its key derivation asks for more or less than this program does"));
    }
    let salt: [u8; 16] = decode(&header.kdf.salt).ok_or_else(|| damaged("salt"))?;
    let nonce: [u8; 24] = decode(&header.nonce).ok_or_else(|| damaged("nonce"))?;
    let check: [u8; 32] = decode(&header.key_check).ok_or_else(|| damaged("key check"))?;
    let derived = match cached.take() {
        Some(derived) if derived.salt == salt && derived.cost == header.kdf.cost => derived,
        Some(_) | None => Derived::derive(passphrase, salt, header.kdf.cost).map_err(OpenError::Other)?,
    };
    if derived.check() != check {
        return Err(OpenError::WrongPassphrase);
    }
    let plain = derived
        .cipher()
        .decrypt(&XNonce::from(nonce), Payload { msg: &data, aad: &aad })
        .map_err(|_| damaged("seal"))?;
    *cached = Some(derived);
    Ok(Zeroizing::new(plain))
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64.decode(text).ok()?.try_into().ok()
}

fn checksum(aad: &[u8], data: &[u8]) -> String {
    BASE64.encode(Sha256::new().chain_update(aad).chain_update(data).finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost { memory_kib: 7 * 1024, passes: 1, lanes: 1 };

    fn passphrase() -> SecretString {
        SecretString::from("correct horse")
    }

    fn sealed() -> serde_json::Value {
        let key = Derived::fresh(&passphrase(), CHEAP).unwrap();
        serde_json::from_slice(&seal(&key, b"content").unwrap()).unwrap()
    }

    /// Puts the plain checksum right again, as somebody would who changes the file on purpose.
    fn reseal_checksum(file: &mut serde_json::Value) {
        let header: Header = serde_json::from_value(file["header"].clone()).unwrap();
        let data = BASE64.decode(file["data"].as_str().unwrap()).unwrap();
        file["sha256"] = checksum(&serde_json::to_vec(&header).unwrap(), &data).into();
    }

    fn opened(file: &serde_json::Value) -> Result<Vec<u8>, OpenError> {
        open(&serde_json::to_vec(file).unwrap(), &passphrase(), &mut None).map(|plain| plain.to_vec())
    }

    #[test]
    fn what_was_sealed_opens() {
        assert!(matches!(opened(&sealed()), Ok(plain) if plain == b"content"));
    }

    #[test]
    fn a_wrong_passphrase_and_a_damaged_file_are_told_apart() {
        let text = serde_json::to_vec(&sealed()).unwrap();
        let other = SecretString::from("wrong horse");
        assert!(matches!(open(&text, &other, &mut None), Err(OpenError::WrongPassphrase)));
        for cut in [0, 1, text.len() / 2, text.len() - 1] {
            assert!(matches!(open(&text[..cut], &passphrase(), &mut None), Err(OpenError::Damaged(_))));
        }
    }

    #[test]
    fn one_changed_character_anywhere_is_found() {
        let text = serde_json::to_vec(&sealed()).unwrap();
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(
                matches!(open(&changed, &passphrase(), &mut None), Err(OpenError::Damaged(_))),
                "{at} of {}",
                String::from_utf8_lossy(&text)
            );
        }
    }

    #[test]
    fn a_change_made_on_purpose_does_not_open_even_with_the_checksum_put_right() {
        let (mut data, mut nonce) = (sealed(), sealed());
        data["data"] = BASE64.encode(b"another blob of data, with a tag").into();
        nonce["header"]["nonce"] = BASE64.encode([7; 24]).into();
        for mut file in [data, nonce] {
            reseal_checksum(&mut file);
            assert!(matches!(opened(&file), Err(OpenError::Damaged(why)) if why == "seal"));
        }
        let mut cost = sealed();
        cost["header"]["kdf"]["cost"]["passes"] = 2.into();
        reseal_checksum(&mut cost);
        assert!(matches!(opened(&cost), Err(OpenError::WrongPassphrase)));
    }

    #[test]
    fn a_cost_out_of_bounds_is_refused_before_it_is_paid() {
        for (key, value) in [
            ("memory_kib", u32::MAX),
            ("memory_kib", 8),
            ("passes", u32::MAX),
            ("passes", 0),
            ("lanes", 1 << 20),
            ("lanes", 0),
        ] {
            let mut file = sealed();
            file["header"]["kdf"]["cost"][key] = value.into();
            reseal_checksum(&mut file);
            assert!(matches!(opened(&file), Err(OpenError::Damaged(why)) if why.contains("derivation")));
        }
    }

    #[test]
    fn a_key_is_derived_once_for_one_file() {
        let mut cached = None;
        let text = serde_json::to_vec(&sealed()).unwrap();
        open(&text, &passphrase(), &mut cached).unwrap_or_else(|_| panic!("opens"));
        let unused = SecretString::from("never looked at while the key is cached");
        assert!(open(&text, &unused, &mut cached).is_ok());
        let other = serde_json::to_vec(&sealed()).unwrap();
        assert!(matches!(open(&other, &unused, &mut cached), Err(OpenError::WrongPassphrase)));
    }
}
