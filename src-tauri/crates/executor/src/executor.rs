//! The handle that the command line and the app hold: start, commands, status, events, shutdown.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use audit::{AuditKey, AuditLog, Identity, Options};
use protocol::Channel;
use serde_json::json;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use vault::{Vault, VaultError};

use crate::anchor::{AnchorError, audit_anchor, keep_audit_anchor};
use crate::config::{Config, Dirs, Platform, Redirect};
use crate::connection::{Renewing, Sockets, Timings, run_control};
use crate::consent::{Consent, ConsentEvent, Policy, Prompter, Withdrawal};
use crate::control::{GrantKey, KEY_LABEL, Revisions, Sessions};
use crate::events::{Command, CommandFailed, ConnectionState, Event, StatusReport};
use crate::identity::{self, IdentityError};
use crate::kill::KillSwitch;
use crate::limits::{Bound, COMMANDS_AT_ONCE, Rate, Slots};
use crate::machine::{Machine, PausedBy, State};
use crate::mark::mark;
use crate::oauth::{self, OAuthConfig, OAuthError, TokenSource};
use crate::off::{self, Off};

/// Events that a slow subscriber may fall behind before it loses the oldest.
const EVENTS_KEPT: usize = 1024;

/// How long a graceful end waits for the connections to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a graceful end waits for the keychain to remember the log's end.
const KEEP_TIMEOUT: Duration = Duration::from_secs(3);

/// Reads the configuration again; the error says what is wrong with it.
pub type Reload = Box<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// What an executor is started with.
pub struct Setup {
    /// The settings.
    pub config: Config,
    /// The platform's addresses, made from them.
    pub platform: Platform,
    /// Where everything is kept. They exist.
    pub dirs: Dirs,
    /// Tokens and keys.
    pub vault: Vault,
    /// Who shows consent prompts; without one, what no rule allows is denied.
    pub prompter: Option<Arc<dyn Prompter>>,
    /// This is `deskhand run`, not the app.
    pub headless: bool,
    /// How often the contract wants what.
    pub timings: Timings,
    /// For [`Command::ReloadConfig`].
    pub reload: Reload,
}

