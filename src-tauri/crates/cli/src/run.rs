//! `deskhand run`: the executor in the foreground.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use executor::config::{Config, Loaded, Overrides};
use executor::consent::{Prompter, TerminalPrompter};
use executor::events::{Command, ConnectionState, Event};
use executor::local::{self, Instance, Server};
use executor::oauth;
use executor::{Executor, Setup, Timings};
use tokio::sync::broadcast::{self, error::RecvError};
use vault::Vault;

use crate::context::Context;
use crate::failure::{Code, Failure, Outcome, failed};
use crate::status;

/// Frames, prompts and timers are little work; what takes long has threads of its own.
const WORKERS: usize = 2;

/// For threads that wait for something that does not end: we do not wait with them.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn run(context: &Context) -> Outcome {
    let loaded = context.load()?;
    context.make_folders()?;
    let instance = Instance::claim(&context.dirs.state)?;
    let vault = context.vault()?;
    check_sign_in(&vault, context.oauth(&loaded)?.platform())?;
    make_usual_root(&loaded.config);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .on_thread_stop(exec::memory::let_go) // one for requests ends when there was nothing to do for 10 s
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Failed, format!("the runtime cannot be started: {error}")))?;
    let ended = runtime.block_on(serve(context, loaded, vault, &instance));
    runtime.shutdown_timeout(LAST_PATIENCE);
    ended
}

/// Without a sign-in for the platform a run would end at once, with less of a hint.
fn check_sign_in(vault: &Vault, platform: &str) -> Outcome {
    match vault.tokens().map_err(failed(Code::Setup))? {
        None => Err(Failure::new(Code::SignIn, "nobody is signed in: deskhand login")),
        Some(tokens) if tokens.platform != platform => {
            Err(Failure::new(Code::SignIn, oauth::elsewhere(&tokens.platform, platform)))
        }
        Some(_) => Ok(()),
    }
}

/// The folder that is shared where nobody has chosen one has to be there, or an agent has nowhere to work.
fn make_usual_root(config: &Config) {
    if config.roots != Config::default().roots {
        return;
    }
    for root in config.roots().iter().filter(|root| !root.exists()) {
        match std::fs::create_dir(root) {
            Ok(()) => {
                tracing::info!("made {}, the folder that is shared where none was chosen", root.display())
            }
            Err(error) => {
                tracing::warn!(%error, "{} cannot be made; share a folder: deskhand roots add", root.display())
            }
        }
    }
}

async fn serve(context: &Context, loaded: Loaded, vault: Vault, instance: &Instance) -> Outcome {
    // Before anything that a signal would have to end in order.
    let mut signals = Signals::new()?;
    let terminal = TerminalPrompter::open();
    let executor = Executor::start(Setup {
        config: loaded.config,
        platform: loaded.platform,
        dirs: context.dirs.clone(),
        vault,
        prompter: terminal.clone().map(|terminal| terminal as Arc<dyn Prompter>),
        headless: true,
        timings: Timings::default(),
        reload: reload(&context.dirs.config_file(), &context.overrides),
    })
    .map_err(failed(Code::Setup))?;
    let kill = executor.kill_switch();
    let events = executor.subscribe();
    let started = listen(&executor, instance, &context.dirs.runtime, terminal.as_deref());
    let server = match started {
        Ok(server) => server,
        Err(failure) => {
            executor.shutdown("could not start").await;
            return Err(failure);
        }
    };
    if !executor.connect_unless_off() {
        tracing::warn!(
            "off, as was said last with `stop` or `disconnect`: say `deskhand connect` in another terminal to go online"
        );
    }
    let (reason, outcome) = until_ended(&executor, events, &mut signals, terminal.is_some()).await;
    tracing::info!("ending: {reason}");
    tokio::select! {
        () = executor.shutdown(reason) => {}
        again = signals.end() => {
            tracing::warn!("{again} again: the kill switch is thrown");
            // Thrown from the side: it waits for nothing that hangs here.
            let thrown = tokio::task::spawn_blocking(move || kill.throw("second signal"));
            let _ = thrown.await;
        }
    }
    drop(server);
    outcome
}

/// Opens the ways in: answers from the terminal, commands over the local socket.
fn listen(
    executor: &Executor,
    instance: &Instance,
    runtime_dir: &Path,
    terminal: Option<&TerminalPrompter>,
) -> Outcome<Server> {
    if let Some(terminal) = terminal {
        terminal.attach(executor.consent()).map_err(failed(Code::Failed))?;
    }
    let kill = executor.kill_switch();
    let commands = executor.clone();
    let setup = local::Setup {
        runtime_dir: runtime_dir.to_owned(),
        host: executor.clone(),
        executor: tokio::runtime::Handle::current(),
        stop: Arc::new(move || {
            kill.throw("deskhand stop");
        }),
        is_command: Arc::new(move |pid| commands.is_command(pid)),
    };
    Server::start(instance, setup).map_err(failed(Code::Setup))
}

