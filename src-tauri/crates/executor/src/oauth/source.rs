use std::sync::{Arc, Mutex, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;
use vault::{Tokens, Vault};

use super::endpoint::{Endpoint, Failure};
use super::error::printable;
use super::response::{blocking, now};
use super::{OAuthConfig, OAuthError, TokenError};

/// A token that ends within this many seconds is refreshed first: it has to outlive the request it is for.
const MARGIN: f64 = 60.0;
/// OAuth error code (RFC 6749 section 5.2) of a refresh token that is worth nothing any more.
const INVALID_GRANT: &str = "invalid_grant";

/// Hands out the access token of the stored sign-in, refreshing it when needed. Clones share everything. Must be used
/// within a Tokio runtime.
#[derive(Clone)]
pub struct TokenSource(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    vault: Vault,
    on_rotated: Box<dyn Fn() + Send + Sync>,
    /// Whose turn it is to refresh.
    turn: Arc<tokio::sync::Mutex<()>>,
    flights: Mutex<Flights>,
    /// Tokens that were bought but could not be stored; the store is tried again at every use.
    unsaved: Mutex<Option<Unsaved>>,
    cancel: Mutex<CancellationToken>,
}

/// What the refreshes so far came to.
#[derive(Default)]
struct Flights {
    ended: u64,
    last: Option<TokenError>,
}

#[derive(Clone)]
struct Unsaved {
    replaced: SecretString,
    tokens: Tokens,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn same(one: &SecretString, other: &SecretString) -> bool {
    one.expose_secret() == other.expose_secret()
}

/// An access token, and how long it holds.
#[derive(Clone)]
pub struct Access {
    /// The bearer token.
    pub token: SecretString,
    /// When it ends: seconds since the epoch.
    pub expires_at: f64,
    /// Whether there is a refresh token to get the next one with.
    pub renewable: bool,
}

impl From<Tokens> for Access {
    fn from(tokens: Tokens) -> Self {
        let renewable = tokens.refresh_token.is_some();
        Self { token: tokens.access_token, expires_at: tokens.expires_at, renewable }
    }
}

impl TokenSource {
    /// `on_rotated` is called once for each refresh that brought new tokens, for the audit log and the status.
    ///
    /// # Errors
    /// No HTTP client.
    pub fn new(
        config: &OAuthConfig,
        vault: &Vault,
        on_rotated: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, OAuthError> {
        Ok(Self(Arc::new(Inner {
            endpoint: Endpoint::new(config.clone())?,
            vault: vault.clone(),
            on_rotated: Box::new(on_rotated),
            turn: Arc::default(),
            flights: Mutex::default(),
            unsaved: Mutex::default(),
            cancel: Mutex::default(),
        })))
    }

    /// The access token, refreshed first when it ends within a minute. Read from the vault each time, so that a
    /// sign-in by another process counts at once.
    ///
    /// # Errors
    /// [`TokenError::SignedOut`]: no sign-in, one of another platform, or one that cannot be renewed.
    /// [`TokenError::Temporary`]: it has ended and the platform cannot be reached for a new one.
    pub async fn access_token(&self) -> Result<SecretString, TokenError> {
        self.access().await.map(|access| access.token)
    }

    /// [`TokenSource::access_token`], with its end.
    ///
    /// # Errors
    /// The same.
    pub async fn access(&self) -> Result<Access, TokenError> {
        let tokens = self.0.current().await?;
        let left = tokens.expires_at - now();
        if left > MARGIN {
            return Ok(tokens.into());
        }
        if tokens.refresh_token.is_none() {
            return if left > 0.0 { Ok(tokens.into()) } else { Err(no_refresh_token()) };
        }
        match self.refresh(&tokens.access_token).await {
            Err(TokenError::Temporary(_)) if left > 0.0 => Ok(tokens.into()),
            result => result.map(Access::from),
        }
    }

    /// A token other than `used`, which the platform just refused. When somebody else already replaced it, that one;
    /// else a new one. However many ask at once, here or in other processes, the platform is asked once, and all who
    /// waited get that answer.
    ///
    /// Dropping the future does not end a refresh under way, which would lose the new refresh token;
    /// [`TokenSource::abort`] does.
    ///
    /// # Errors
    /// [`TokenError::SignedOut`] when the platform refuses the refresh token; [`TokenError::Temporary`] when it
    /// cannot be reached or is in trouble.
    pub async fn refresh_after_401(&self, used: &SecretString) -> Result<SecretString, TokenError> {
        self.refresh(used).await.map(|tokens| tokens.access_token)
    }

    async fn refresh(&self, used: &SecretString) -> Result<Tokens, TokenError> {
        let seen = lock(&self.0.flights).ended;
        let (inner, used) = (Arc::clone(&self.0), used.clone());
        let refresh = tokio::spawn(async move {
            let _turn = Arc::clone(&inner.turn).lock_owned().await;
            if let Some(shared) = inner.failure_since(seen) {
                return Err(shared);
            }
            let result = inner.replace(&used).await;
            let mut flights = lock(&inner.flights);
            flights.ended += 1;
            flights.last = result.as_ref().err().cloned();
            result
        });
        refresh.await.unwrap_or_else(|e| Err(TokenError::Temporary(e.to_string())))
    }

    /// Ends the refresh under way and closes its socket, for the kill switch. If the platform had already rotated,
    /// the new tokens are lost and the user has to sign in again. Later calls work.
    pub fn abort(&self) {
        std::mem::take(&mut *lock(&self.0.cancel)).cancel();
    }
}

impl Inner {
    /// The failure of a refresh that began before and ended after `seen` was read.
    fn failure_since(&self, seen: u64) -> Option<TokenError> {
        let flights = lock(&self.flights);
        (flights.ended > seen).then(|| flights.last.clone()).flatten()
    }

    /// The sign-in, if it is this platform's.
    async fn current(&self) -> Result<Tokens, TokenError> {
        let stored = blocking(&self.vault, Vault::tokens).await;
        let unsaved = lock(&self.unsaved).clone();
        if let Some(Unsaved { replaced, tokens }) = unsaved {
            // A sign-in that came after ours counts for more; a vault that fails again does not make ours worse.
            let superseded = match &stored {
                Ok(Some(stored)) => !same(&stored.access_token, &replaced),
                Ok(None) => true,
                Err(_) => false,
            };
            if superseded {
                *lock(&self.unsaved) = None;
            } else {
                self.save(&replaced, &tokens).await;
                return Ok(tokens);
            }
        }
        let Some(tokens) = stored? else {
            return Err(TokenError::SignedOut("sign in with `deskhand login`".to_owned()));
        };
        let platform = self.endpoint.config().platform();
        if tokens.platform != platform {
            return Err(TokenError::SignedOut(elsewhere(&tokens.platform, platform)));
        }
        Ok(tokens)
    }

    /// Stores `tokens`, or keeps them in memory until it works.
    async fn save(&self, replaced: &SecretString, tokens: &Tokens) {
        let saving = tokens.clone();
        *lock(&self.unsaved) = match blocking(&self.vault, move |vault| vault.store_tokens(&saving)).await {
            Ok(()) => None,
            Err(e) => {
                tracing::warn!(error = %e, "the new tokens could not be stored and are kept in memory");
                Some(Unsaved { replaced: replaced.clone(), tokens: tokens.clone() })
            }
        };
    }

    async fn replace(&self, used: &SecretString) -> Result<Tokens, TokenError> {
        let other = |tokens: &Tokens| !same(&tokens.access_token, used);
        let tokens = self.current().await?;
        if other(&tokens) {
            return Ok(tokens);
        }
        // Another process may be refreshing: wait for it, then look again.
        let _refresh = blocking(&self.vault, Vault::lock_refresh).await?;
        let tokens = self.current().await?;
        if other(&tokens) {
            return Ok(tokens);
        }
        let refresh_token = tokens.refresh_token.as_ref().ok_or_else(no_refresh_token)?;
        let cancelled = lock(&self.cancel).clone();
        let bought = tokio::select! {
            () = cancelled.cancelled() => return Err(TokenError::Temporary("the refresh was aborted".to_owned())),
            bought = self.endpoint.refresh(refresh_token) => bought,
        };
        match bought {
            Ok(new) => {
                self.save(&tokens.access_token, &new).await;
                (self.on_rotated)();
                Ok(new)
            }
            Err(Failure::Refused(refusal)) => {
                if refusal.code.as_deref() == Some(INVALID_GRANT) {
                    // Worth nothing any more, by the platform's own word. Anything less is kept.
                    blocking(&self.vault, Vault::clear_tokens).await?;
                }
                Err(TokenError::SignedOut(format!("{}; sign in with `deskhand login`", refusal.message)))
            }
            Err(Failure::Unreachable(why) | Failure::BadAnswer(why)) => Err(TokenError::Temporary(why)),
        }
    }
}

/// What to say, and both ways out, when the stored sign-in is for another platform than the one that is `wanted`.
#[must_use]
pub fn elsewhere(stored: &str, wanted: &str) -> String {
    let stored = printable(stored);
    format!(
        "the stored sign-in is for {stored}, not {wanted}; to use {stored}, give `--platform-url {stored}` or set \
         `platform_url = \"{stored}\"` in config.toml; to use {wanted}, sign in there with `deskhand login`"
    )
}

fn no_refresh_token() -> TokenError {
    TokenError::SignedOut(
        "the access token has ended and there is none to renew it with; sign in with `deskhand login`"
            .to_owned(),
    )
}
