//! A log in a folder of its own, and ways to spoil it.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::{Path, PathBuf};

use audit::{AuditKey, AuditLog, Entry, Identity, Options, Outcome};
use serde_json::{Map, Value, json};

pub(crate) const KEY: [u8; 32] = [9; 32];

pub(crate) fn key() -> AuditKey {
    AuditKey::new(KEY)
}

pub(crate) fn identity() -> Identity {
    Identity { machine_id: "3f9a8c12".into(), shim_version: "0.1.0".into() }
}

pub(crate) fn open(dir: &Path) -> AuditLog {
    AuditLog::open(dir, key(), identity(), Options::default()).unwrap()
}

pub(crate) fn details(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

/// A request like most.
pub(crate) fn file_read(number: u64) -> Entry {
    Entry {
        session_id: Some("7b0c".into()),
        request_id: Some(format!("a{number}")),
        op: "FILE_READ".into(),
        details: details(json!({
            "path": "/home/u/Größe 日本.txt", "encoding": "utf-8", "offset": 0, "length": null,
            "size_bytes_returned": number,
        })),
        result: Outcome::success(3),
    }
}

/// A folder with a log of `count` records, closed.
pub(crate) fn written(count: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    for number in 0..count {
        log.record(file_read(number)).unwrap();
    }
    drop(log);
    dir
}

pub(crate) fn log_of(dir: &tempfile::TempDir) -> PathBuf {
    audit::log_path(dir.path())
}

pub(crate) fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

pub(crate) fn records(path: &Path) -> Vec<Value> {
    lines(path).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn rewrite(path: &Path, lines: &[String]) {
    std::fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}