fn reload(file: &Path, overrides: &Overrides) -> executor::Reload {
    let (file, overrides) = (file.to_owned(), overrides.clone());
    Box::new(move || {
        let loaded =
            Config::load(&file, std::env::vars_os(), &overrides).map_err(|error| error.to_string())?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        Ok(loaded.config)
    })
}

/// Why it ends, for the log, and what that means for who started it.
async fn until_ended(
    executor: &Executor,
    mut events: broadcast::Receiver<Event>,
    signals: &mut Signals,
    has_terminal: bool,
) -> (&'static str, Outcome) {
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Signal::End(name) => return (name, Ok(())),
                Signal::HangUp if has_terminal && !terminal_is_there() => return ("the terminal was closed", Ok(())),
                Signal::HangUp => match executor.command(Command::ReloadConfig).await {
                    Ok(()) => tracing::info!("the configuration was read again"),
                    Err(error) => tracing::error!("the configuration stays as it was: {error}"),
                },
            },
            event = events.recv() => match event {
                Ok(event) => {
                    log(&event);
                    if let Event::Connection { state: ConnectionState::SignedOut { reason } } = event {
                        let message = format!("signed out: {reason}");
                        return ("signed out", Err(Failure::new(Code::SignIn, message)));
                    }
                }
                Err(RecvError::Lagged(missed)) => tracing::debug!(missed, "events came too fast to be logged"),
                // Cannot be: the executor holds the other end.
                Err(RecvError::Closed) => return ("the executor has ended", Ok(())),
            },
        }
    }
}

/// A hang-up is sent by a person who wants the configuration read, and by a terminal that goes away.
#[cfg(unix)]
fn terminal_is_there() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

#[cfg(windows)]
fn terminal_is_there() -> bool {
    true
}

fn log(event: &Event) {
    let text = status::told(event);
    match event {
        // The terminal shows a prompt and its end by itself; a line about it would stand where the person types.
        Event::RequestStarted { .. }
        | Event::RequestFinished { .. }
        | Event::PromptOpened { .. }
        | Event::PromptClosed { .. } => tracing::debug!("{text}"),
        Event::Connection { .. }
        | Event::SessionOpened { .. }
        | Event::SessionClosed { .. }
        | Event::RefusedByRule { .. }
        | Event::Paused { paused: false, .. } => tracing::info!("{text}"),
        Event::SessionPaused { .. }
        | Event::Paused { paused: true, .. }
        | Event::Killed { .. }
        | Event::Warning { .. } => tracing::warn!("{text}"),
    }
}

/// What the OS tells this process.
pub(crate) enum Signal {
    /// To end; the name of the signal.
    End(&'static str),
    /// To read the configuration again, or that the terminal is gone.
    #[cfg_attr(windows, expect(dead_code, reason = "a console says that it closes, which is an end"))]
    HangUp,
}

/// The signals that mean something here.
#[cfg(unix)]
pub(crate) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From now on signals are heard instead of ending the process.
    pub(crate) fn new() -> Outcome<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hear = |kind| signal(kind).map_err(failed(Code::Failed));
        Ok(Self {
            terminate: hear(SignalKind::terminate())?,
            interrupt: hear(SignalKind::interrupt())?,
            hang_up: hear(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::End("SIGTERM"),
            _ = self.interrupt.recv() => Signal::End("SIGINT"),
            _ = self.hang_up.recv() => Signal::HangUp,
        }
    }
}

/// What a console says.
#[cfg(windows)]
pub(crate) struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
    break_: tokio::signal::windows::CtrlBreak,
    close: tokio::signal::windows::CtrlClose,
    log_off: tokio::signal::windows::CtrlLogoff,
    shut_down: tokio::signal::windows::CtrlShutdown,
}

#[cfg(windows)]
impl Signals {
    /// From now on these are heard instead of ending the process.
    pub(crate) fn new() -> Outcome<Self> {
        use tokio::signal::windows;
        Ok(Self {
            interrupt: windows::ctrl_c().map_err(failed(Code::Failed))?,
            break_: windows::ctrl_break().map_err(failed(Code::Failed))?,
            close: windows::ctrl_close().map_err(failed(Code::Failed))?,
            log_off: windows::ctrl_logoff().map_err(failed(Code::Failed))?,
            shut_down: windows::ctrl_shutdown().map_err(failed(Code::Failed))?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::End("Ctrl-C"),
            _ = self.break_.recv() => Signal::End("Ctrl-Break"),
            _ = self.close.recv() => Signal::End("the console was closed"),
            _ = self.log_off.recv() => Signal::End("log off"),
            _ = self.shut_down.recv() => Signal::End("shut down"),
        }
    }
}

impl Signals {
    /// Waits for any of them, and gives its name.
    pub(crate) async fn end(&mut self) -> &'static str {
        match self.next().await {
            Signal::End(name) => name,
            Signal::HangUp => "SIGHUP",
        }
    }
}
