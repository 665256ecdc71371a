//! The list of keys: what exists, of which kind, and which one was meant.

use std::collections::BTreeSet;

use super::settings::Config;

/// How a key's value is written in a variable, where everything is text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Flag,
    Number,
    /// Folders, separated as in `PATH`.
    Folders,
    /// `true`, `false`, or names separated by commas.
    Switches,
}

/// Every key but `rules`, which has tables of its own.
pub(super) const KEYS: [(&str, Kind); 37] = [
    ("platform_url", Kind::Text),
    ("platform_ws_url", Kind::Text),
    ("display_name", Kind::Text),
    ("roots", Kind::Folders),
    ("browse_home", Kind::Flag),
    ("trash", Kind::Flag),
    ("max_concurrent", Kind::Number),
    ("command_timeout_seconds", Kind::Number),
    ("max_file_size_bytes", Kind::Number),
    ("oauth.client_id", Kind::Text),
    ("oauth.redirect", Kind::Text),
    ("capabilities.shell", Kind::Flag),
    ("capabilities.computer_use", Kind::Switches),
    ("capabilities.clipboard", Kind::Text),
    ("capabilities.local_llm", Kind::Flag),
    ("capabilities.recording", Kind::Flag),
    ("capabilities.hardware", Kind::Flag),
    ("consent.read", Kind::Text),
    ("consent.write", Kind::Text),
    ("consent.shell", Kind::Text),
    ("consent.screen", Kind::Text),
    ("consent.input", Kind::Text),
    ("consent.clipboard", Kind::Text),
    ("consent.recording", Kind::Text),
    ("rates.commands_per_minute", Kind::Number),
    ("rates.screenshots_per_minute", Kind::Number),
    ("reconnect.base_seconds", Kind::Number),
    ("reconnect.max_seconds", Kind::Number),
    ("reconnect.jitter_seconds", Kind::Number),
    ("local_llm.url", Kind::Text),
    ("recording.keep", Kind::Number),
    ("recording.keep_days", Kind::Number),
    ("recording.platform_review", Kind::Flag),
    // The keys of one `[[rules]]` table, so that a slip in them is named too.
    ("rules.capability", Kind::Text),
    ("rules.program", Kind::Text),
    ("rules.root", Kind::Text),
    ("rules.decision", Kind::Text),
];

/// The kind of a key that exists.
pub(super) fn kind(key: &str) -> Option<Kind> {
    KEYS.iter().find(|(name, _)| *name == key).map(|(_, kind)| *kind)
}

/// Whether `key` is a table that holds keys.
pub(super) fn is_section(key: &str) -> bool {
    KEYS.iter().any(|(name, _)| name.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
}

/// The key that `unknown` most likely means: a slip in its spelling, or the right name in the wrong table.
pub(super) fn nearest(unknown: &str) -> &'static str {
    let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let score = |name: &str| {
        let whole = strsim::normalized_damerau_levenshtein(unknown, name);
        let elsewhere = strsim::normalized_damerau_levenshtein(&last(unknown), &last(name)) * 0.9;
        whole.max(elsewhere)
    };
    let mut best = (KEYS[0].0, f64::MIN);
    for (name, _) in KEYS {
        let score = score(name);
        if score > best.1 {
            best = (name, score);
        }
    }
    best.0
}

/// The set values of `config` as (dotted key, value as text).
pub(super) fn leaves(config: &Config, into: &mut BTreeSet<(String, String)>) {
    // A `Config` is plain data that TOML can always express; were it ever not, every key would count as changed.
    let table = toml::Table::try_from(config).unwrap_or_default();
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => {
                into.extend(
                    inner.into_iter().map(|(name, value)| (format!("{key}.{name}"), value.to_string())),
                );
            }
            value => {
                into.insert((key, value.to_string()));
            }
        }
    }
}
