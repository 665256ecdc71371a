//! Keeping a connection: dial, greet, serve, and dial again as the contract says.

use std::sync::Arc;
use std::time::Duration;

use protocol::{Channel, Connection, Hello, Limits, Negotiated, PROTOCOL_VERSION};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::dial::{DialError, Socket, dial};
use super::handshake::{HandshakeError, describe, greet};
use super::reconnect::{Backoff, Next, STABLE_AFTER, after_close, random_fraction};
use super::renewal::renew;
use super::serve::{End, Service, serve};
use super::sockets::Registration;
use crate::control::ControlConnection;
use crate::events::{ConnectionState, Event};
use crate::machine::Machine;
use crate::oauth::{Access, TokenError};
use crate::session::{DataConnection, Session};

/// Why a connection ended that is opened anew in time.
const RENEWED: &str = "renewed with a fresh access token";

/// A connection that lasted less is no connection.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Seconds that the platform may see a token end earlier than we do.
const CLOCKS_DIFFER: f64 = 2.0;

/// Which connection is kept. The one place where the two differ.
enum Link {
    /// The machine's.
    Control(Arc<Machine>),
    /// A session's.
    Data(Arc<Session>),
}

/// How keeping a connection ended for good.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Final {
    /// We were told to stop.
    Stopped,
    /// No request for too long.
    Idle,
    /// SESSION_REVOKED, or its close code.
    Revoked(String),
    /// Signing in again is the only way on.
    SignedOut(String),
    /// Dialling again would not help.
    Halted(String),
}

/// One try, from dialling to the end.
struct Try {
    next: Next,
    reason: String,
    ended: Option<Final>,
    /// How long the connection was in service; `None` when the greeting failed.
    served: Option<Duration>,
    /// The token it was tried with.
    used: Option<Access>,
}

impl Try {
    fn failed(next: Next, reason: String) -> Self {
        Self { next, reason, ended: None, served: None, used: None }
    }

    fn over(ended: Final) -> Self {
        Self { ended: Some(ended), ..Self::failed(Next::Retry, String::new()) }
    }

    /// Whether the platform gave the connection up at once, or soon after it had accepted a token that should have held
    /// longer. Whatever is wrong there, it must not be dialled in a tight circle.
    fn is_unstable(&self) -> bool {
        let early =
            || self.used.as_ref().is_some_and(|used| protocol::now() + CLOCKS_DIFFER < used.expires_at);
        self.served.is_some_and(|lasted| lasted < AT_ONCE || (lasted < STABLE_AFTER && early()))
    }
}

/// Keeps the control connection until `stop`, or for good reasons. The state it ends in is set.
pub(crate) async fn run_control(machine: Arc<Machine>, stop: CancellationToken) {
    let link = Link::Control(machine.clone());
    let ended = link.keep(&stop).await;
    let signed_out = matches!(ended, Final::SignedOut(_));
    let state = match ended {
        Final::Stopped | Final::Idle => return, // who stopped it says why
        Final::Revoked(reason) => {
            ConnectionState::Halted { reason: format!("the platform revoked this machine: {reason}") }
        }
        Final::SignedOut(reason) => ConnectionState::SignedOut { reason },
        Final::Halted(reason) => ConnectionState::Halted { reason },
    };
    let sessions = machine.sessions.active();
    machine.sessions.stop_all();
    machine.set_connection_unless(&stop, state);
    if !signed_out {
        // The platform will not restore them, so nothing of them runs on. Their own connections may not get to see why
        // they end: they are told to stop here.
        for session in sessions {
            machine.end_session(&session).await;
        }
    }
}

/// Keeps a session's data connection until it ends, and then sees to it that nothing of the session runs on.
pub(crate) async fn run_data(session: Arc<Session>) {
    let ended = Link::Data(session.clone()).keep(&session.stop.clone()).await;
    let machine = session.machine.clone();
    session.set_connected(false);
    machine.sessions.leave(&session);
    let reason = match &ended {
        Final::Stopped => "stopped".to_owned(),
        Final::Idle => "no request for a while".to_owned(),
        Final::Revoked(reason) | Final::SignedOut(reason) | Final::Halted(reason) => reason.clone(),
    };
    machine.emit(|| Event::SessionClosed { session_id: session.id.to_string(), reason });
    if ended == Final::Stopped {
        // Detaching and killing see to the rest themselves. After a reconnect of control the platform restores the session,
        // and its background processes live on for it; if it does not come back they end as an idle session's do.
        machine.end_unless_restored(&session);
        return;
    }
    if ended == Final::Idle {
        let log = json!({"allowed_root": session.root_path(), "revision": session.revision});
        machine.record_own("IDLE_SESSION_DETACH", Some(session.id.as_str()), log);
    }
    machine.end_session(&session).await;
}

impl Link {
    fn machine(&self) -> &Arc<Machine> {
        match self {
            Link::Control(machine) => machine,
            Link::Data(session) => &session.machine,
        }
    }

