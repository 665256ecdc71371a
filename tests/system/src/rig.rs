//! An executor on folders of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use executor::config::{Config, Dirs, Overrides, Platform};
use executor::consent::Prompter;
use executor::events::{ConnectionState, Event};
use executor::{Executor, Setup, Timings};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;
use vault::{BackendChoice, Tokens, Vault, VaultOptions};

/// What a test waits for at most. Generous: it is only reached when the test fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An executor's folders, settings and keys; start it with [`Rig::start`].
pub struct Rig {
    dir: TempDir,
    /// The folder that the agent may be given.
    pub root: PathBuf,
    /// The settings.
    pub config: Config,
    platform: Platform,
    /// Folders of the executor.
    pub dirs: Dirs,
    /// Tokens and keys.
    pub vault: Vault,
    /// Heartbeats.
    pub timings: Timings,
    /// Who answers prompts.
    pub prompter: Option<Arc<dyn Prompter>>,
}

impl Rig {
    /// Folders and settings for an executor of this platform, with commands allowed without asking and short delays.
    ///
    /// # Panics
    ///
    /// When the machine has no room for them.
    #[must_use]
    pub fn new(platform_url: &str) -> Self {
        Self::with(platform_url, "")
    }

    /// As [`Rig::new`], with more lines of `config.toml`. Tables that it opens come after the ones set here.
    ///
    /// # Panics
    ///
    /// When the machine has no room for them, or the lines are no configuration.
    #[must_use]
    pub fn with(platform_url: &str, more: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let base = std::fs::canonicalize(dir.path()).expect("a canonical path");
        let root = base.join("work");
        std::fs::create_dir(&root).expect("the root");
        let dirs = Dirs::find(Some(&base.join("config")), Some(&base.join("state"))).expect("folders");
        dirs.create().expect("folders");
        let text = format!(
            "platform_url = {platform_url:?}\ndisplay_name = \"test machine\"\nroots = [{root:?}]\ntrash = false\n{top}\n\
             [capabilities]\nshell = true\n[consent]\nshell = \"allow\"\n[rates]\ncommands_per_minute = 600\n\
             [reconnect]\nbase_seconds = 0.05\nmax_seconds = 0.2\njitter_seconds = 0.01\n{tables}",
            top = more.split_once("[").map_or(more, |(top, _)| top),
            tables = more.find('[').map_or("", |at| &more[at..]),
        );
        std::fs::write(dirs.config_file(), text).expect("config.toml");
        let loaded =
            Config::load(&dirs.config_file(), [], &Overrides::default()).expect("a good configuration");
        let vault = open_vault(&dirs.state);
        let rig = Self {
            dir,
            root,
            config: loaded.config,
            platform: loaded.platform,
            dirs,
            vault,
            timings: Timings::default(),
            prompter: None,
        };
        rig.sign_in("token-1", Some("refresh-1"));
        rig
    }

    /// Stores a sign-in, as a login would.
    ///
    /// # Panics
    ///
    /// When the vault does not take it.
    pub fn sign_in(&self, access: &str, refresh: Option<&str>) {
        self.sign_in_for(access, refresh, 3600.0);
    }

    /// As [`Rig::sign_in`], with an access token that ends after so many seconds.
    ///
    /// # Panics
    ///
    /// When the vault does not take it.
    pub fn sign_in_for(&self, access: &str, refresh: Option<&str>, seconds: f64) {
        let tokens = Tokens {
            access_token: access.into(),
            refresh_token: refresh.map(Into::into),
            expires_at: protocol::now() + seconds,
            platform: self.platform.http().to_owned(),
            client_id: self.config.oauth.client_id.clone(),
        };
        self.vault.store_tokens(&tokens).expect("the vault takes tokens");
    }

    /// Starts the executor and connects it.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[must_use]
    pub fn start(&self) -> Executor {
        let executor = self.start_unconnected();
        executor.connect_unless_off();
        executor
    }

    /// Starts the executor.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[must_use]
    pub fn start_unconnected(&self) -> Executor {
        self.try_start().expect("the executor starts")
    }

    /// Starts the executor after another one on the same folders was shut down. The tasks of that one let go of the log when
    /// they have ended, which has no event.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn restart(&self) -> Executor {
        let mut executor = None;
        until("the executor starts again", || {
            executor = self.try_start().ok();
            executor.is_some()
        })
        .await;
        executor.expect("it has started")
    }

    /// Starts the executor, or says why not.
    ///
    /// # Errors
    ///
    /// As [`Executor::start`].
    pub fn try_start(&self) -> Result<Executor, executor::StartError> {
        let file = self.dirs.config_file();
        Executor::start(Setup {
            config: self.config.clone(),
            platform: self.platform.clone(),
            dirs: self.dirs.clone(),
            vault: self.vault.clone(),
            prompter: self.prompter.clone(),
            headless: true,
            timings: self.timings,
            reload: Box::new(move || {
                Config::load(&file, [], &Overrides::default()).map(|l| l.config).map_err(|e| e.to_string())
            }),
        })
    }

    /// The records of the current log file, oldest first.
    ///
    /// # Panics
    ///
    /// When a line is no JSON.
    #[must_use]
    pub fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dirs.audit_log()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a record is JSON")).collect()
    }

    /// The records of one operation.
    #[must_use]
    pub fn logged(&self, op: &str) -> Vec<Value> {
        self.log().into_iter().filter(|record| record["op"] == op).collect()
    }

    /// A folder outside the root, beside it.
    #[must_use]
    pub fn outside(&self) -> &Path {
        self.dir.path()
    }
}

/// Of a test's vault; no secret.
pub const PASSPHRASE: &str = "a test's passphrase";

/// A vault in a file.
fn open_vault(state_dir: &Path) -> Vault {
    Vault::open(&VaultOptions {
        state_dir: state_dir.to_owned(),
        service: "deskhand-test".to_owned(),
        passphrase: Some(PASSPHRASE.into()),
        backend: BackendChoice::File,
    })
    .expect("a file vault")
}

/// Waits for the event that `wanted` accepts.
///
/// # Panics
///
/// When it does not come.
pub async fn wait_for(events: &mut Receiver<Event>, mut wanted: impl FnMut(&Event) -> bool) -> Event {
    let search = async {
        loop {
            match events.recv().await {
                Ok(event) if wanted(&event) => return event,
                Ok(_) => {}
                Err(error) => panic!("the stream of events ended: {error}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, search).await.expect("the event did not come")
}

/// Waits for a state of the control connection.
///
/// # Panics
///
/// When it does not come.
pub async fn wait_for_state(
    events: &mut Receiver<Event>,
    mut wanted: impl FnMut(&ConnectionState) -> bool,
) -> ConnectionState {
    match wait_for(events, |e| matches!(e, Event::Connection { state } if wanted(state))).await {
        Event::Connection { state } => state,
        other => panic!("{other:?}"),
    }
}

/// Waits until `done` holds, for what has no event.
///
/// # Panics
///
/// When it does not come to hold.
pub async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !done() {
        assert!(tokio::time::Instant::now() < deadline, "did not happen: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Processes whose arguments contain this, as far as they live.
#[must_use]
pub fn running(what: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let dead = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']));
        if arguments.contains(what) && !dead {
            found.push(arguments);
        }
    }
    found
}
