//! What a platform, or a person on stdin, gives as tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};
use vault::{Tokens, Vault};

use super::error::printable;
use super::{OAuthConfig, OAuthError};

/// Ten times the longest token seen; what is longer would not fit a request header.
const LONGEST_TOKEN: usize = 12 * 1024;
/// Stands for "the platform named no end" and caps what it names: such a token is refreshed when it is refused.
const LONGEST_LIFE: f64 = 10.0 * 365.0 * 86_400.0;

/// RFC 6749 section 5.1. Unknown keys are the platform's business.
#[derive(Deserialize)]
struct TokenResponse {
    #[serde(deserialize_with = "secret")]
    access_token: SecretString,
    token_type: Option<String>,
    expires_in: Option<f64>,
    #[serde(default, deserialize_with = "optional_secret")]
    refresh_token: Option<SecretString>,
}

fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<SecretString, D::Error> {
    String::deserialize(from).map(SecretString::from)
}

fn optional_secret<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SecretString>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(SecretString::from))
}

/// Seconds since the epoch.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Reads a token response that was asked for at `asked` (seconds since the epoch). The error says what is wrong
/// with it and quotes nothing.
pub(super) fn parse(body: &[u8], config: &OAuthConfig, asked: f64) -> Result<Tokens, String> {
    let response: TokenResponse = serde_json::from_slice(body)
        .map_err(|e| format!("not a token response ({:?} error)", e.classify()))?;
    if let Some(kind) = response.token_type.filter(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(format!("token type {}, not bearer", printable(&kind)));
    }
    check(&response.access_token, "access token")?;
    if let Some(refresh) = &response.refresh_token {
        check(refresh, "refresh token")?;
    }
    let life = response.expires_in.unwrap_or(LONGEST_LIFE);
    if !(0.0..=f64::MAX).contains(&life) {
        return Err("expires_in is negative".to_owned());
    }
    Ok(Tokens {
        access_token: response.access_token,
        refresh_token: response.refresh_token,
        expires_at: asked + life.min(LONGEST_LIFE),
        platform: config.platform().to_owned(),
        client_id: config.client_id().to_owned(),
    })
}

/// A token goes into a header as it is, so it must be visible ASCII.
fn check(token: &SecretString, what: &str) -> Result<(), String> {
    let token = token.expose_secret();
    if token.is_empty() || token.len() > LONGEST_TOKEN || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(format!("the {what} is empty, too long, or holds characters a token cannot have"));
    }
    Ok(())
}

/// Signs in with `{"access_token", "refresh_token"?, "expires_in"?}`, for machines without a browser. The tokens are
/// stored as they are; the first connection shows whether the platform takes them.
///
/// # Errors
/// [`OAuthError::BadToken`] says what is wrong with the text, without quoting it.
pub async fn login_with_token(config: &OAuthConfig, vault: &Vault, text: &str) -> Result<Tokens, OAuthError> {
    let tokens = parse(text.as_bytes(), config, now()).map_err(OAuthError::BadToken)?;
    store(vault, tokens.clone()).await?;
    Ok(tokens)
}

/// Stores a new sign-in, after a refresh of the old one that is under way somewhere has stored its own.
pub(super) async fn store(vault: &Vault, tokens: Tokens) -> Result<(), vault::VaultError> {
    blocking(vault, move |vault| {
        let _refresh = vault.lock_refresh()?;
        vault.store_tokens(&tokens)
    })
    .await
}

/// Runs a blocking call of the vault on a thread for such.
pub(super) async fn blocking<T: Send + 'static>(
    vault: &Vault,
    call: impl FnOnce(&Vault) -> Result<T, vault::VaultError> + Send + 'static,
) -> Result<T, vault::VaultError> {
    let vault = vault.clone();
    match tokio::task::spawn_blocking(move || call(&vault)).await {
        Ok(result) => result,
        // A blocking call is not cancelled; it panicked, or the runtime is being torn down.
        Err(e) => Err(vault::VaultError::Unavailable(e.to_string())),
    }
}
