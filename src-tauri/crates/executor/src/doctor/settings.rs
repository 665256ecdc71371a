//! The configuration.

use super::Check;
use crate::config::{ConfigError, Decision, Loaded};

pub(super) fn check(config: &Result<Loaded, ConfigError>) -> Vec<Check> {
    let loaded = match config {
        Ok(loaded) => loaded,
        Err(error) => {
            return vec![Check::fail(
                "config",
                error.to_string(),
                "correct it, then run `deskhand doctor` again",
            )];
        }
    };
    let mut checks = vec![Check::ok("config", format!("valid; the platform is {}", loaded.platform.host()))];
    checks.extend(
        loaded
            .warnings
            .iter()
            .map(|warning| Check::warn("config.ignored", warning.clone(), "correct or remove it")),
    );
    let consent = &loaded.config.consent;
    if consent.recording == Decision::Allow {
        checks.push(Check::warn(
            "consent.recording",
            "recording = \"allow\": an agent can record this machine without asking (headless `run` only; the app asks)",
            "set it to \"ask\" in [consent], unless nobody works at this machine",
        ));
    }
    if consent.shell == Decision::Allow && loaded.config.capabilities.shell {
        checks.push(Check::warn(
            "consent.shell",
            "shell = \"allow\": an agent can run any command as you, outside its folder too, without asking",
            "set it to \"ask\" in [consent] and allow single programs in [[rules]]",
        ));
    }
    checks
}
