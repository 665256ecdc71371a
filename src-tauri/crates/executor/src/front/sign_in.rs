//! Signing in from the app: one attempt at a time, always to be cancelled.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Front;
use super::view::SignIn;
use crate::events::Command;
use crate::executor::oauth_config;
use crate::oauth::{self, Attempt, Completion, LoggedOut, OAuthConfig};

/// Where signing in stands, and the attempt that is under way.
pub(super) struct Door {
    state: Mutex<SignIn>,
    attempt: Mutex<Option<Running>>,
}

struct Running {
    stop: CancellationToken,
    completion: Completion,
    url: url::Url,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Door {
    pub(super) fn new(signed_in: bool) -> Self {
        let state = if signed_in { SignIn::SignedIn { account: None } } else { SignIn::SignedOut };
        Self { state: Mutex::new(state), attempt: Mutex::default() }
    }

    pub(super) fn state(&self) -> SignIn {
        lock(&self.state).clone()
    }

    /// The platform ended the sign-in. An attempt that is under way goes on.
    pub(super) fn signed_out(&self) {
        let mut state = lock(&self.state);
        if matches!(*state, SignIn::SignedIn { .. }) {
            *state = SignIn::SignedOut;
        }
    }
}

impl Front {
    /// Opens the browser. An attempt that is under way is given up for this one.
    pub(super) async fn sign_in(&self) -> Result<(), String> {
        self.sign_in_cancel();
        let attempt = Attempt::start(&self.oauth()?).await.map_err(|error| error.to_string())?;
        let (url, stop) = (attempt.authorize_url().clone(), CancellationToken::new());
        *lock(&self.shared.door.attempt) =
            Some(Running { stop: stop.clone(), completion: attempt.completion(), url: url.clone() });
        self.set_sign_in(SignIn::Waiting { url: url.to_string() });
        let front = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                finished = attempt.finish(&front.shared.vault) => {
                    if !stop.is_cancelled() {
                        lock(&front.shared.door.attempt).take();
                        front.signed_in(finished.map(|_| ()).map_err(|error| error.to_string())).await;
                    }
                }
            }
        });
        // The address can be copied and opened by hand.
        self.open(&url).await
    }

    pub(super) async fn sign_in_reopen(&self) -> Result<(), String> {
        let url = lock(&self.shared.door.attempt).as_ref().map(|running| running.url.clone());
        self.open(&url.ok_or("nobody is signing in: start again")?).await
    }

    pub(super) fn sign_in_cancel(&self) {
        if let Some(running) = lock(&self.shared.door.attempt).take() {
            running.stop.cancel();
            self.set_sign_in(SignIn::SignedOut);
        }
    }

    pub(super) async fn sign_out(&self) -> Result<(), String> {
        self.sign_in_cancel();
        let oauth = self.oauth()?;
        self.command(Command::Disconnect).await?;
        let outcome = oauth::log_out(&oauth, &self.shared.vault).await.map_err(|error| error.to_string())?;
        if let LoggedOut::Refused(why) = outcome {
            warn!("signed out here; the platform would not revoke the tokens ({why})");
        }
        self.set_sign_in(SignIn::SignedOut);
        Ok(())
    }

    /// An address that the browser handed over: data from strangers. It is looked at only while an attempt waits for it,
    /// which checks the `state` that it issued. False when nothing waited for it.
    pub fn deep_link(&self, address: &str) -> bool {
        let completion = lock(&self.shared.door.attempt).as_ref().map(|running| running.completion.clone());
        completion.is_some_and(|completion| completion.complete(address).is_ok())
    }

    async fn signed_in(&self, finished: Result<(), String>) {
        match finished {
            Ok(()) => {
                self.set_sign_in(SignIn::SignedIn { account: None });
                // Who clicks Connect signs in in order to connect.
                if let Err(message) = self.command(Command::Connect).await {
                    warn!("signed in, and cannot connect: {message}");
                }
            }
            Err(message) => self.set_sign_in(SignIn::Failed { message }),
        }
    }

    fn set_sign_in(&self, state: SignIn) {
        *lock(&self.shared.door.state) = state;
        self.changed();
    }

    async fn open(&self, url: &url::Url) -> Result<(), String> {
        let (native, url) = (self.shared.native.clone(), url.clone());
        super::blocking(move || native.open_url(&url)).await?
    }

    fn oauth(&self) -> Result<OAuthConfig, String> {
        let machine = self.shared.executor.machine();
        oauth_config(&machine.config(), &machine.platform).map_err(|error| error.to_string())
    }
}
