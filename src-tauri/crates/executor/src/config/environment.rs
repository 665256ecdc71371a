//! `DESKHAND_*`: which variable is which key, and what its text means.

use std::ffi::OsString;

use super::error::{ConfigError, Origin};
use super::keys::{self, Kind};

const PREFIX: &str = "DESKHAND_";

/// Variables that are not settings but are ours all the same, read elsewhere.
const OTHERS: [&str; 6] = [
    "DESKHAND_CONFIG_DIR",
    "DESKHAND_KEYCHAIN_PASSPHRASE",
    "DESKHAND_KEYCHAIN_PASSPHRASE_FILE",
    "DESKHAND_LOG",
    "DESKHAND_RACE_SECONDS",
    "DESKHAND_STATE_DIR",
];

/// One setting that a variable makes.
pub(super) struct Setting {
    pub(super) key: &'static str,
    pub(super) value: toml::Value,
    pub(super) variable: String,
}

/// Splits the environment into settings and warnings. Warnings name variables, never values: a mistyped
/// `DESKHAND_KEYCHAIN_PASSPHRASE` must not end up in a log.
pub(super) fn read(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<(Vec<Setting>, Vec<String>), ConfigError> {
    let mut settings = Vec::new();
    let mut warnings = Vec::new();
    for (name, text) in environment {
        let Some(name) = ours(&name) else { continue };
        if OTHERS.contains(&name.as_str()) || text.is_empty() {
            continue;
        }
        let wanted = name[PREFIX.len()..].replace("__", ".").to_ascii_lowercase();
        let known = keys::KEYS.iter().find(|(key, _)| *key == wanted && !key.starts_with("rules."));
        let Some((key, kind)) = known else {
            warnings.push(unknown(&name, &wanted));
            continue;
        };
        let invalid = |reason: &str| ConfigError::Invalid {
            origin: Origin::Variable(name.clone()),
            key: (*key).to_owned(),
            reason: reason.to_owned(),
        };
        let text = text.to_str().ok_or_else(|| invalid("is not valid UTF-8"))?;
        let value = value(*kind, text).map_err(invalid)?;
        settings.push(Setting { key, value, variable: name });
    }
    settings.sort_by_key(|setting| setting.key);
    warnings.sort();
    Ok((settings, warnings))
}

/// The keys that variables fix, so that the file has no say in them.
pub fn overridden(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<String> {
    let settings = read(environment).map(|(settings, _)| settings).unwrap_or_default();
    settings.into_iter().map(|setting| setting.key.to_owned()).collect()
}

fn ours(name: &OsString) -> Option<String> {
    let name = name.to_string_lossy();
    // Windows knows no case in the names of variables.
    let name = if cfg!(windows) { name.to_ascii_uppercase() } else { name.into_owned() };
    name.starts_with(PREFIX).then_some(name)
}

fn unknown(name: &str, wanted: &str) -> String {
    if wanted == "rules" || wanted.starts_with("rules.") {
        return format!("{name} is ignored: rules are read from config.toml alone");
    }
    let key = keys::nearest(wanted);
    let key = format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase());
    let likeness = |candidate: &str| strsim::normalized_damerau_levenshtein(name, candidate);
    let nearest = OTHERS
        .into_iter()
        .fold(key.as_str(), |best, other| if likeness(other) > likeness(best) { other } else { best });
    format!("{name} is ignored: there is no such setting; did you mean {nearest}?")
}

fn value(kind: Kind, text: &str) -> Result<toml::Value, &'static str> {
    let trimmed = text.trim();
    match kind {
        Kind::Text => Ok(toml::Value::String(text.to_owned())),
        Kind::Flag => flag(trimmed).map(toml::Value::Boolean).ok_or("must be true or false"),
        Kind::Number => number(trimmed).ok_or("must be a number"),
        Kind::Folders | Kind::Switches if trimmed.starts_with('[') => {
            let table: toml::Table = toml::from_str(&format!("list = {trimmed}"))
                .map_err(|_| "must be a list such as [\"one\", \"two\"]")?;
            table.get("list").cloned().ok_or("must be a list such as [\"one\", \"two\"]")
        }
        Kind::Folders => {
            let parts = std::env::split_paths(text).filter(|part| !part.as_os_str().is_empty());
            Ok(parts.map(|part| part.to_string_lossy().into_owned()).collect::<Vec<_>>().into())
        }
        Kind::Switches => Ok(match flag(trimmed) {
            Some(on) => toml::Value::Boolean(on),
            None => trimmed.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>().into(),
        }),
    }
}

fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn number(text: &str) -> Option<toml::Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(toml::Value::Integer(whole));
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(toml::Value::Float)
}
