//! Deleting old files, on the record.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, json};

use crate::entry::Entry;
use crate::error::AuditError;
use crate::log::AuditLog;
use crate::names::{LOG, Rotated, TORN, rotated};

/// Names in one record, so that none has to be cut.
const NAMES_PER_RECORD: usize = 50;

pub(super) fn prune(log: &AuditLog, older_than: Duration) -> Result<Vec<PathBuf>, AuditError> {
    let site = &log.0.shared.site;
    let now = site.clock.timestamp();
    let is_old = |file: &Rotated| {
        file.closed_at()
            .is_some_and(|closed| Duration::try_from(now - closed).is_ok_and(|age| age >= older_than))
    };
    let closed = rotated(&site.dir)?.into_iter().filter(is_old).map(|file| file.name);
    let names: Vec<String> =
        closed.chain(torn(log)?.into_iter().filter(|(_, at)| is_old(at)).map(|(name, _)| name)).collect();
    for some in names.chunks(NAMES_PER_RECORD) {
        let mut details = Map::new();
        details.insert("files".to_owned(), json!(some));
        log.record(Entry::event("LOG_PRUNED", details))?;
    }
    // On disk before the files are gone: a power loss must not make pruned files look stolen.
    log.sync()?;
    let paths: Vec<_> = names.iter().map(|name| site.dir.join(name)).collect();
    for path in &paths {
        std::fs::remove_file(path).map_err(AuditError::io("delete", path))?;
    }
    Ok(paths)
}

/// Half lines put away, with the time in their name.
fn torn(log: &AuditLog) -> Result<Vec<(String, Rotated)>, AuditError> {
    let dir = &log.0.shared.site.dir;
    let entries = dir.read_dir().map_err(AuditError::io("list", dir))?;
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(AuditError::io("list", dir))?.file_name();
        let Some(name) = name.to_str() else { continue };
        let time = name.strip_prefix(TORN).and_then(|stamp| Rotated::parse(&format!("{LOG}.{stamp}")));
        found.extend(time.map(|time| (name.to_owned(), time)));
    }
    Ok(found)
}