    fn session_id(&self) -> Option<&str> {
        match self {
            Link::Control(_) => None,
            Link::Data(session) => Some(session.id.as_str()),
        }
    }

    async fn keep(&self, stop: &CancellationToken) -> Final {
        let mut backoff = Backoff::new(self.machine().delays());
        let mut refreshed = false;
        loop {
            let tried = self.once(stop).await;
            if let Some(ended) = tried.ended {
                return ended;
            }
            if stop.is_cancelled() {
                return Final::Stopped;
            }
            backoff.connected_for(tried.served.unwrap_or_default());
            // A token that was accepted and has ended since is no sign of a dead sign-in, however short its life.
            refreshed &= tried.served.is_none();
            let delay = match tried.next {
                Next::Halt(reason) => return Final::Halted(format!("{reason}{}", described(&tried.reason))),
                Next::Refresh if refreshed => {
                    return Final::SignedOut(
                        "the platform does not accept a fresh token either; sign in again".to_owned(),
                    );
                }
                Next::Refresh => match self.refresh(tried.used.as_ref()).await {
                    Ok(()) => {
                        refreshed = true;
                        if tried.is_unstable() { backoff.next(random_fraction()) } else { Duration::ZERO }
                    }
                    Err(TokenError::SignedOut(reason)) => return Final::SignedOut(reason),
                    Err(TokenError::Temporary(_) | TokenError::Vault(_)) => backoff.next(random_fraction()),
                },
                Next::Now => Duration::ZERO,
                Next::Retry => backoff.next(random_fraction()),
                Next::RetryLate => backoff.next_late(random_fraction()),
            };
            if !self.wait(delay, &tried.reason, stop).await {
                return Final::Stopped;
            }
        }
    }

    async fn wait(&self, delay: Duration, reason: &str, stop: &CancellationToken) -> bool {
        if let Link::Control(machine) = self {
            let reason =
                if reason.is_empty() { "the connection ended".to_owned() } else { reason.to_owned() };
            machine.set_connection_unless(
                stop,
                ConnectionState::Waiting { seconds: delay.as_secs_f64(), reason },
            );
        }
        tokio::select! {
            () = stop.cancelled() => false,
            () = tokio::time::sleep(delay) => true,
        }
    }

    /// Another connection may have rotated the token meanwhile; then its new one is used and nothing is refreshed.
    async fn refresh(&self, used: Option<&Access>) -> Result<(), TokenError> {
        let tokens = &self.machine().tokens;
        match used {
            Some(used) => tokens.refresh_after_401(&used.token).await.map(drop),
            None => tokens.access_token().await.map(drop),
        }
    }

    /// Dials, greets and serves once.
    async fn once(&self, stop: &CancellationToken) -> Try {
        let (socket, _registration, settled, used) = tokio::select! {
            biased;
            () = stop.cancelled() => return Try::over(Final::Stopped),
            opened = self.open(stop) => match opened {
                Ok(opened) => opened,
                Err(failed) => return *failed,
            },
        };
        let (version, began) = (settled.version, Instant::now());
        let limits = self.machine().limits_with(settled.limits, matches!(self, Link::Control(_)));
        let max_concurrent = limits.max_concurrent as usize;
        let places = match self {
            Link::Control(machine) => machine.slots.control(max_concurrent),
            Link::Data(session) => session.machine.slots.session(session.id.as_str(), max_concurrent),
        };
        let service = self.connected(settled, limits, stop);
        let timings = self.machine().timings;
        let ends = stop.child_token();
        let _ends_the_renewal = ends.clone().drop_guard();
        if let Link::Control(machine) = self {
            let timeout = limits.command_timeout_seconds;
            tokio::spawn(renew(machine.clone(), places.clone(), used.clone(), timeout, ends.clone()));
        }
        let end = serve(socket, service, places, version, timings, &ends).await;
        let is_renewed = ends.is_cancelled() && !stop.is_cancelled();
        Try { served: Some(began.elapsed()), used: Some(used), ..self.ended(end, is_renewed) }
    }

    /// Up to the end of the greeting.
    async fn open(
        &self,
        stop: &CancellationToken,
    ) -> Result<(Socket, Registration, Negotiated, Access), Box<Try>> {
        let machine = self.machine();
        if let Link::Control(machine) = self {
            machine.set_connection_unless(stop, ConnectionState::Connecting);
        }
        let access = machine.tokens.access().await.map_err(|error| match error {
            TokenError::SignedOut(reason) => Box::new(Try::over(Final::SignedOut(reason))),
            TokenError::Temporary(_) | TokenError::Vault(_) => {
                Box::new(Try::failed(Next::Retry, error.to_string()))
            }
        })?;
        let dialled = dial(&self.url(), &access.token, &machine.sockets).await;
        let (mut socket, registration) = match dialled {
            Ok(opened) => opened,
            Err(error) => return Err(Box::new(Try { used: Some(access), ..not_dialled(&error) })),
        };
        match greet(&mut socket, &self.hello(), self.connection()).await {
            Ok(settled) => Ok((socket, registration, settled, access)),
            Err(error) => Err(Box::new(Try { used: Some(access), ..not_greeted(&error) })),
        }
    }

