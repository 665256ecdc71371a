//! What most commands need: where things are, the configuration, the secrets.

use std::env;
use std::path::{Path, PathBuf};

use executor::config::{Config, ConfigError, Dirs, Loaded, Origin, Overrides};
use executor::oauth::OAuthConfig;
use vault::{BackendChoice, SecretString, Vault, VaultError, VaultOptions};

use crate::args::Global;
use crate::failure::{Code, Failure, Outcome, failed};

/// The installation that a command is about.
pub(crate) struct Context {
    pub(crate) dirs: Dirs,
    pub(crate) overrides: Overrides,
    /// As given, for a service that shall be about the same installation.
    pub(crate) given: Given,
    passphrase: Result<Option<SecretString>, String>,
}

/// The flags and variables that chose the installation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    pub(crate) config_dir: Option<PathBuf>,
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) platform_url: Option<String>,
}

impl Context {
    pub(crate) fn new(
        global: &Global,
        passphrase: Result<Option<SecretString>, VaultError>,
    ) -> Outcome<Self> {
        let given = Given {
            config_dir: folder(global.config_dir.as_deref(), "DESKHAND_CONFIG_DIR"),
            state_dir: folder(global.state_dir.as_deref(), "DESKHAND_STATE_DIR"),
            platform_url: global.platform_url.clone(),
        };
        let dirs = Dirs::find(given.config_dir.as_deref(), given.state_dir.as_deref())
            .map_err(failed(Code::Setup))?;
        let overrides = Overrides { platform_url: given.platform_url.clone() };
        // Only who needs the vault needs a passphrase that can be used.
        Ok(Self { dirs, overrides, given, passphrase: passphrase.map_err(|error| error.to_string()) })
    }

    /// The configuration, its warnings logged.
    pub(crate) fn load(&self) -> Outcome<Loaded> {
        let loaded = self.try_load().map_err(not_loaded)?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        Ok(loaded)
    }

    pub(crate) fn try_load(&self) -> Result<Loaded, ConfigError> {
        Config::load(&self.dirs.config_file(), env::vars_os(), &self.overrides)
    }

    /// Our own folders, made where they are missing.
    pub(crate) fn make_folders(&self) -> Outcome {
        self.dirs.create().map_err(failed(Code::Setup))
    }

    pub(crate) fn vault_options(&self) -> Outcome<VaultOptions> {
        let passphrase = self.passphrase.clone().map_err(failed(Code::Setup))?;
        let usual = Dirs::find(None, None).map_or_else(|_| self.dirs.state.clone(), |dirs| dirs.state);
        Ok(VaultOptions {
            state_dir: self.dirs.state.clone(),
            service: vault::service_name(&self.dirs.state, &usual),
            passphrase,
            backend: BackendChoice::Auto,
        })
    }

    /// The secrets. Makes the state folder where it is missing.
    pub(crate) fn vault(&self) -> Outcome<Vault> {
        self.make_folders()?;
        Vault::open(&self.vault_options()?).map_err(failed(Code::Setup))
    }

    pub(crate) fn oauth(&self, loaded: &Loaded) -> Outcome<OAuthConfig> {
        executor::oauth_config(&loaded.config, &loaded.platform).map_err(failed(Code::Setup))
    }
}

fn not_loaded(error: ConfigError) -> Failure {
    let code = match &error {
        ConfigError::Invalid { origin: Origin::Flag(_), .. } => Code::Usage,
        ConfigError::Invalid { .. }
        | ConfigError::UnknownKey { .. }
        | ConfigError::Syntax { .. }
        | ConfigError::TooLarge { .. }
        | ConfigError::Unreadable { .. } => Code::Setup,
    };
    Failure::new(code, error)
}

/// The flag, else the variable; an empty one counts as not set.
fn folder(flag: Option<&Path>, variable: &str) -> Option<PathBuf> {
    let variable = || env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    flag.map(Path::to_owned).or_else(variable)
}

/// A runtime for a command that waits for the network or the local socket, and for little else.
pub(crate) fn block_on<T>(what: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Failed, format!("the runtime cannot be started: {error}")))?;
    let result = runtime.block_on(what);
    // Reading standard input cannot be cancelled; nobody shall have to press Enter for us to end.
    runtime.shutdown_background();
    result
}