/// Why an executor did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The machine id, or the processor.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The keychain or the vault's file.
    #[error("the keys cannot be read: {0}")]
    Vault(#[from] VaultError),
    /// The audit log: nothing runs unaudited.
    #[error("the audit log cannot be opened: {0}")]
    Audit(#[from] audit::AuditError),
    /// Commands could not be run safely.
    #[error("commands cannot be run: {0}")]
    Commands(#[from] exec::ExecError),
    /// The OAuth client.
    #[error(transparent)]
    OAuth(#[from] OAuthError),
    /// The state folder, or a thread.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// A running executor. Cheap to clone.
#[derive(Clone)]
pub struct Executor {
    machine: Arc<Machine>,
    kill: KillSwitch,
    control: Arc<Mutex<Option<Control>>>,
    setup: Arc<Kept>,
}

struct Kept {
    headless: bool,
    reload: Reload,
    vault: Vault,
}

/// The task that keeps the control connection.
struct Control {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Executor {
    /// Starts everything but the connection. Must be called within a Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`StartError`]: each says what to do.
    pub fn start(setup: Setup) -> Result<Self, StartError> {
        let Setup { config, platform, dirs, vault, prompter, headless, timings, reload } = setup;
        let id = identity::machine_id(&dirs.state)?;
        let arch = identity::arch()?;
        let version = env!("CARGO_PKG_VERSION");
        let audit_key = AuditKey::new(*vault.audit_key()?);
        let grants = GrantKey::new(audit_key.derive(KEY_LABEL));
        let identity = Identity { machine_id: id.to_string(), shim_version: version.to_owned() };
        let options = Options { anchor: known_anchor(&vault)?, ..Options::default() };
        let audit = AuditLog::open(&dirs.logs, audit_key, identity, options)?;
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        let disconnects = Disconnects::default();
        let consent = {
            let (events, disconnects) = (events.clone(), disconnects.clone());
            let policy = Policy::new(&config, platform.host(), headless);
            Arc::new(Consent::new(policy, prompter, move |event| {
                if let ConsentEvent::DisconnectAsked { session_id } = &event {
                    disconnects.ask(session_id);
                }
                publish(&events, event);
            }))
        };
        let tokens = {
            let audit = audit.clone();
            TokenSource::new(&oauth_config(&config, &platform)?, &vault, move || {
                if let Err(error) =
                    audit.record(audit::Entry::event("TOKEN_REFRESHED", serde_json::Map::new()))
                {
                    warn!(%error, "a token refresh could not be logged");
                }
            })?
        };
        let machine = Arc::new(Machine {
            id,
            version,
            arch,
            platform,
            timings,
            started: Instant::now(),
            commands: exec::Host::with_mark(mark(&dirs.state))?,
            consent,
            tokens,
            renewing: Renewing::default(),
            sockets: Sockets::default(),
            sessions: Sessions::new(Revisions::load(&dirs.state)?),
            grants,
            slots: Slots::new(config.max_concurrent),
            command_places: Bound::new(COMMANDS_AT_ONCE),
            command_rate: Rate::per_minute(config.rates.commands_per_minute),
            events,
            config: std::sync::RwLock::new(Arc::new(config)),
            state: State::default(),
            audit,
            dirs,
        });
        disconnects.reach(&machine);
        off::make_ready(&machine.dirs.state)?;
        let os = identity::platform();
        machine.record_own("SHIM_START", None, json!({"platform": os.as_str(), "arch": arch}));
        if let Err(error) = keep_audit_anchor(&vault, &machine.audit) {
            warn!(%error, "the log's end could not be remembered in the keychain; an older one is");
        }
        let kill = KillSwitch::start(&machine)?;
        let setup = Arc::new(Kept { headless, reload, vault });
        Ok(Self { machine, kill, control: Arc::default(), setup })
    }

    /// Connects, unless `stop` or `disconnect` was said since the last `connect`. Returns whether it does.
    pub fn connect_unless_off(&self) -> bool {
        match off::recall(&self.machine.dirs.state) {
            Some(off) => {
                self.machine.set_connection(ConnectionState::Off { reason: off.reason().to_owned() });
                false
            }
            None => {
                self.connect();
                true
            }
        }
    }

    /// The kill switch; works from any thread, whatever hangs.
    #[must_use]
    pub fn kill_switch(&self) -> KillSwitch {
        self.kill.clone()
    }

    /// Whether the process `pid` is a command of an agent's, or was started by one, of this run or an earlier one: see
    /// [`exec::Host::is_command`]. Looks at processes; not for a thread that must not wait.
    #[must_use]
    pub fn is_command(&self, pid: u32) -> bool {
        self.machine.commands.is_command(pid)
    }

    /// Answers to consent prompts go here.
    #[must_use]
    pub fn consent(&self) -> &Arc<Consent> {
        &self.machine.consent
    }

    /// What happens from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.machine.events.subscribe()
    }

    /// The state at this moment.
    #[must_use]
    pub fn status(&self) -> StatusReport {
        let machine = &self.machine;
        let sessions: Vec<_> = machine.sessions.active().iter().map(|session| session.report()).collect();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        StatusReport {
            version: machine.version.to_owned(),
            pid: std::process::id(),
            machine_id: machine.id.to_string(),
            display_name: machine.config().display_name(),
            platform_url: machine.platform.http().to_owned(),
            connection: machine.connection(),
            paused: machine.paused_by() != PausedBy::Nobody,
            uptime_seconds: machine.started.elapsed().as_secs(),
            prompts: count(machine.consent.open_prompts().len()),
            in_flight: sessions.iter().map(|s| s.in_flight).sum(),
            sessions,
            queue_depth: count(machine.slots.queue_depth()),
            audit_log: machine.audit.path().display().to_string(),
            audit_log_bytes: machine.audit.size_bytes(),
        }
    }

    pub(crate) fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// Carries out a command.
    ///
    /// # Errors
    ///
    /// When it could not be; the text says what to do.
    pub async fn command(&self, command: Command) -> Result<(), CommandFailed> {
        let failed = |what: &str, error: &dyn std::fmt::Display| CommandFailed(format!("{what}: {error}"));
        let machine = &self.machine;
        match command {
            Command::Connect => {
                off::forget(&machine.dirs.state)
                    .map_err(|e| failed("could not note down that this machine is on", &e))?;
                off::make_ready(&machine.dirs.state)
                    .map_err(|e| failed("the kill switch could not be made ready", &e))?;
                self.connect();
            }
            Command::Disconnect => {
                off::remember(&machine.dirs.state, Off::Disconnected)
                    .map_err(|e| failed("could not note down that this machine stays off", &e))?;
                self.close(Off::Disconnected.reason()).await;
            }
            Command::Pause => {
                machine.set_paused(PausedBy::Person);
                machine.record_own("PAUSED", None, json!({}));
            }
            Command::Resume { session_id } => self.resume(session_id)?,
            Command::Stop => {
                let kill = self.kill.clone();
                let thrown = tokio::task::spawn_blocking(move || kill.throw("command")).await;
                if !matches!(thrown, Ok(Some(_))) {
                    return Err(CommandFailed(
                        "the kill switch was thrown but did not report back; end the process to be sure"
                            .to_owned(),
                    ));
                }
            }
            Command::EndSession { session_id } => {
                if !machine.stop_session(&session_id) {
                    return Err(CommandFailed(format!("the session '{session_id}' has ended already")));
                }
            }
            Command::RotateLog => {
                let audit = machine.audit.clone();
                let rotated = tokio::task::spawn_blocking(move || audit.rotate()).await;
                rotated
                    .map_err(|e| failed("rotating failed", &e))?
                    .map_err(|e| failed("the log was not rotated", &e))?;
            }
            Command::PruneLog { older_than_seconds } => self.prune(older_than_seconds).await?,
            Command::ReloadConfig => self.reload("CONFIG_RELOADED")?,
        }
        Ok(())
    }

    async fn prune(&self, older_than_seconds: u64) -> Result<(), CommandFailed> {
        let (audit, vault) = (self.machine.audit.clone(), self.setup.vault.clone());
        let prune = move || -> Result<(), AnchorError> {
            keep_audit_anchor(&vault, &audit)?;
            audit.prune(Duration::from_secs(older_than_seconds))?;
            Ok(audit.sync()?)
        };
        let failed =
            |error: &dyn std::fmt::Display| CommandFailed(format!("the log was not pruned: {error}"));
        tokio::task::spawn_blocking(prune).await.map_err(|e| failed(&e))?.map_err(|e| failed(&e))
    }

    fn resume(&self, session_id: Option<String>) -> Result<(), CommandFailed> {
        let machine = &self.machine;
        match session_id {
            Some(session) if machine.consent.is_paused(&session) => machine.consent.resume(&session),
            Some(session) => return Err(CommandFailed(format!("the session '{session}' is not paused"))),
            None => {
                machine
                    .audit
                    .try_recover()
                    .map_err(|e| CommandFailed(format!("the audit log still cannot be written: {e}")))?;
                machine.set_paused(PausedBy::Nobody);
                for session in machine.consent.paused_sessions() {
                    machine.consent.resume(&session);
                }
            }
        }
        machine.record_own("RESUMED", None, json!({}));
        Ok(())
    }

    /// The platform's address holds from the next start on, all else at once. `op` is what the log says.
    pub(crate) fn reload(&self, op: &'static str) -> Result<(), CommandFailed> {
        let machine = &self.machine;
        let config = (self.setup.reload)().map_err(CommandFailed)?;
        let changed = config.diff(&machine.config());
        let offered = machine.offers(Channel::Control);
        machine.consent.set_policy(Policy::new(&config, machine.platform.host(), self.setup.headless));
        machine.command_rate.set_limit(config.rates.commands_per_minute);
        *machine.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        machine.record_own(op, None, json!({"keys": changed}));
        if machine.offers(Channel::Control) != offered {
            self.greet_anew();
        }
        Ok(())
    }

    /// What this machine offers is said in HELLO only, so a change of it needs another one.
    fn greet_anew(&self) {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let running = control.take_if(|running| !running.task.is_finished() && !running.stop.is_cancelled());
        drop(control);
        if let Some(running) = running {
            running.stop.cancel();
            self.connect();
        }
    }

    /// Keeps a control connection, if none is kept.
    fn connect(&self) {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = matches!(self.machine.connection(), ConnectionState::Waiting { .. });
        if let Some(running) = control.take() {
            if !running.task.is_finished() && !running.stop.is_cancelled() && !waiting {
                *control = Some(running);
                return;
            }
            running.stop.cancel(); // what only waits to dial again is replaced by what dials now
        }
        let stop = self.machine.everything();
        let task = tokio::spawn(run_control(self.machine.clone(), stop.clone()));
        *control = Some(Control { stop, task });
    }

    /// Ends every connection and everything that runs for the platform, in order, and kills what does not end.
    async fn close(&self, reason: &str) {
        let machine = &self.machine;
        machine.consent.withdraw_all(Withdrawal::SessionEnded);
        for session in machine.sessions.active() {
            machine.consent.end_session(session.id.as_str()); // its approvals do not outlive it
        }
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner).take();
        machine.cut();
        if let Some(Control { task, .. }) = control
            && timeout(CLOSE_TIMEOUT, task).await.is_err()
        {
            machine.sockets.shutdown_all();
        }
        let sessions_gone = async {
            while !machine.sessions.active().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(CLOSE_TIMEOUT, sessions_gone).await.is_err() {
            machine.sockets.shutdown_all();
        }
        let commands = machine.commands.clone();
        drop(tokio::task::spawn_blocking(move || commands.kill_all()).await);
        machine.set_connection(ConnectionState::Off { reason: reason.to_owned() });
    }

    /// Ends everything for good; the log's last record says so.
    pub async fn shutdown(&self, reason: &'static str) {
        self.close("shutting down").await;
        self.machine.record_own("SHIM_STOP", None, json!({"reason": reason}));
        let audit = self.machine.audit.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || audit.sync()).await {
            warn!(%error, "the audit log could not be synced");
        }
        let (audit, vault) = (self.machine.audit.clone(), self.setup.vault.clone());
        let kept = tokio::task::spawn_blocking(move || keep_audit_anchor(&vault, &audit));
        match timeout(KEEP_TIMEOUT, kept).await {
            Ok(Ok(Err(error))) => warn!(%error, "the log's end could not be remembered in the keychain"),
            Ok(Ok(Ok(())) | Err(_)) => {}
            Err(_) => warn!("the keychain did not answer; an older end of the log is remembered there"),
        }
    }
}

/// The record that the log must hold. A note that is no such is replaced: who can damage it can as well delete it.
fn known_anchor(vault: &Vault) -> Result<Option<audit::Anchor>, StartError> {
    match audit_anchor(vault) {
        Ok(anchor) => Ok(anchor),
        Err(AnchorError::Vault(error)) => Err(error.into()),
        Err(AnchorError::Audit(error)) => Err(error.into()),
        Err(error @ AnchorError::Damaged(_)) => {
            warn!(%error, "it is made anew");
            Ok(None)
        }
    }
}

/// The OAuth client of a configuration.
///
/// # Errors
///
/// When the platform's address cannot be one to sign in to.
pub fn oauth_config(config: &Config, platform: &Platform) -> Result<OAuthConfig, OAuthError> {
    let redirect = match config.oauth.redirect {
        Redirect::Auto | Redirect::Loopback => oauth::Redirect::Loopback,
        Redirect::DeepLink => oauth::Redirect::DeepLink,
    };
    OAuthConfig::new(&platform.endpoint("/"), config.oauth.client_id.as_str(), "USE_TOOLS", redirect)
}

/// "Deny and disconnect": from the consent's event to the session, once there is a machine.
#[derive(Clone, Default)]
struct Disconnects(Arc<Mutex<std::sync::Weak<Machine>>>);

impl Disconnects {
    fn reach(&self, machine: &Arc<Machine>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(machine);
    }

    fn ask(&self, session_id: &str) {
        let Some(machine) = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade() else { return };
        machine.stop_session(session_id);
    }
}

fn publish(events: &broadcast::Sender<Event>, event: ConsentEvent) {
    let event = match event {
        ConsentEvent::Opened { prompt } => Event::PromptOpened {
            prompt_id: prompt.id.to_string(),
            session_id: prompt.session_id.clone(),
            capability: prompt.capability.name().to_owned(),
        },
        ConsentEvent::Closed { id, end, .. } => {
            Event::PromptClosed { prompt_id: id.to_string(), decision: format!("{end:?}") }
        }
        ConsentEvent::ChatPaused { session_id } => Event::SessionPaused { session_id },
        ConsentEvent::Shown { .. }
        | ConsentEvent::DisconnectAsked { .. }
        | ConsentEvent::ChatResumed { .. } => return,
    };
    // Nobody may be listening.
    let _ = events.send(event);
}
