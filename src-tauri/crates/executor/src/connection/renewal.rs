//! Renewing the control connection before its access token ends.
//!
//! A platform closes a connection when its token ends, and with a connection everything ends that is in flight on it; the
//! contract has no way to give an open connection another token. So a new token is fetched while the old one still holds,
//! and the connection is exchanged at a moment when nothing runs on this machine. If no such moment comes by itself, new
//! requests are told to come back in a moment, early enough for what runs to end before the token does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use protocol::{ErrorCode, ErrorPayload, now};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::limits;
use crate::machine::Machine;
use crate::oauth::{Access, TokenError};

/// Seconds before the token's end from which on a quiet moment is looked for; half the token's life where that is less.
const AHEAD: f64 = 300.0;
/// Seconds that a request may take beside its command's timeout: the person's minute to agree, the command's end, the answer.
const BESIDE_TIMEOUT: f64 = 75.0;
/// In the first half of the time there is, it is quiet when no request was there for this long: a chat that is just at work
/// is not disturbed.
const UNDISTURBED: Duration = Duration::from_secs(2);
/// Seconds; a token that is given for less is left to the platform to end.
const SHORTEST_LIFE: f64 = 4.0;
/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The longest sleep: a computer that was suspended sees the time again after it.
const LONGEST_SLEEP: f64 = 30.0;
/// After a token could not be fetched.
const RETRY_AFTER: Duration = Duration::from_secs(15);

/// Whether requests of sessions are held off, so that the connection can be exchanged.
#[derive(Debug, Default)]
pub(crate) struct Renewing(AtomicBool);

impl Renewing {
    /// # Errors
    ///
    /// While requests are held off.
    pub(crate) fn not_now(&self) -> Result<(), ErrorPayload> {
        if !self.0.load(Ordering::Acquire) {
            return Ok(());
        }
        let why =
            "the connection is about to be renewed, as its access token ends; try again in a few seconds";
        Err(ErrorPayload::new(ErrorCode::ShimOverloaded, why)
            .with("reason", "renewing")
            .with("retry_after_seconds", 5))
    }

    fn hold_off(&self) -> HeldOff<'_> {
        self.0.store(true, Ordering::Release);
        HeldOff(self)
    }
}

struct HeldOff<'a>(&'a Renewing);

impl Drop for HeldOff<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// When what has to happen, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plan {
    /// A token is fetched and a quiet moment looked for.
    due: f64,
    /// Any moment without a request will do.
    pressing: f64,
    /// New requests are held off.
    last_call: f64,
}

impl Plan {
    fn new(opened: f64, token_ends: f64, command_timeout: f64) -> Self {
        let ahead = AHEAD.max(2.0 * (command_timeout + BESIDE_TIMEOUT));
        let due = (token_ends - ahead).max((opened + token_ends) / 2.0);
        let pressing = (due + token_ends) / 2.0;
        let last_call = (token_ends - command_timeout - BESIDE_TIMEOUT).max(pressing);
        Self { due, pressing, last_call }
    }
}

/// Ends the control connection with `end`, unless that ends by itself, when it is to be opened anew: a fresh token is there and nothing is in flight. It
/// ends the sessions' connections too, as the next control connection would, and by then something might run on them.
pub(super) async fn renew(
    machine: Arc<Machine>,
    control: limits::Connection,
    access: Access,
    command_timeout: f64,
    end: CancellationToken,
) {
    let opened = now();
    if !access.renewable || access.expires_at - opened < SHORTEST_LIFE {
        return;
    }
    let plan = Plan::new(opened, access.expires_at, command_timeout);
    let mut held_off = None;
    let ready = async {
        sleep_until(plan.due).await;
        if !fetch(&machine, &access).await {
            return false;
        }
        while !is_quiet(&machine, &control, now() < plan.pressing) {
            if held_off.is_none() && now() >= plan.last_call {
                held_off = Some(machine.renewing.hold_off());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        true
    };
    let is_ready = tokio::select! {
        () = end.cancelled() => false,
        is_ready = ready => is_ready,
    };
    if is_ready {
        debug!("the connection is opened anew with a fresh token");
        machine.sessions.stop_all();
        end.cancel();
    }
}

/// Has a new token stored. False when there will be none; the connection then ends with the token it has.
async fn fetch(machine: &Machine, access: &Access) -> bool {
    loop {
        match machine.tokens.refresh_after_401(&access.token).await {
            Ok(_) => return true,
            Err(TokenError::SignedOut(why)) => {
                warn!(%why, "the sign-in cannot be renewed; the connection ends with its token");
                return false;
            }
            Err(error @ (TokenError::Temporary(_) | TokenError::Vault(_))) => {
                debug!(%error, "no fresh token yet");
            }
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

fn is_quiet(machine: &Machine, control: &limits::Connection, politely: bool) -> bool {
    let sessions = machine.sessions.active();
    control.in_flight() == 0
        && sessions.iter().all(|session| {
            session.in_flight() == 0 && (!politely || session.last_request().elapsed() >= UNDISTURBED)
        })
}

async fn sleep_until(time: f64) {
    loop {
        let left = time - now();
        if left <= 0.0 {
            return;
        }
        tokio::time::sleep(Duration::from_secs_f64(left.min(LONGEST_SLEEP))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_comes_before_the_last_call_ends_before_the_token() {
        let plan = Plan::new(0.0, 3600.0, 30.0);
        assert_eq!(plan, Plan { due: 3300.0, pressing: 3450.0, last_call: 3495.0 });
        let plan = Plan::new(0.0, 3600.0, 600.0);
        assert_eq!(plan, Plan { due: 2250.0, pressing: 2925.0, last_call: 2925.0 });
    }

    #[test]
    fn a_short_lived_token_is_used_for_half_its_life() {
        assert_eq!(Plan::new(100.0, 120.0, 30.0), Plan { due: 110.0, pressing: 115.0, last_call: 115.0 });
    }

    #[test]
    fn requests_are_held_off_only_for_as_long_as_it_takes() {
        let renewing = Renewing::default();
        let held_off = renewing.hold_off();
        assert_eq!(renewing.not_now().unwrap_err().code, ErrorCode::ShimOverloaded);
        drop(held_off);
        assert!(renewing.not_now().is_ok());
    }
}
