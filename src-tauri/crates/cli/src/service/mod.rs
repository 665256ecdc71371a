//! `deskhand service`: `deskhand run`, started by the OS when the person logs in.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod os;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod os;
#[cfg(windows)]
#[path = "windows.rs"]
mod os;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::args::Service;
use crate::context::{Context, Given};
use crate::failure::{Code, Failure, Outcome, failed};

pub(crate) fn service(context: &Context, command: Service) -> Outcome {
    match command {
        Service::Install { passphrase_file } => {
            // A service that cannot run is better found out now.
            context.load()?;
            context.make_folders()?;
            let program = Program::of_this(&context.given)?;
            os::install(&program, &context.dirs.logs, passphrase_file.as_deref())
        }
        Service::Uninstall => os::uninstall(),
        Service::Status => os::status(),
    }
}

/// What the OS shall start: this program, about the same installation.
struct Program {
    executable: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    fn of_this(given: &Given) -> Outcome<Self> {
        let executable = std::env::current_exe().map_err(failed(Code::Failed))?;
        let mut arguments = Vec::new();
        for (flag, folder) in [("--config-dir", &given.config_dir), ("--state-dir", &given.state_dir)] {
            if let Some(folder) = folder {
                let folder = std::path::absolute(folder).map_err(failed(Code::Setup))?;
                arguments.extend([flag.to_owned(), text(&folder)?.to_owned()]);
            }
        }
        if let Some(url) = &given.platform_url {
            arguments.extend(["--platform-url".to_owned(), url.clone()]);
        }
        Ok(Self { executable, arguments })
    }

    /// The executable, then what comes before `run`.
    fn words(&self) -> Outcome<impl Iterator<Item = &str>> {
        let executable = text(&self.executable)?;
        Ok(std::iter::once(executable).chain(self.arguments.iter().map(String::as_str)))
    }
}

/// A path that can stand in a service's file.
fn text(path: &Path) -> Outcome<&str> {
    path.to_str().filter(|text| !text.contains(char::is_control)).ok_or_else(|| {
        let message = format!("{} has characters that a service's file cannot hold", path.display());
        Failure::new(Code::Setup, message)
    })
}

/// Runs one of the OS's own programs and waits for it. What it says on standard error is passed on.
fn tool(program: &str, arguments: &[&str]) -> Outcome {
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let line = || format!("{program} {}", arguments.join(" "));
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(Code::Unavailable, format!("`{}` failed ({status})", line()))),
        Err(error) => Err(Failure::new(Code::Unavailable, format!("`{}` cannot be run: {error}", line()))),
    }
}

/// Whether one of the OS's own programs answers yes, without a word.
fn says_yes(program: &str, arguments: &[&str]) -> bool {
    let quiet = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

fn write(path: &Path, content: impl AsRef<[u8]>) -> Outcome {
    let written =
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, content));
    written.map_err(|error| Failure::new(Code::Setup, format!("cannot write {}: {error}", path.display())))
}

/// Removes a file; false when there was none.
#[cfg(unix)]
fn remove(path: &Path) -> Outcome<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::new(Code::Setup, format!("cannot remove {}: {error}", path.display()))),
    }
}

/// Says whether it is there and runs, by the exit code too.
fn report(installed: bool, runs: bool, place: &str) -> Outcome {
    match (installed, runs) {
        (true, true) => crate::output::line(format_args!("installed ({place}) and running")),
        (true, false) => {
            crate::output::line(format_args!("installed ({place}) and not running"))?;
            Err(Failure::silent(Code::Unavailable))
        }
        (false, _) => {
            crate::output::line("not installed")?;
            Err(Failure::silent(Code::Unavailable))
        }
    }
}

/// Text within an element of XML.
#[cfg(any(target_os = "macos", windows))]
fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
