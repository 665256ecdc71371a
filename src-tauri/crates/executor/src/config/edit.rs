//! Changing one key of `config.toml`, with everything else in it left as the person wrote it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use super::check;
use super::error::ConfigError;
use super::keys;
use super::load::{self, Overrides};
use super::settings::{Config, Rule, expand_home};

/// Why the file was left as it was.
#[derive(Debug, Error)]
pub enum EditError {
    /// It is not a configuration to begin with, or would not be one afterwards.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no such key.
    #[error("there is no key `{key}`; did you mean `{nearest}`?")]
    UnknownKey {
        /// The key asked for.
        key: String,
        /// The most similar one.
        nearest: &'static str,
    },
    /// A folder that cannot be a root.
    #[error("a root {0}")]
    Root(String),
    /// It cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Adds a folder to `roots`. False when it is among them already. Whether the folder may be a root is the
/// jail's to say, before this.
pub fn add_root(file: &Path, root: &str) -> Result<bool, EditError> {
    let added = check::absolute(root).map_err(EditError::Root)?;
    edit(file, |document, config| {
        if config.roots().contains(&added) {
            return Ok(false);
        }
        push(roots(document, config), root);
        Ok(true)
    })
}

/// Takes a folder off `roots`. False when it is not among them.
pub fn remove_root(file: &Path, root: &str) -> Result<bool, EditError> {
    let removed = check::absolute(root).map_err(EditError::Root)?;
    edit(file, |document, config| {
        let list = roots(document, config);
        let is_it = |value: &Value| value.as_str().is_some_and(|text| expand_home(text) == removed);
        let found = list.iter().position(is_it);
        found.inspect(|index| remove(list, *index));
        Ok(found.is_some())
    })
}

/// Takes out the rule at `index`, if it is `rule`: somebody may have edited the file since it was read. False when it is not.
pub fn remove_rule(file: &Path, index: usize, rule: &Rule) -> Result<bool, EditError> {
    edit(file, |document, config| {
        let rules = document.get_mut("rules").and_then(Item::as_array_of_tables_mut);
        match rules {
            Some(rules) if config.rules.get(index) == Some(rule) => {
                rules.remove(index);
                Ok(true)
            }
            Some(_) | None => Ok(false),
        }
    })
}

/// Makes `url` the platform. False when it is already. A `platform_ws_url` goes: it is the old platform's socket, where
/// the new one's tokens have no business.
pub fn set_platform(file: &Path, url: &str) -> Result<bool, EditError> {
    edit(file, |document, config| {
        if config.platform_url == url {
            return Ok(false);
        }
        document.remove("platform_ws_url");
        replace_value(document.entry("platform_url").or_insert(Item::None), url.into());
        Ok(true)
    })
}

/// Gives `key` (dotted) a value. False when it had that value already.
pub fn set(file: &Path, key: &str, value: &toml::Value) -> Result<bool, EditError> {
    if keys::kind(key).is_none() || key.starts_with("rules.") {
        return Err(EditError::UnknownKey { key: key.to_owned(), nearest: keys::nearest(key) });
    }
    let value: Value = value.to_string().parse().map_err(|error: toml_edit::TomlError| {
        let origin = super::Origin::Default;
        ConfigError::Syntax { origin, message: error.message().to_owned() }
    })?;
    edit(file, |document, _| {
        let item = match key.split_once('.') {
            None => document.entry(key).or_insert(Item::None),
            Some((section, name)) => &mut document.entry(section).or_insert(Item::Table(Table::new()))[name],
        };
        let same = item.as_value().is_some_and(|old| old.to_string().trim() == value.to_string().trim());
        if !same {
            replace_value(item, value);
        }
        Ok(!same)
    })
}

/// Keeps the comment behind the value.
fn replace_value(item: &mut Item, value: Value) {
    let decor = item.as_value().map(|old| old.decor().clone());
    *item = Item::Value(value);
    if let (Some(decor), Some(new)) = (decor, item.as_value_mut()) {
        *new.decor_mut() = decor;
    }
}

/// The list in the file; the default's entries are written out first where the file has none, so that adding
/// one folder does not take away another.
fn roots<'a>(document: &'a mut DocumentMut, config: &Config) -> &'a mut Array {
    let item = document.entry("roots").or_insert_with(|| {
        let list: Array = config.roots.iter().map(String::as_str).collect();
        Item::Value(Value::Array(list))
    });
    if !item.is_array() {
        *item = Item::Value(Value::Array(Array::new()));
    }
    #[expect(clippy::expect_used, reason = "made an array on the line above")]
    item.as_array_mut().expect("roots is an array")
}

