//! The real `deskhand`, as somebody runs it who has just signed in: folders of its own, the file vault, and a platform
//! that this program is.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use system_tests::scripted::{Peer, Scripted};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use vault::{BackendChoice, Vault, VaultOptions};

use crate::measure::ms;
use crate::process::Pid;

const PASSPHRASE: &str = "a benchmark's passphrase";

/// Requests in flight on a connection and on the machine: enough for all that is asked here at once.
pub(crate) const MAX_CONCURRENT: u32 = 16;

/// A signed-in installation and its platform.
pub(crate) struct Installation {
    dir: TempDir,
    /// The platform's runtime.
    pub(crate) runtime: Runtime,
    /// The platform.
    pub(crate) scripted: Scripted,
}

/// `deskhand run`. Ended when dropped.
pub(crate) struct Daemon {
    child: Child,
    /// When it was executed.
    pub(crate) began: Instant,
}

impl Installation {
    /// Folders, configuration, and a sign-in by `deskhand login --with-token`.
    pub(crate) fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let scripted = runtime.block_on(Scripted::start());
        let dir = tempfile::tempdir()?;
        let installation = Self { dir, runtime, scripted };
        for folder in ["config", "state", "work"] {
            std::fs::create_dir(installation.path(folder))?;
        }
        let config = format!(
            "platform_url = {:?}\ndisplay_name = \"bench\"\nroots = [{:?}]\ntrash = false\nmax_concurrent = {MAX_CONCURRENT}\n\
             [capabilities]\nshell = true\n[consent]\nshell = \"allow\"\n[rates]\ncommands_per_minute = 600\n",
            installation.scripted.url,
            installation.path("work"),
        );
        std::fs::write(installation.path("config").join("config.toml"), config)?;
        installation.sign_in()?;
        Ok(installation)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `deskhand` with these folders and without the rest of our environment's bearing on it.
    pub(crate) fn command(&self, arguments: &[&str]) -> Result<Command> {
        let program = std::env::current_exe()?
            .with_file_name("deskhand")
            .with_extension(std::env::consts::EXE_EXTENSION);
        ensure!(
            program.exists(),
            "{} is not there: `cargo xtask bench` builds it, and so does cargo build --release --package deskhand",
            program.display()
        );
        let mut command = Command::new(program);
        command.args(arguments).arg("--config-dir").arg(self.path("config"));
        command.arg("--state-dir").arg(self.path("state"));
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("DESKHAND_"))
        {
            command.env_remove(name);
        }
        // The file vault is measured, not somebody's keychain.
        command.env_remove("DBUS_SESSION_BUS_ADDRESS").env_remove("XDG_RUNTIME_DIR");
        command.env("DESKHAND_KEYCHAIN_PASSPHRASE", PASSPHRASE).env("DESKHAND_LOG", "error");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }

    fn sign_in(&self) -> Result<()> {
        let mut login = self.command(&["login", "--with-token"])?.stdin(Stdio::piped()).spawn()?;
        let token = json!({"access_token": "token", "refresh_token": "refresh", "expires_in": 86_400});
        login.stdin.take().context("its standard input")?.write_all(token.to_string().as_bytes())?;
        ensure!(login.wait()?.success(), "`deskhand login --with-token` failed");
        Ok(())
    }

    /// How long it takes to open the vault, which is the time of its key derivation. In milliseconds.
    pub(crate) fn key_derivation_ms(&self) -> Result<f64> {
        let options = VaultOptions {
            state_dir: self.path("state"),
            service: "deskhand-bench".to_owned(),
            passphrase: Some(PASSPHRASE.into()),
            backend: BackendChoice::File,
        };
        let began = Instant::now();
        let vault = Vault::open(&options)?;
        ensure!(vault.tokens()?.is_some(), "no sign-in in the vault");
        Ok(ms(began.elapsed()))
    }

    /// `deskhand run`.
    pub(crate) fn run(&self) -> Result<Daemon> {
        let mut command = self.command(&["run"])?;
        let began = Instant::now();
        Ok(Daemon { child: command.spawn()?, began })
    }

    /// The control connection's platform end, greeted.
    pub(crate) fn control(&self) -> Peer {
        self.runtime.block_on(async {
            let mut peer = self.scripted.accept().await;
            peer.welcome(json!({"max_concurrent": MAX_CONCURRENT})).await;
            peer
        })
    }

    /// A session on the folder `work`, its data connection's platform end, greeted.
    pub(crate) fn session(&self, control: &mut Peer, id: &str) -> Result<Peer> {
        self.runtime.block_on(async {
            let attached = control.attach(id).await;
            ensure!(attached.kind == "SESSION_ATTACHED", "{attached:?}");
            let revision = attached.payload["revision"].clone();
            control.send("ACTIVATE_SESSION", json!({"session_id": id, "revision": revision})).await;
            let mut data = self.scripted.accept().await;
            data.welcome(json!({"session_id": id, "max_concurrent": MAX_CONCURRENT})).await;
            Ok(data)
        })
    }

    /// A request and its answer.
    pub(crate) fn request(&self, peer: &mut Peer, kind: &str, payload: Value) -> Result<Value> {
        let answer = self.runtime.block_on(peer.request(kind, payload));
        ensure!(answer.kind != "ERROR", "{kind} was answered with {:?}", answer.payload);
        Ok(answer.payload)
    }

    /// Reads what comes for so long: pings are answered meanwhile.
    pub(crate) fn keep_alive(&self, peers: [&mut Peer; 2], long: Duration) {
        let [one, other] = peers;
        self.runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(long) => {}
                _ = one.end() => {}
                _ = other.end() => {}
            }
        });
    }
}

impl Daemon {
    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        Pid(self.child.id())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
