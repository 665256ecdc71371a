use std::time::Duration;

use secrecy::SecretString;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use url::Url;
use vault::{Tokens, Vault};

use super::endpoint::{Endpoint, Failure};
use super::loopback::{self, Arrival, Page};
use super::pkce::{State, Verifier};
use super::{OAuthConfig, OAuthError, Redirect, callback, response};

/// How long a person has to sign in at the platform.
pub const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// How long the last page may take to be read.
const PAGE_PATIENCE: Duration = Duration::from_secs(2);
const DEEP_LINK: &str = "deskhand://oauth/callback";
/// An address is at most this long; a line of more is not one.
const LONGEST_ADDRESS: usize = 16 * 1024;

/// One sign-in under way. Dropping it ends it: the port is closed and nothing is stored.
pub struct Attempt {
    endpoint: Endpoint,
    verifier: Verifier,
    state: State,
    redirect: Url,
    authorize_url: Url,
    listener: Option<TcpListener>,
    arrivals: mpsc::Receiver<Arrival>,
    completion: Completion,
}

/// Hands an attempt the address the browser ended on: a deep link, or what a person pasted.
#[derive(Clone)]
pub struct Completion {
    redirect: Url,
    arrivals: mpsc::Sender<Arrival>,
}

/// Why an address did not complete an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCompleted {
    /// The attempt goes on.
    #[error("that is not the address this sign-in ends on")]
    NotACallback,
    /// It was over already.
    #[error("that sign-in is over: start again")]
    Over,
}

impl Completion {
    /// Only takes the address; [`Attempt::finish`] says how it went.
    ///
    /// # Errors
    /// [`NotCompleted`]. The content of the right address is judged by the attempt, which a wrong `state` ends.
    pub fn complete(&self, address: &str) -> Result<(), NotCompleted> {
        let address = address.trim();
        if address.len() > LONGEST_ADDRESS {
            return Err(NotCompleted::NotACallback);
        }
        // Some browsers copy an address without its scheme.
        let scheme = if address.starts_with("localhost:") { "http://" } else { "" };
        let url = Url::parse(&format!("{scheme}{address}")).map_err(|_| NotCompleted::NotACallback)?;
        if !callback::is_for(&url, &self.redirect) {
            return Err(NotCompleted::NotACallback);
        }
        // Full means that two are waiting, which ends the attempt anyway.
        self.arrivals.try_send(Arrival { address: url, page: None }).map_err(|_| NotCompleted::Over)
    }
}

impl Attempt {
    /// Takes a port, where the redirect is the loopback, and makes the address to open.
    ///
    /// # Errors
    /// All ports are taken; no HTTP client.
    pub async fn start(config: &OAuthConfig) -> Result<Self, OAuthError> {
        let endpoint = Endpoint::new(config.clone())?;
        let (listener, redirect) = match config.redirect() {
            Redirect::Loopback => {
                let (listener, redirect) = loopback::bind().await?;
                (Some(listener), redirect)
            }
            Redirect::DeepLink => {
                (None, Url::parse(DEEP_LINK).map_err(|_| OAuthError::BadBase(DEEP_LINK.to_owned()))?)
            }
        };
        let (verifier, state) = (Verifier::new()?, State::new()?);
        let mut authorize_url = config.endpoint("/auth/authorize")?;
        authorize_url
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", config.client_id())
            .append_pair("redirect_uri", redirect.as_str())
            .append_pair("scope", config.scope())
            .append_pair("code_challenge", &verifier.challenge())
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", state.expose());
        let (sender, arrivals) = mpsc::channel(2);
        let completion = Completion { redirect: redirect.clone(), arrivals: sender };
        Ok(Self { endpoint, verifier, state, redirect, authorize_url, listener, arrivals, completion })
    }

    /// The address to open in a browser.
    #[must_use]
    pub fn authorize_url(&self) -> &Url {
        &self.authorize_url
    }

    /// For an address that does not come in through the listener.
    #[must_use]
    pub fn completion(&self) -> Completion {
        self.completion.clone()
    }

    /// Waits for the browser, buys the tokens and stores them.
    ///
    /// # Errors
    /// Every variant of [`OAuthError`] that speaks of a callback, the platform or the vault. The sign-in that was
    /// stored before is then untouched.
    pub async fn finish(mut self, vault: &Vault) -> Result<Tokens, OAuthError> {
        let serving = match self.listener.take() {
            Some(listener) => {
                let arrivals = self.completion.arrivals.clone();
                Some(loopback::serve(listener, self.redirect.clone(), arrivals))
            }
            None => None,
        };
        tokio::select! {
            ended = self.settle(vault) => ended,
            broken = async { match serving {
                Some(serving) => serving.await,
                None => std::future::pending().await,
            }} => Err(broken),
        }
    }

