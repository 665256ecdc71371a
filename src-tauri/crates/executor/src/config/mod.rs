//! `config.toml`, `DESKHAND_*` over it, flags over that.
//!
//! The keys are a contract that scripts write, so a key nobody knows is an error that names the nearest one
//! and its line, never silence. A variable is a key in capitals with `DESKHAND_` before it, and two
//! underscores where the key has a dot: `DESKHAND_MAX_CONCURRENT`, `DESKHAND_CAPABILITIES__SHELL`. Lists
//! are a TOML array or, for folders, the OS's path list and else commas. An empty variable counts as not
//! set; an unknown one is a warning. `[[rules]]` come from the file alone.
//!
//! [`Config::load`] checks all of it, so that whoever holds a [`Loaded`] need not.

mod check;
mod dirs;
mod edit;
mod environment;
mod error;
mod keys;
mod load;
mod platform;
mod settings;
#[cfg(test)]
mod tests;

pub use dirs::{Dirs, DirsError};
pub use edit::{EditError, add_root, remove_root, remove_rule, set, set_platform};
pub use environment::overridden;
pub use error::{ConfigError, Origin};
pub use load::{Loaded, Overrides};
pub use platform::{BadUrl, Platform};
pub use settings::{
    Capabilities, Clipboard, ComputerUse, Config, Consent, Decision, LocalLlm, OAuth, Rates, Reconnect,
    Recording, Redirect, Rule, expand_home,
};
