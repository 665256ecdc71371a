//! The command line. The desktop starts the app, so it is short.

use std::path::PathBuf;

use clap::Parser;

/// Lets an agent work on this computer, as far as you allow it.
#[derive(Clone, Debug, Parser)]
#[command(name = "deskhand-app", version)]
pub(crate) struct Options {
    /// Keep the configuration in this folder
    #[arg(long, value_name = "FOLDER", env = "DESKHAND_CONFIG_DIR")]
    pub(crate) config_dir: Option<PathBuf>,
    /// Keep vault, log and state in this folder
    #[arg(long, value_name = "FOLDER", env = "DESKHAND_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Connect to this platform, whatever the configuration says
    #[arg(long, value_name = "URL")]
    pub(crate) platform_url: Option<String>,
    /// Start in the tray, with no window: what the login does
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Serve the pages to browsers at this port of 127.0.0.1, for tests
    #[cfg(feature = "dev-server")]
    #[arg(long, value_name = "PORT")]
    pub(crate) dev_server: Option<u16>,
    /// A deskhand:// address that the browser handed over
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: Option<String>,
}
