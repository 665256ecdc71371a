//! What TOML's types do not say: bounds, URLs, folders, rules.

use std::path::PathBuf;

use super::platform::{Platform, http_url};
use super::settings::{Config, Decision, Rule, expand_home};
use crate::consent::{Capability, ProgramMatch};

/// A key and what its value has to be.
pub(super) type Fault = (String, String);

/// Largest file of one request that a setting may allow. A message is 16 MiB at most anyway; a range is read
/// from a file of any size.
const MAX_FILE_BYTES: f64 = 1024.0 * 1024.0 * 1024.0;

/// Checks everything and makes the platform's addresses.
pub(super) fn check(config: &Config) -> Result<Platform, Fault> {
    for (key, value, least, most) in numbers(config) {
        if !(least..=most).contains(&value) {
            return Err(fault(key, format!("= {value} must be between {least} and {most}")));
        }
    }
    if config.reconnect.max_seconds < config.reconnect.base_seconds {
        return Err(fault("reconnect.max_seconds", "must not be below reconnect.base_seconds"));
    }
    for (key, text, most) in texts(config) {
        if text.trim().is_empty() || text.chars().count() > most || text.chars().any(char::is_control) {
            return Err(fault(key, format!("must have 1 to {most} characters and no control characters")));
        }
    }
    for root in &config.roots {
        absolute(root).map_err(|reason| fault("roots", reason))?;
    }
    rules(config)?;
    http_url(&config.local_llm.url).map_err(|bad| fault("local_llm.url", bad.to_string()))?;
    Platform::new(&config.platform_url, config.platform_ws_url.as_deref())
        .map_err(|(key, bad)| fault(key, bad.to_string()))
}

#[expect(clippy::cast_precision_loss, reason = "a number that loses precision here is far out of bounds")]
fn numbers(config: &Config) -> [(&'static str, f64, f64, f64); 10] {
    let Config { rates, reconnect, recording, .. } = config;
    [
        ("max_concurrent", config.max_concurrent as f64, 1.0, 64.0),
        ("command_timeout_seconds", config.command_timeout_seconds as f64, 1.0, 86_400.0),
        ("max_file_size_bytes", config.max_file_size_bytes as f64, 1.0, MAX_FILE_BYTES),
        // The window keeps one time stamp for each command of the last minute.
        ("rates.commands_per_minute", f64::from(rates.commands_per_minute), 1.0, 1_000_000.0),
        ("rates.screenshots_per_minute", f64::from(rates.screenshots_per_minute), 1.0, 120.0),
        ("reconnect.base_seconds", reconnect.base_seconds, 0.01, 3600.0),
        ("reconnect.max_seconds", reconnect.max_seconds, 0.01, 3600.0),
        ("reconnect.jitter_seconds", reconnect.jitter_seconds, 0.0, 3600.0),
        ("recording.keep", f64::from(recording.keep), 1.0, 10_000.0),
        ("recording.keep_days", f64::from(recording.keep_days), 1.0, 3650.0),
    ]
}

fn texts(config: &Config) -> impl Iterator<Item = (&'static str, &str, usize)> {
    let name = config.display_name.as_deref().map(|name| ("display_name", name, 128));
    name.into_iter().chain([("oauth.client_id", config.oauth.client_id.as_str(), 256)])
}

/// The folder that `text` names, once `~` is expanded.
pub(super) fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = expand_home(text);
    if path.is_absolute() {
        return Ok(path);
    }
    Err(format!("has {text:?}: a folder is written from the top (absolute) or from ~/"))
}

fn rules(config: &Config) -> Result<(), Fault> {
    for rule in &config.rules {
        if let Some(program) = &rule.program {
            if rule.capability != Capability::Shell {
                return Err(fault("rules.program", "goes with capability = \"shell\" only"));
            }
            check_program(program).map_err(|reason| fault("rules.program", reason))?;
        }
        if let Some(root) = &rule.root {
            absolute(root).map_err(|reason| fault("rules.root", reason))?;
        }
    }
    Ok(())
}

/// Rules that allow nothing or everything, one sentence each: neither is what a person writes a rule for.
pub(super) fn odd_rules(config: &Config) -> Vec<String> {
    let allowing = config.rules.iter().filter(|rule| rule.decision == Decision::Allow);
    allowing.filter_map(odd).collect()
}

fn odd(rule: &Rule) -> Option<String> {
    match &rule.program {
        Some(program) if !is_found(program) => Some(format!(
            "a rule allows the program {program:?}, which is not found: it allows nothing; write its full path, or a name \
             that `PATH` has"
        )),
        None if rule.root.is_none() && rule.capability == Capability::Shell => Some(
            "a rule allows any command in any folder without asking; name a `program` in it, or a `root`"
                .to_owned(),
        ),
        Some(_) | None => None,
    }
}

/// As a rule looks for it.
fn is_found(program: &str) -> bool {
    let program = expand_home(program);
    ProgramMatch::argv(&program.to_string_lossy(), []).path().is_some_and(std::path::Path::is_file)
}

/// A rule names one program: a bare name, or where it is. A path from the current folder would mean another
/// program in each folder, and a command line would be the prefix match that rules never are.
fn check_program(program: &str) -> Result<(), String> {
    let has_separator = program.contains('/') || (cfg!(windows) && program.contains('\\'));
    if program.is_empty() || program.chars().any(char::is_control) {
        return Err("must name a program".into());
    }
    if has_separator && !expand_home(program).is_absolute() {
        return Err(format!("= {program:?} must be a bare name or a full path"));
    }
    if !has_separator && program.contains(char::is_whitespace) {
        return Err(format!("= {program:?} must be one program's name, without arguments"));
    }
    Ok(())
}

fn fault(key: &str, reason: impl Into<String>) -> Fault {
    (key.to_owned(), reason.into())
}
