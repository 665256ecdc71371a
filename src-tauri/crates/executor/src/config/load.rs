//! From a file, an environment and flags to one checked configuration.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::check;
use super::environment::{self, Setting};
use super::error::{ConfigError, Origin};
use super::keys;
use super::platform::Platform;
use super::settings::Config;

/// A configuration is a page of text; what is larger is something else.
const MAX_FILE_SIZE: u64 = 1024 * 1024;

/// What the command line sets; it wins over everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--platform-url`
    pub platform_url: Option<String>,
}

/// A configuration that has been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// The platform's addresses, made from them.
    pub platform: Platform,
    /// What is odd and did no harm, one sentence each: unknown variables, a file that others can write,
    /// rules that allow nothing or everything.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads `file` (a missing one counts as empty), `environment` over it, `overrides` over that.
    ///
    /// Callers pass [`std::env::vars_os`]. A `platform_ws_url` counts for the `platform_url` of its own layer
    /// and those below: who names another platform in a variable or a flag does not mean the old one's socket.
    pub fn load(
        file: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        overrides: &Overrides,
    ) -> Result<Loaded, ConfigError> {
        let text = read(file)?;
        let mut layers = Layers::of_file(&text, file)?;
        let (settings, mut warnings) = environment::read(environment)?;
        layers.over(settings)?;
        if let Some(url) = &overrides.platform_url {
            layers.table.remove("platform_ws_url");
            layers.set("platform_url", url.clone().into(), Origin::Flag("--platform-url"));
        }
        warnings.extend(loose_permissions(file));
        let config = layers.config()?;
        let platform = check::check(&config).map_err(|fault| layers.invalid(fault))?;
        warnings.extend(check::odd_rules(&config));
        Ok(Loaded { config, platform, warnings })
    }
}

/// The values set so far, and who set them.
struct Layers {
    table: toml::Table,
    origins: BTreeMap<String, Origin>,
}

impl Layers {
    fn of_file(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let at = |span: Range<usize>| Origin::File(file.to_owned(), line_of(text, span.start));
        let syntax = |error: toml::de::Error| ConfigError::Syntax {
            origin: at(error.span().unwrap_or(0..0)),
            message: error.message().to_owned(),
        };
        let document = DeTable::parse(text).map_err(syntax)?;
        let mut places = Vec::new();
        walk(document.get_ref(), "", &mut places);
        for place in &places {
            if keys::kind(&place.key).is_none() && !keys::is_section(&place.key) {
                return Err(ConfigError::UnknownKey {
                    origin: at(place.at.clone()),
                    nearest: keys::nearest(&place.key),
                    key: place.key.clone(),
                });
            }
        }
        // Once with the places, for errors that name a line, and once more as the table to lay others over.
        if let Err(error) = toml::from_str::<Config>(text) {
            let span = error.span().unwrap_or(0..0);
            // Of the places that hold the fault, the innermost: tables come before what is in them.
            let key = places
                .iter()
                .rev()
                .find(|place| place.value.start <= span.start && span.end <= place.value.end);
            return Err(match key {
                Some(place) => ConfigError::Invalid {
                    origin: at(span),
                    key: place.key.clone(),
                    reason: format!("is wrong: {}", error.message()),
                },
                None => syntax(error),
            });
        }
        let table = toml::from_str(text).map_err(syntax)?;
        let origins = places.into_iter().map(|place| (place.key, at(place.at))).collect();
        Ok(Self { table, origins })
    }

    fn over(&mut self, settings: Vec<Setting>) -> Result<(), ConfigError> {
        if settings.iter().any(|setting| setting.key == "platform_url") {
            self.table.remove("platform_ws_url");
        }
        for Setting { key, value, variable } in settings {
            let origin = Origin::Variable(variable);
            let mut alone = Self { table: toml::Table::new(), origins: BTreeMap::new() };
            alone.set(key, value.clone(), origin.clone());
            if let Err(error) = alone.table.try_into::<Config>() {
                let reason = format!("is wrong: {}", error.message());
                return Err(ConfigError::Invalid { origin, key: key.to_owned(), reason });
            }
            self.set(key, value, origin);
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: toml::Value, origin: Origin) {
        match key.split_once('.') {
            None => {
                self.table.insert(key.to_owned(), value);
            }
            Some((section, name)) => {
                let section = self.table.entry(section).or_insert_with(|| toml::Table::new().into());
                if let toml::Value::Table(section) = section {
                    section.insert(name.to_owned(), value);
                }
            }
        }
        self.origins.insert(key.to_owned(), origin);
    }

    fn config(&self) -> Result<Config, ConfigError> {
        self.table.clone().try_into().map_err(|error: toml::de::Error| ConfigError::Syntax {
            origin: Origin::Default,
            message: error.message().to_owned(),
        })
    }

    fn invalid(&self, (key, reason): check::Fault) -> ConfigError {
        let origin = self.origins.get(&key).cloned().unwrap_or(Origin::Default);
        ConfigError::Invalid { origin, key, reason }
    }
}

/// A key of the file: where it and its value stand.
struct Place {
    key: String,
    at: Range<usize>,
    value: Range<usize>,
}

fn walk(table: &DeTable<'_>, prefix: &str, into: &mut Vec<Place>) {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        let below = format!("{key}.");
        into.push(Place { key, at: name.span(), value: value.span() });
        match value.get_ref() {
            DeValue::Table(inner) => walk(inner, &below, into),
            DeValue::Array(items) => {
                for item in items.iter() {
                    if let DeValue::Table(inner) = item.get_ref() {
                        walk(inner, &below, into);
                    }
                }
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {}
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The file's text; empty when there is none.
pub(super) fn read(file: &Path) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: file.to_owned(), source };
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut text = String::new();
    opened.take(MAX_FILE_SIZE + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_SIZE {
        return Err(ConfigError::TooLarge { path: file.to_owned(), limit: MAX_FILE_SIZE });
    }
    Ok(text)
}

/// Who can write the file can write the rules.
#[cfg(unix)]
fn loose_permissions(file: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let mode = std::fs::metadata(file).ok()?.mode();
    (mode & 0o022 != 0).then(|| {
        let file = file.display();
        format!("{file} can be written by other users, and with it what is allowed: chmod go-w {file}")
    })
}

#[cfg(windows)]
fn loose_permissions(_file: &Path) -> Option<String> {
    None
}