    fn url(&self) -> url::Url {
        match self {
            Link::Control(machine) => machine.platform.control().clone(),
            Link::Data(session) => session.machine.platform.data(session.id.as_str()),
        }
    }

    fn connection(&self) -> Connection<'_> {
        match self {
            Link::Control(_) => Connection::Control,
            Link::Data(session) => Connection::Data(&session.id),
        }
    }

    fn hello(&self) -> Hello {
        let machine = self.machine();
        let (channel, allowed_root) = match self {
            Link::Control(_) => (Channel::Control, None),
            Link::Data(session) => (Channel::Data, Some(session.root_path().to_owned())),
        };
        Hello {
            shim_version: machine.version.to_owned(),
            protocol_version: PROTOCOL_VERSION,
            machine_id: machine.id.clone(),
            display_name: machine.config().display_name(),
            platform: crate::identity::platform(),
            arch: machine.arch.to_owned(),
            screen_resolution: None,
            capabilities: machine.offers(channel),
            allowed_root,
            local_llm_models: Vec::new(),
            hardware_devices: Vec::new(),
            computer_use_features: Vec::new(),
            computer_use_features_coarse: Vec::new(),
            recording_channels: Vec::new(),
            recording_routes: Vec::new(),
        }
    }

    /// The handshake is done: says so, and makes what serves the connection.
    fn connected(&self, settled: Negotiated, limits: Limits, stop: &CancellationToken) -> Arc<dyn Service> {
        let machine = self.machine();
        let Negotiated { connection_id, capabilities, .. } = settled;
        machine.record_own("WS_CONNECTED", self.session_id(), json!({"connection_id": connection_id}));
        match self {
            Link::Control(machine) => {
                let connection_id = connection_id.unwrap_or_default();
                info!(%connection_id, "connected");
                machine.control_connected(limits);
                machine.set_connection_unless(stop, ConnectionState::Connected { connection_id });
                Arc::new(ControlConnection::new(machine.clone(), capabilities))
            }
            Link::Data(session) => {
                session.set_connected(true);
                session.touch();
                let root = session.root_path().to_owned();
                machine.emit(|| Event::SessionOpened { session_id: session.id.to_string(), root });
                Arc::new(DataConnection { session: session.clone(), capabilities, limits })
            }
        }
    }

    /// What a served connection's end means.
    fn ended(&self, end: End, is_renewed: bool) -> Try {
        let machine = self.machine();
        if let Link::Data(session) = self {
            session.set_connected(false);
        }
        let (reason, ended, next) = match end {
            End::Stopped if is_renewed => (RENEWED.to_owned(), None, Next::Now),
            End::Stopped => ("stopped".to_owned(), Some(Final::Stopped), Next::Retry),
            End::Idle => ("idle".to_owned(), Some(Final::Idle), Next::Retry),
            End::Revoked { reason } => {
                machine.record_own("SESSION_REVOKED", self.session_id(), json!({"reason": reason}));
                (format!("revoked: {reason}"), Some(Final::Revoked(reason)), Next::Retry)
            }
            End::Closed { code, reason } => {
                (format!("closed{}", describe(code, &reason)), None, after_close(code))
            }
        };
        machine.record_own("WS_DISCONNECTED", self.session_id(), json!({"reason": reason}));
        if ended.is_none() && next != Next::Now {
            warn!(session = self.session_id(), %reason, "a connection ended");
        }
        Try { next, reason, ended, served: None, used: None }
    }
}

fn not_dialled(error: &DialError) -> Try {
    let next = match error {
        DialError::Unauthorized => Next::Refresh,
        DialError::Forbidden => after_close(Some(protocol::close::FORBIDDEN)),
        DialError::Status(_) | DialError::Unreachable(_) | DialError::TimedOut => Next::Retry,
    };
    Try::failed(next, error.to_string())
}

fn not_greeted(error: &HandshakeError) -> Try {
    let next = match error {
        HandshakeError::Closed { code, .. } => after_close(*code),
        HandshakeError::TimedOut => Next::Retry,
        HandshakeError::NotAnAck(_) | HandshakeError::HelloTooLong(_) => {
            Next::Halt("the greeting failed; please report it")
        }
        HandshakeError::Refused(ack) => match ack.close_code() {
            protocol::close::VERSION_MISMATCH => after_close(Some(protocol::close::VERSION_MISMATCH)),
            _ => Next::Halt("the platform broke the contract in its answer to the greeting"),
        },
    };
    Try::failed(next, error.to_string())
}

fn described(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" ({reason})") }
}