    async fn settle(&mut self, vault: &Vault) -> Result<Tokens, OAuthError> {
        let arrival = match tokio::time::timeout(TIMEOUT, self.arrivals.recv()).await {
            Ok(Some(arrival)) => arrival,
            Ok(None) | Err(_) => return Err(OAuthError::TimedOut),
        };
        let result = match callback::code_of(&arrival.address, &self.state) {
            Ok(code) => self.buy(&code, vault).await,
            Err(e) => Err(e),
        };
        let text = match &result {
            Ok(_) => "You can close this page and go back to Deskhand.".to_owned(),
            Err(e) => capitalized(&e.to_string()),
        };
        if let Some(page) = arrival.page {
            deliver(page, result.is_ok(), text).await;
        }
        result
    }

    /// A second callback while the first is being settled means that somebody else has the code, or plays with us.
    /// The exchange is still waited for, so that what it brought can be revoked.
    async fn buy(&mut self, code: &SecretString, vault: &Vault) -> Result<Tokens, OAuthError> {
        let exchange = self.endpoint.exchange(code, self.redirect.as_str(), &self.verifier);
        tokio::pin!(exchange);
        let mut second = None;
        let bought = loop {
            tokio::select! {
                biased;
                Some(arrival) = self.arrivals.recv(), if second.is_none() => second = Some(arrival),
                bought = &mut exchange => break bought,
            }
        };
        match (bought, second) {
            (Ok(tokens), None) => {
                response::store(vault, tokens.clone()).await?;
                Ok(tokens)
            }
            (Err(failure), None) => Err(failure.into()),
            (bought, Some(second)) => {
                if let Ok(tokens) = bought {
                    self.throw_away(&tokens).await;
                }
                if let Some(page) = second.page {
                    let text = capitalized(&OAuthError::SecondCallback.to_string());
                    deliver(page, false, text).await;
                }
                Err(OAuthError::SecondCallback)
            }
        }
    }

    async fn throw_away(&self, tokens: &Tokens) {
        let refresh = tokens.refresh_token.iter().map(|token| (token, "refresh_token"));
        for (token, kind) in refresh.chain([(&tokens.access_token, "access_token")]) {
            match self.endpoint.revoke(token, kind).await {
                Ok(()) | Err(Failure::Refused(_)) => {}
                Err(Failure::Unreachable(why) | Failure::BadAnswer(why)) => {
                    tracing::warn!(%why, kind, "a token nobody will use could not be revoked");
                }
            }
        }
    }
}

/// Waits until the page is written, so that ending the attempt does not cut it off.
async fn deliver(page: oneshot::Sender<Page>, worked: bool, text: String) {
    let (written, seen) = oneshot::channel();
    if page.send(Page { worked, text, written }).is_ok() {
        // Also over when the connection is gone, or its browser reads nothing.
        let _ = tokio::time::timeout(PAGE_PATIENCE, seen).await;
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Signs in through a browser on this machine. `open_url` shows the address; whether it could is its business.
///
/// # Errors
/// As [`Attempt::start`] and [`Attempt::finish`].
pub async fn login(
    config: &OAuthConfig,
    vault: &Vault,
    open_url: impl Fn(&Url),
) -> Result<Tokens, OAuthError> {
    let attempt = Attempt::start(config).await?;
    open_url(attempt.authorize_url());
    attempt.finish(vault).await
}

/// Signs in through a browser anywhere: besides the listener, an address pasted into `input` completes it. A line
/// that is none is told to `not_it`, and the next is awaited.
///
/// # Errors
/// As [`login`].
pub async fn login_pasting(
    config: &OAuthConfig,
    vault: &Vault,
    show_url: impl Fn(&Url),
    input: impl AsyncBufRead + Unpin,
    not_it: impl Fn(NotCompleted),
) -> Result<Tokens, OAuthError> {
    let attempt = Attempt::start(config).await?;
    show_url(attempt.authorize_url());
    let completion = attempt.completion();
    let finishing = attempt.finish(vault);
    tokio::pin!(finishing);
    let mut lines = input.lines();
    loop {
        tokio::select! {
            ended = &mut finishing => return ended,
            line = lines.next_line() => match line {
                Ok(Some(line)) if line.trim().is_empty() => {}
                Ok(Some(line)) => match completion.complete(&line) {
                    Ok(()) => {}
                    Err(why) => not_it(why),
                },
                // Nothing more can be pasted; a browser on this machine still can come back.
                Ok(None) | Err(_) => return finishing.await,
            },
        }
    }
}
