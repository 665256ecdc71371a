use std::sync::Arc;

use vault::VaultError;

/// Why a sign-in or sign-out did not come about. What was stored before is then still stored.
#[derive(Debug, thiserror::Error)]
pub enum OAuthError {
    /// The platform address cannot carry tokens.
    #[error("{0} cannot be signed in to: it must be https, or http on this machine")]
    BadBase(String),
    /// Every port of the redirect is taken.
    #[error("ports 41899–41910 are all taken on this machine: end a program that holds one")]
    NoPort,
    /// The local listener failed.
    #[error("the local listener for the browser failed: {0}")]
    Listener(std::io::Error),
    /// The callback had no `state`.
    #[error("the browser came back without the state of this sign-in: start again from here")]
    MissingState,
    /// The callback had the `state` of something else.
    #[error("the browser came back from another sign-in (its state differs): start again from here")]
    WrongState,
    /// The callback had neither a code nor an error, or one of them twice.
    #[error("the browser came back with an address that says nothing: start again from here")]
    BadCallback,
    /// The platform sent the browser back with `error=…`.
    #[error("the platform refused the sign-in: {0}")]
    Denied(String),
    /// A second callback arrived before the first was settled.
    #[error("the browser came back twice, so the sign-in was ended to be safe: start again")]
    SecondCallback,
    /// Nobody finished signing in within [`super::TIMEOUT`].
    #[error("nobody finished the sign-in within 5 minutes: start again")]
    TimedOut,
    /// The platform could not be reached or answered with trouble of its own.
    #[error("the platform could not be reached: {0}")]
    Unreachable(String),
    /// The platform answered that it will not.
    #[error("the platform refused: {0}")]
    Refused(String),
    /// The platform's answer made no sense.
    #[error("the platform's answer cannot be used: {0}")]
    BadAnswer(String),
    /// The text given to `--with-token` cannot be used.
    #[error("the token cannot be used: {0}")]
    BadToken(String),
    /// The platform could not be reached to revoke the tokens, so they are kept.
    #[error("still signed in: the platform could not be reached to revoke the tokens ({0}); try again later")]
    NotRevoked(String),
    /// The store of secrets failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Why there is no access token. Cloned to everybody who waited for the same refresh.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TokenError {
    /// Only signing in again helps.
    #[error("signed out: {0}")]
    SignedOut(String),
    /// Trying again later may help.
    #[error("no access token for now: {0}")]
    Temporary(String),
    /// The store of secrets failed.
    #[error("{0}")]
    Vault(Arc<VaultError>),
}

impl From<VaultError> for TokenError {
    fn from(error: VaultError) -> Self {
        Self::Vault(Arc::new(error))
    }
}

/// Text of another program, fit for a message: one line, no control or direction-changing characters, 200 at most.
pub(super) fn printable(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().map(|c| if hidden(c) { '·' } else { c }).take(200).collect()
}
