//! `deskhand doctor`: what is wrong with this installation, and what to do about it.
//!
//! [`examine`] looks at everything that a run needs, each by really doing it: folders are opened, a secret makes its round
//! trip, the log is verified, the platform is dialled. It sends no token, changes no setting, takes nothing from a process
//! that runs, and goes on after a fault: one visit shows all of them.

mod capabilities;
mod folders;
mod http;
mod mounts;
mod platform;
mod process;
mod secrets;
mod settings;
#[cfg(test)]
mod tests;

use std::thread;

use serde::Serialize;
use vault::VaultOptions;

use crate::config::{ConfigError, Dirs, Loaded};

pub use folders::unusable_root;

/// How one check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, and the person should know something.
    Warn,
    /// It does not work.
    Fail,
    /// It was not looked at: it is not in use, or what it needs has failed.
    Skipped,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Which: stable, for scripts. `group` or `group.part`.
    pub name: &'static str,
    /// How it went.
    pub status: Status,
    /// What was found.
    pub detail: String,
    /// What to do; for warnings and failures.
    pub advice: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, detail: detail.into(), advice: None }
    }

    fn skipped(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, status: Status::Skipped, detail: detail.into(), advice: None }
    }

    fn warn(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Warn, detail: detail.into(), advice: Some(advice.into()) }
    }

    fn fail(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Fail, detail: detail.into(), advice: Some(advice.into()) }
    }
}

/// What was found. Its JSON is that of `doctor --json`: `{"ok": …, "checks": [{name, status, detail, advice}]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// No check failed.
    pub ok: bool,
    /// In the order in which a person should read them.
    pub checks: Vec<Check>,
}

/// What is examined.
pub struct Subject {
    /// Where everything is.
    pub dirs: Dirs,
    /// The configuration, or why there is none.
    pub config: Result<Loaded, ConfigError>,
    /// How the vault is opened.
    pub vault: VaultOptions,
}

/// Examines everything. Blocks, for half a minute where nothing on the network answers.
#[must_use]
pub fn examine(subject: &Subject) -> Diagnosis {
    let Subject { dirs, config, vault } = subject;
    let loaded = config.as_ref();
    // The network is what takes time; the rest is done meanwhile.
    let (reached, local) = thread::scope(|scope| {
        let reaching = scope.spawn(|| platform::check(loaded.ok().map(|loaded| &loaded.platform)));
        let local = check_local(dirs, config, vault);
        let reached = reaching.join().unwrap_or_else(|_| {
            vec![Check::fail("platform", "the check itself failed", "report this as a fault of deskhand")]
        });
        (reached, local)
    });
    let checks: Vec<_> = local.into_iter().chain(reached).collect();
    Diagnosis { ok: checks.iter().all(|check| check.status != Status::Fail), checks }
}

fn check_local(dirs: &Dirs, config: &Result<Loaded, ConfigError>, vault: &VaultOptions) -> Vec<Check> {
    let loaded = config.as_ref().ok();
    let mut checks = folders::own(dirs);
    let usable = checks.iter().all(|check| check.status != Status::Fail);
    checks.extend(settings::check(config));
    checks.extend(folders::roots(dirs, loaded));
    checks.extend(capabilities::check(loaded));
    if usable {
        checks.extend(secrets::check(dirs, loaded, vault));
        checks.extend(process::check(dirs));
    } else {
        for name in ["keychain", "sign_in", "audit", "process"] {
            checks.push(Check::skipped(name, "its folder cannot be used"));
        }
    }
    checks
}
