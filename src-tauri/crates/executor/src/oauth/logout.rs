use vault::Vault;

use super::endpoint::{Endpoint, Failure};
use super::response::blocking;
use super::{OAuthConfig, OAuthError};

/// How a sign-out went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedOut {
    /// Both tokens are revoked and forgotten.
    Revoked,
    /// Forgotten here; the platform said it would not revoke them (it says why), so they end by themselves.
    Refused(String),
    /// There was nothing to sign out of.
    WasSignedOut,
}

/// Revokes both tokens at the platform they belong to, whatever `config` names now, and forgets them.
///
/// # Errors
/// [`OAuthError::NotRevoked`]: the platform could not be reached, and the tokens are kept so that it can be tried
/// again; the vault failed.
pub async fn log_out(config: &OAuthConfig, vault: &Vault) -> Result<LoggedOut, OAuthError> {
    // Held to the end: a refresh meanwhile would leave tokens that nobody revoked.
    let (_refresh, tokens) = blocking(vault, |vault| Ok((vault.lock_refresh()?, vault.tokens()?))).await?;
    let Some(tokens) = tokens else { return Ok(LoggedOut::WasSignedOut) };
    let endpoint = Endpoint::new(config.of_tokens(&tokens)?)?;
    let mut outcome = LoggedOut::Revoked;
    // The refresh token first: what it could still buy dies with it.
    let refresh = tokens.refresh_token.iter().map(|token| (token, "refresh_token"));
    for (token, kind) in refresh.chain([(&tokens.access_token, "access_token")]) {
        match endpoint.revoke(token, kind).await {
            Ok(()) => {}
            Err(Failure::Refused(refusal)) => outcome = LoggedOut::Refused(refusal.message),
            Err(Failure::Unreachable(why) | Failure::BadAnswer(why)) => {
                return Err(OAuthError::NotRevoked(why));
            }
        }
    }
    blocking(vault, Vault::clear_tokens).await?;
    Ok(outcome)
}
