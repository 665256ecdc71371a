//! The desktop app: a tray icon, windows and prompts over the executor.
//!
//! A shell without logic of its own: what the pages do is [`executor::front`], what an agent may do is the executor.
//!
//! | file | what is in it |
//! |---|---|
//! | `options` | the command line |
//! | `start` | from nothing to a running executor, and to the end |
//! | `tray` | the icon and its menu |
//! | `windows` | the main window |
//! | `prompts` | the consent prompt's window |
//! | `unlock` | the question for the passphrase, where there is no keychain |
//! | `presence` | whether somebody can see a prompt |
//! | `commands` | what the pages can call |
//! | `desktop` | dialogs, browser, keys, login items |
//! | `links` | `deskhand://` addresses |
//! | `notices` | notifications |
//! | `dev_server` | the pages in a plain browser, for tests |
#![cfg_attr(all(windows, not(debug_assertions)), windows_subsystem = "windows")]
#![forbid(unsafe_code)]

mod commands;
mod desktop;
#[cfg(feature = "dev-server")]
mod dev_server;
mod links;
mod notices;
mod options;
mod presence;
mod prompts;
mod start;
mod tray;
mod unlock;
mod windows;

use std::process::ExitCode;

use clap::Parser as _;
use tauri::RunEvent;
use tracing_subscriber::EnvFilter;

use options::Options;

/// Frames, prompts and timers are little work; what takes long has threads of its own.
const WORKERS: usize = 2;

fn main() -> ExitCode {
    exec::supervisor::run_if_asked();
    exec::memory::keep_until_given_back();
    let hardened = vault::harden_process();
    // Before the first thread: it is wiped from the environment, which threads read.
    let passphrase = vault::passphrase_from_env();
    let options = Options::parse();
    let filter = EnvFilter::try_from_env("DESKHAND_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    if let Err(error) = hardened {
        tracing::warn!(%error, "this process' memory is open to other programs of yours");
    }
    match run(options, passphrase.map_err(|error| error.to_string())) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("the app cannot start: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(
    options: Options,
    passphrase: Result<Option<vault::SecretString>, String>,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    tauri::async_runtime::set(runtime.handle().clone());
    let app = tauri::Builder::default()
        // First, so that a second start does nothing but tell the first one.
        .plugin(tauri_plugin_single_instance::init(|app, arguments, _folder| {
            links::second_start(app, &arguments);
        }))
        .plugin(tauri_plugin_deep_link::init())
        .plugin(tauri_plugin_autostart::Builder::new().arg("--hidden").build())
        .plugin(desktop::shortcut_plugin())
        .invoke_handler(commands::handler())
        .setup(move |app| {
            start::begin(app.handle(), options, passphrase);
            Ok(())
        })
        .build(tauri::generate_context!())?;
    let code = app.run_return(|app, event| match event {
        // The last window closes and the tray stays. An exit with a code was asked for.
        RunEvent::ExitRequested { api, code: None, .. } => api.prevent_exit(),
        RunEvent::WindowEvent { label, event, .. } => windows::on_event(app, &label, &event),
        _ => {} // what else the library tells is nothing to this app
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
