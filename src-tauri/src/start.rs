//! From nothing to a running executor, and to the end.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use executor::config::{Config, Dirs, Loaded, Overrides};
use executor::consent::Prompter;
use executor::front::{Front, Native as _};
use executor::local::{self, Instance, InstanceError, Server};
use executor::{Executor, Setup, Timings};
use tauri::{AppHandle, Manager};
use tauri_plugin_deep_link::DeepLinkExt as _;
use vault::{BackendChoice, SecretString, VaultOptions};

use crate::desktop::{self, Desktop};
use crate::options::Options;
use crate::presence::Presence;
use crate::prompts::WindowPrompter;
use crate::{links, notices, tray, unlock, windows};

/// sysexits: the configuration or the keychain.
const CONFIG: i32 = 78;

/// How long a `deskhand run` may take to end when the app takes over.
const HAND_OVER: Duration = Duration::from_secs(10);

/// Lives as long as the app.
struct Running {
    _server: Server,
    _instance: Instance,
}

/// Starts on a thread of its own: keychain and dialogs may take their time, and the main thread has to draw them.
pub(crate) fn begin(app: &AppHandle, options: Options, passphrase: Result<Option<SecretString>, String>) {
    let app = app.clone();
    tauri::async_runtime::spawn_blocking(move || {
        let started = start(&app, &options, passphrase);
        if let Err(message) = started {
            desktop::complain(&app, "Deskhand cannot start", message);
            app.exit(CONFIG);
        }
    });
}

fn start(
    app: &AppHandle,
    options: &Options,
    passphrase: Result<Option<SecretString>, String>,
) -> Result<(), String> {
    use_headless_program()?;
    let dirs = Dirs::find(options.config_dir.as_deref(), options.state_dir.as_deref()).map_err(text)?;
    dirs.create().map_err(text)?;
    let overrides = Overrides { platform_url: options.platform_url.clone() };
    let loaded = load(&dirs, &overrides)?;
    let Some(instance) = claim(app, &dirs.state)? else {
        app.exit(0);
        return Ok(());
    };
    let usual = Dirs::find(None, None).map_or_else(|_| dirs.state.clone(), |dirs| dirs.state);
    let opened = unlock::open_vault(
        app,
        VaultOptions {
            state_dir: dirs.state.clone(),
            service: vault::service_name(&dirs.state, &usual),
            passphrase: passphrase?,
            backend: BackendChoice::Auto,
        },
    );
    let Some(vault) = opened.map_err(text)? else {
        app.exit(0);
        return Ok(());
    };
    let presence = Presence::default();
    let prompter = WindowPrompter::new(app, presence.clone());
    let from_flag = overrides.platform_url.is_some();
    let executor = Executor::start(Setup {
        config: loaded.config,
        platform: loaded.platform,
        dirs: dirs.clone(),
        vault: vault.clone(),
        prompter: Some(Arc::new(prompter) as Arc<dyn Prompter>),
        headless: false,
        timings: Timings::default(),
        reload: reload(&dirs.config_file(), overrides),
    })
    .map_err(text)?;
    let server = serve(&executor, &instance, &dirs)?;
    let desktop = Arc::new(Desktop::new(app));
    let front = Front::start(executor.clone(), vault, desktop.clone(), from_flag);
    app.manage(Running { _server: server, _instance: instance });
    app.manage(front.clone());
    if let Err(message) = desktop.set_shortcut(&front.preferences().shortcut) {
        tracing::warn!("{message}");
    }
    appear(app, &front, options, presence);
    executor.connect_unless_off();
    Ok(())
}

/// Commands run below the headless program, which every installation has beside the app.
#[cfg(any(target_os = "linux", windows))]
fn use_headless_program() -> Result<(), String> {
    const VERSION: &str = concat!("deskhand ", env!("CARGO_PKG_VERSION"));
    let app = std::env::current_exe().map_err(text)?;
    let program = app.with_file_name(format!("deskhand{}", std::env::consts::EXE_SUFFIX));
    let broken = |why: String| format!("{} {why}: install Deskhand again", program.display());
    let said = std::process::Command::new(&program).arg("--version").output();
    let said = said.map_err(|error| broken(format!("cannot be started ({error})")))?.stdout;
    let said = String::from_utf8_lossy(&said);
    if said.trim() != VERSION {
        return Err(broken(format!("is '{}' where '{VERSION}' belongs", said.trim())));
    }
    exec::supervisor::use_program(&program).map_err(|error| broken(format!("cannot be opened ({error})")))
}

