//! Passwords of local users: Argon2id, with the parameters beside the hash so that they can be raised later.

use argon2::{Algorithm, Argon2, Params, Version};

use crate::secret::Secret;

/// 19 MiB, two passes, one lane: OWASP's first choice for Argon2id.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// The longest password that is hashed, in bytes; a longer one only costs time.
pub(crate) const MAX_BYTES: usize = 1024;

/// A password as it is stored.
#[derive(Clone)]
pub(crate) struct PasswordHash {
    pub(crate) salt: Vec<u8>,
    pub(crate) hash: Vec<u8>,
    pub(crate) memory_kib: u32,
    pub(crate) passes: u32,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum PasswordError {
    #[error("a password has 1 to {MAX_BYTES} bytes")]
    Length,
    #[error("no random bytes from the operating system: {0}")]
    Random(#[from] getrandom::Error),
    #[error("the password could not be hashed: {0}")]
    Hash(argon2::Error),
}

/// Hashes a new password. Takes tens of milliseconds: call it on a blocking thread.
pub(crate) fn hash(password: &str) -> Result<PasswordHash, PasswordError> {
    if password.is_empty() || password.len() > MAX_BYTES {
        return Err(PasswordError::Length);
    }
    let mut salt = vec![0; 16];
    getrandom::fill(&mut salt)?;
    let hash = derive(password, &salt, MEMORY_KIB, PASSES)?;
    Ok(PasswordHash { salt, hash, memory_kib: MEMORY_KIB, passes: PASSES })
}

/// Whether a password is the stored one. With no stored one it takes as long, so that names cannot be probed.
pub(crate) fn verify(password: &str, stored: Option<&PasswordHash>) -> Result<bool, PasswordError> {
    if password.len() > MAX_BYTES {
        return Ok(false);
    }
    let Some(stored) = stored else {
        derive(password, &[0; 16], MEMORY_KIB, PASSES)?;
        return Ok(false);
    };
    let hash = derive(password, &stored.salt, stored.memory_kib, stored.passes)?;
    Ok(subtle::ConstantTimeEq::ct_eq(hash.as_slice(), stored.hash.as_slice()).into())
}

fn derive(password: &str, salt: &[u8], memory_kib: u32, passes: u32) -> Result<Vec<u8>, PasswordError> {
    let params = Params::new(memory_kib, passes, LANES, Some(32)).map_err(PasswordError::Hash)?;
    let mut out = vec![0; 32];
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon.hash_password_into(password.as_bytes(), salt, &mut out).map_err(PasswordError::Hash)?;
    Ok(out)
}

/// A password for a first user, shown once: 128 bits and more.
pub(crate) fn random() -> Result<String, getrandom::Error> {
    Secret::random("").map(|secret| secret.expose().chars().take(24).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_verifies_and_another_does_not() {
        let stored = hash("correct horse").unwrap();
        assert!(verify("correct horse", Some(&stored)).unwrap());
        assert!(!verify("correct horsf", Some(&stored)).unwrap());
        assert!(!verify("correct horse", None).unwrap());
    }

    #[test]
    fn passwords_out_of_bounds_are_refused() {
        assert!(matches!(hash(""), Err(PasswordError::Length)));
        assert!(matches!(hash(&"x".repeat(MAX_BYTES + 1)), Err(PasswordError::Length)));
    }
}