fn push(list: &mut Array, root: &str) {
    let before = list.iter().last().map_or("", prefix).to_owned();
    list.push(root);
    // A list with one folder a line goes on like that. What stands before the line break is a comment on the
    // folder before.
    if let (Some(line), Some(added)) = (before.rfind('\n'), list.iter_mut().last()) {
        added.decor_mut().set_prefix(&before[line..]);
    }
}

/// Takes out the entry at `index` and the comment behind it. TOML's grammar gives a comment to the entry after
/// it, so what belongs to the entries before has to be handed on.
fn remove(list: &mut Array, index: usize) {
    let before = list.get(index).map_or("", prefix).to_owned();
    list.remove(index);
    if let Some(next) = list.get_mut(index) {
        next.decor_mut().set_prefix(before);
    } else if before.contains('\n') {
        list.set_trailing(before.trim_end_matches([' ', '\t']));
    }
}

fn prefix(value: &Value) -> &str {
    value.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default()
}

/// Reads, changes, checks and writes, all under a lock, so that two edits at once both last.
fn edit(
    file: &Path,
    change: impl FnOnce(&mut DocumentMut, &Config) -> Result<bool, EditError>,
) -> Result<bool, EditError> {
    let unwritable = |source| EditError::Unwritable { path: file.to_owned(), source };
    // A configuration kept elsewhere and linked here stays linked.
    let target = match std::fs::canonicalize(file) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => file.to_owned(),
        Err(error) => return Err(unwritable(error)),
    };
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(unwritable)?;
    let lock = options().truncate(false).open(folder.join(".config.toml.lock")).map_err(unwritable)?;
    lock.lock().map_err(unwritable)?;

    let config = Config::load(&target, [], &Overrides::default())?.config;
    let text = load::read(&target)?;
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| ConfigError::Syntax {
            origin: super::Origin::File(target.clone(), 1),
            message: error.message().to_owned(),
        })?;
    if !change(&mut document, &config)? {
        return Ok(false);
    }
    replace(&target, document.to_string().as_bytes()).map_err(|error| match error {
        ReplaceError::Io(source) => unwritable(source),
        ReplaceError::Config(error) => EditError::Config(error),
    })?;
    Ok(true)
}

enum ReplaceError {
    Io(io::Error),
    Config(ConfigError),
}

impl From<io::Error> for ReplaceError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Puts `text` in the place of `file` when it is a configuration, wholly or not at all.
fn replace(file: &Path, text: &[u8]) -> Result<(), ReplaceError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let temporary = folder.join(format!(".config.toml.{}", uuid::Uuid::new_v4().simple()));
    let written = (|| {
        let mut new = options().create_new(true).open(&temporary)?;
        new.write_all(text)?;
        if let Ok(old) = std::fs::metadata(file) {
            new.set_permissions(old.permissions())?;
        }
        new.sync_all()?;
        Config::load(&temporary, [], &Overrides::default()).map_err(ReplaceError::Config)?;
        std::fs::rename(&temporary, file)?;
        sync_folder(folder)?;
        Ok(())
    })();
    if written.is_err() {
        // The fault to report is the first one.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

/// NTFS journals the rename itself, and a folder cannot be opened for this.
#[cfg(windows)]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
