//! An installation of deskhand in a folder of its own, and its processes.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use executor::config::Dirs;
use tokio::process::{Child, Command};
use vault::{BackendChoice, SecretString, Vault, VaultOptions};

use crate::failure::{Code, Failure, Outcome, failed};

/// How long the executor may take to end in order: it closes its connections, ends its commands and syncs its log.
const END_PATIENCE: Duration = Duration::from_secs(15);

/// Where its files are. Removing `base` removes it.
#[derive(Clone)]
pub(super) struct Installation {
    pub(super) config_dir: PathBuf,
    pub(super) state_dir: PathBuf,
    /// What `deskhand run` says.
    pub(super) log: PathBuf,
    passphrase: String,
    program: PathBuf,
}

impl Installation {
    /// In `base`, with a random passphrase for its secrets.
    pub(super) fn new(base: &Path) -> Outcome<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(failed(Code::Failed))?;
        let installation = Self {
            config_dir: base.join("config"),
            state_dir: base.join("state"),
            log: base.join("deskhand.log"),
            passphrase: random.iter().map(|byte| format!("{byte:02x}")).collect(),
            program: std::env::current_exe().map_err(failed(Code::Failed))?,
        };
        let dirs = Dirs::find(Some(&installation.config_dir), Some(&installation.state_dir));
        dirs.and_then(|dirs| dirs.create()).map_err(failed(Code::Failed))?;
        Ok(installation)
    }

    /// Writes `config.toml`.
    pub(super) fn configure(&self, text: &str) -> Outcome {
        std::fs::write(self.config_file(), text).map_err(failed(Code::Failed))
    }

    pub(super) fn config_file(&self) -> PathBuf {
        self.config_dir.join("config.toml")
    }

    /// The secrets, in a file: a demo has no business in anybody's keychain, and a server has none.
    pub(super) async fn vault(&self) -> Outcome<Vault> {
        let options = VaultOptions {
            state_dir: self.state_dir.clone(),
            service: "deskhand-demo".to_owned(),
            passphrase: Some(SecretString::from(self.passphrase.clone())),
            backend: BackendChoice::File,
        };
        let opened = tokio::task::spawn_blocking(move || Vault::open(&options)).await;
        opened.map_err(failed(Code::Failed))?.map_err(failed(Code::Failed))
    }

    /// Runs a subcommand that shall succeed, and gives what it says.
    pub(super) async fn say<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Outcome<String> {
        let mut command = self.command();
        let done =
            command.args(arguments).stdin(Stdio::null()).output().await.map_err(failed(Code::Failed))?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        if done.status.success() {
            return Ok(said);
        }
        let trouble = String::from_utf8_lossy(&done.stderr);
        Err(Failure::new(Code::Failed, format!("{}: {said}{}", done.status, trouble.trim())))
    }

    /// Starts `deskhand run`.
    pub(super) fn start(&self) -> Outcome<Machine> {
        let log = File::create(&self.log).map_err(failed(Code::Failed))?;
        let mut command = self.command();
        command.arg("run").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // Ctrl-C is for the demo, which ends the executor in order.
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(windows)]
        command.creation_flags(windows_flags::CREATE_NEW_PROCESS_GROUP);
        let process = command.spawn().map_err(failed(Code::Failed))?;
        Ok(Machine { process })
    }

    /// This very program, without anything that the person's own installation is set to.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DESKHAND_") {
                command.env_remove(name);
            }
        }
        command.env(vault::PASSPHRASE_VARIABLE, &self.passphrase).env("NO_COLOR", "1").kill_on_drop(true);
        command.arg("--config-dir").arg(&self.config_dir).arg("--state-dir").arg(&self.state_dir);
        command
    }

    /// How a person would run a subcommand on it.
    pub(super) fn as_typed(&self, subcommand: &str) -> String {
        let (variable, passphrase) = (vault::PASSPHRASE_VARIABLE, &self.passphrase);
        let (program, config, state) =
            (self.program.display(), self.config_dir.display(), self.state_dir.display());
        format!("{variable}={passphrase} {program} --config-dir {config} --state-dir {state} {subcommand}")
    }
}

#[cfg(windows)]
mod windows_flags {
    /// winbase.h: the new process does not get our Ctrl-C.
    pub(super) const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
}

/// A running `deskhand run`. Dropped, it is killed.
pub(super) struct Machine {
    process: Child,
}

impl Machine {
    /// The process, while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// Why it is no longer running, when it is not.
    pub(super) fn ended(&mut self) -> Option<String> {
        match self.process.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Ends it in order; one that does not end is killed, and that is an error.
    pub(super) async fn end(mut self) -> Outcome {
        self.ask_to_end();
        match tokio::time::timeout(END_PATIENCE, self.process.wait()).await {
            Ok(Ok(status)) if status.success() || cfg!(windows) => Ok(()),
            Ok(Ok(status)) => Err(Failure::new(Code::Failed, format!("the executor ended with {status}"))),
            Ok(Err(error)) => Err(Failure::new(Code::Failed, error)),
            Err(_) => {
                self.process.kill().await.map_err(failed(Code::Failed))?;
                Err(Failure::new(Code::Failed, "the executor did not end and was killed"))
            }
        }
    }

    #[cfg(unix)]
    fn ask_to_end(&mut self) {
        let pid = self.process.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    /// A process without a console of its own cannot be asked; its commands end with it, they are in its jobs.
    #[cfg(windows)]
    fn ask_to_end(&mut self) {
        let _ = self.process.start_kill();
    }
}

/// Whether the process that left this sign of life still lives.
#[cfg(unix)]
pub(super) fn lives(sign: &Path) -> bool {
    let pid = std::fs::read_to_string(sign).ok().and_then(|text| text.trim().parse().ok());
    pid.and_then(rustix::process::Pid::from_raw)
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Whether the process that left this sign of life still lives: it keeps the file open.
#[cfg(windows)]
pub(super) fn lives(sign: &Path) -> bool {
    sign.exists() && std::fs::remove_file(sign).is_err()
}
