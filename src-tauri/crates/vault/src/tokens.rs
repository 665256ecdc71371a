use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::{SecretBytes, VaultError};

/// One sign-in. It is a single item of the vault, so that a rotation replaces both tokens in one write.
#[derive(Clone)]
pub struct Tokens {
    /// The bearer token.
    pub access_token: SecretString,
    /// What a new access token is bought with; a platform may give none.
    pub refresh_token: Option<SecretString>,
    /// When the access token ends: seconds since the epoch.
    pub expires_at: f64,
    /// The HTTP base of the platform they belong to. They are never sent anywhere else.
    pub platform: String,
    /// The OAuth client they were given to.
    pub client_id: String,
}

/// The stored form. Private, so that nothing else can serialise a token.
#[derive(Serialize, Deserialize)]
struct Stored {
    access_token: String,
    refresh_token: Option<String>,
    expires_at: f64,
    platform: String,
    client_id: String,
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.access_token.zeroize();
        self.refresh_token.zeroize();
    }
}

impl Tokens {
    pub(crate) fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let stored = Stored {
            access_token: self.access_token.expose_secret().to_owned(),
            refresh_token: self.refresh_token.as_ref().map(|t| t.expose_secret().to_owned()),
            expires_at: self.expires_at,
            platform: self.platform.clone(),
            client_id: self.client_id.clone(),
        };
        // Roomy enough that the buffer never moves, which would leave a copy behind.
        let room = 6
            * (stored.access_token.len()
                + stored.refresh_token.as_ref().map_or(0, String::len)
                + stored.platform.len()
                + stored.client_id.len())
            + 256;
        let mut bytes = Zeroizing::new(Vec::with_capacity(room));
        serde_json::to_writer(&mut *bytes, &stored)
            .map_err(|e| VaultError::Refused(format!("tokens: {e}")))?;
        Ok(bytes)
    }

    pub(crate) fn from_bytes(bytes: &SecretBytes) -> Result<Self, VaultError> {
        // serde_json's message could quote the text, so it is not passed on.
        let mut stored: Stored = serde_json::from_slice(bytes.expose_secret())
            .map_err(|_| VaultError::damaged("the stored sign-in", "not what this program writes"))?;
        Ok(Self {
            access_token: SecretString::from(std::mem::take(&mut stored.access_token)),
            refresh_token: stored.refresh_token.take().map(SecretString::from),
            expires_at: stored.expires_at,
            platform: std::mem::take(&mut stored.platform),
            client_id: std::mem::take(&mut stored.client_id),
        })
    }
}