#[cfg(not(any(target_os = "linux", windows)))]
fn use_headless_program() -> Result<(), String> {
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn load(dirs: &Dirs, overrides: &Overrides) -> Result<Loaded, String> {
    let loaded = Config::load(&dirs.config_file(), std::env::vars_os(), overrides).map_err(text)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    Ok(loaded)
}

fn reload(file: &Path, overrides: Overrides) -> executor::Reload {
    let file = file.to_owned();
    Box::new(move || {
        Config::load(&file, std::env::vars_os(), &overrides).map(|loaded| loaded.config).map_err(text)
    })
}

fn serve(executor: &Executor, instance: &Instance, dirs: &Dirs) -> Result<Server, String> {
    let (kill, commands) = (executor.kill_switch(), executor.clone());
    let setup = local::Setup {
        runtime_dir: dirs.runtime.clone(),
        host: executor.clone(),
        executor: tauri::async_runtime::handle().inner().clone(),
        stop: Arc::new(move || {
            kill.throw("deskhand stop");
        }),
        is_command: Arc::new(move |pid| commands.is_command(pid)),
    };
    Server::start(instance, setup).map_err(text)
}

/// The tray, the window, the notifications.
fn appear(app: &AppHandle, front: &Front, options: &Options, presence: Presence) {
    let (front, hidden) = (front.clone(), options.hidden);
    #[cfg(target_os = "linux")]
    tauri::async_runtime::spawn(tray::watch_for_tray(front.clone()));
    #[cfg(target_os = "linux")]
    tauri::async_runtime::spawn(presence.watch(front.clone()));
    #[cfg(not(target_os = "linux"))]
    drop(presence);
    tauri::async_runtime::spawn(notices::watch(front.clone()));
    tauri::async_runtime::spawn(windows::follow(app.clone(), front.clone()));
    tauri::async_runtime::spawn(end_with_the_session(app.clone()));
    #[cfg(feature = "dev-server")]
    if let Some(port) = options.dev_server {
        tauri::async_runtime::spawn(crate::dev_server::serve(front.clone(), port));
    }
    windows::on_main_thread(app, move |app| {
        if let Err(error) = tray::start(app, &front) {
            tracing::error!(%error, "there is no tray icon");
        }
        let links = app.clone();
        app.deep_link().on_open_url(move |event| {
            event.urls().iter().for_each(|address| links::arrived(&links, address));
        });
        if let Ok(Some(addresses)) = app.deep_link().get_current() {
            addresses.iter().for_each(|address| links::arrived(app, address));
        }
        if !hidden || front.snapshot().first_run {
            windows::open_main(app);
        }
    });
}

/// Claims the state folder; from a `deskhand run` in the background when the person wants that. None when they do not.
fn claim(app: &AppHandle, state: &Path) -> Result<Option<Instance>, String> {
    match Instance::claim(state) {
        Ok(instance) => return Ok(Some(instance)),
        Err(InstanceError::Running { pid: Some(pid), .. }) => {
            let question = format!(
                "Deskhand already runs in the background, without a window (process {pid}). Shall this app take over? Its chats end, and the \
                 platform can connect them again."
            );
            if !desktop::confirm(app, "Deskhand is running", question, "Take over", "Leave it") {
                return Ok(None);
            }
            end_process(pid)?;
        }
        Err(error) => return Err(text(error)),
    }
    let deadline = Instant::now() + HAND_OVER;
    loop {
        match Instance::claim(state) {
            Ok(instance) => return Ok(Some(instance)),
            Err(error) if Instant::now() > deadline => return Err(text(error)),
            // Another process' end is no event of ours.
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(unix)]
fn end_process(pid: u32) -> Result<(), String> {
    let pid =
        i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).ok_or("it has no process id")?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)
        .map_err(|error| format!("the other Deskhand cannot be ended: {error}"))
}

#[cfg(windows)]
fn end_process(pid: u32) -> Result<(), String> {
    Err(format!(
        "end it with Ctrl+C in its window, or in the Task Manager (process {pid}), and start the app again"
    ))
}

/// Quit was chosen: with active chats it asks.
pub(crate) fn quit(app: &AppHandle) {
    let app = app.clone();
    tauri::async_runtime::spawn_blocking(move || {
        let Some(front) = app.try_state::<Front>() else { return app.exit(0) };
        let chats = front.snapshot().chats.len();
        let question = match chats {
            0 => None,
            1 => Some("A chat is active. It ends when Deskhand ends.".to_owned()),
            n => Some(format!("{n} chats are active. They end when Deskhand ends.")),
        };
        if question.is_none_or(|text| desktop::confirm(&app, "Quit Deskhand?", text, "Quit", "Stay")) {
            end(&app, "quit");
        }
    });
}

/// Ends everything in order, then the app.
fn end(app: &AppHandle, reason: &'static str) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        if let Some(front) = app.try_state::<Front>() {
            front.executor().shutdown(reason).await;
        }
        app.exit(0);
    });
}

/// The desktop session ends, or somebody asks in the shell.
#[cfg(unix)]
async fn end_with_the_session(app: AppHandle) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt), Ok(mut hang_up)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()))
    else {
        return tracing::error!("signals cannot be heard: a log-out ends the app without order");
    };
    tokio::select! {
        _ = terminate.recv() => end(&app, "SIGTERM"),
        _ = interrupt.recv() => end(&app, "SIGINT"),
        _ = hang_up.recv() => end(&app, "SIGHUP"),
    }
}

#[cfg(windows)]
async fn end_with_the_session(app: AppHandle) {
    use tokio::signal::windows::{ctrl_logoff, ctrl_shutdown};
    let (Ok(mut log_off), Ok(mut shut_down)) = (ctrl_logoff(), ctrl_shutdown()) else {
        return tracing::error!("signals cannot be heard: a log-out ends the app without order");
    };
    tokio::select! {
        _ = log_off.recv() => end(&app, "log off"),
        _ = shut_down.recv() => end(&app, "shut down"),
    }
}
