//! The audit log by itself.

use std::time::Instant;

use anyhow::{Result, ensure};
use audit::{AuditKey, AuditLog, Entry, Identity, Options, Outcome};
use serde_json::{Value, json};

use crate::measure::median;
use crate::report::{Bar, Row};

const RECORDS: u32 = 40_000;
const ROUNDS: usize = 5;
const KEY: [u8; 32] = [7; 32];

/// Records as a session's requests make them, each with its place reserved before; then verified.
pub(crate) fn audit() -> Result<Vec<Row>> {
    let (mut writes, mut verifies) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let dir = tempfile::tempdir()?;
        let identity = Identity { machine_id: "machine".to_owned(), shim_version: "0.1.0".to_owned() };
        let log = AuditLog::open(dir.path(), AuditKey::new(KEY), identity, Options::default())?;
        let began = Instant::now();
        for number in 0..RECORDS {
            log.reserve()?.write(entry(number))?;
        }
        log.sync()?;
        writes.push(f64::from(RECORDS) / began.elapsed().as_secs_f64());
        let began = Instant::now();
        let report = audit::verify_file(log.path(), &AuditKey::new(KEY));
        let took = began.elapsed().as_secs_f64();
        ensure!(report.is_ok() && report.records() >= u64::from(RECORDS), "the log does not verify");
        verifies.push(report.bytes() as f64 / 1e6 / took);
    }
    let note = format!("{RECORDS} records, one thread, reserved and synced to the disk as in use");
    let (write, verify) = (Bar::AtLeast(20_000.0), Bar::AtLeast(200.0));
    Ok(vec![
        Row { name: "audit-write", ours: median(writes), floor: None, unit: "rec/s", bar: write, note },
        Row {
            name: "audit-verify",
            ours: median(verifies),
            floor: None,
            unit: "MB/s",
            bar: verify,
            note: "the file that was just written".to_owned(),
        },
    ])
}

fn entry(number: u32) -> Entry {
    let details = json!({"path": format!("src/some/folder/file-{number}.rs"), "follow_symlinks": true});
    let Value::Object(details) = details else { return Entry::event("FILE_STAT", serde_json::Map::new()) };
    Entry {
        session_id: Some("0f8fad5b-d9cb-469f-a165-70867728950e".to_owned()),
        request_id: Some(format!("request-{number:06}")),
        op: "FILE_STAT".into(),
        details,
        result: Outcome::success(1),
    }
}
