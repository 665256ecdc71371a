//! The log as its callers use it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test helpers panic as tests do")]

mod support;

use std::sync::Barrier;
use std::thread;

use audit::{AuditLog, Entry, MAX_RECORD, Options, Outcome, show, tail, verify_all};
use serde_json::json;
use support::{details, file_read, identity, key, log_of, open, records, written};

#[test]
fn a_record_has_every_field_of_the_format() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    let permit = log.reserve().unwrap();
    let mut result = Outcome { exit_code: Some(0), ..Outcome::success(124) };
    result.extra.insert("output_truncated".into(), false.into());
    let entry = Entry {
        session_id: Some("7b0c".into()),
        request_id: Some("a2".into()),
        op: "EXECUTE_COMMAND".into(),
        details: details(json!({"command": "ls", "argv": null, "big": 9_007_199_254_740_993u64})),
        result,
    };
    permit.write(entry).unwrap();
    let record = records(&log_of(&dir)).remove(0);
    let ts = record["ts"].as_f64().unwrap();
    assert!(ts > 1.7e9 && ts < 1e10, "{ts} is in seconds");
    assert_eq!(record["hmac"].as_str(), log.last_hmac().as_deref());
    assert_eq!(
        record,
        json!({
            "ts": record["ts"], "session_id": "7b0c", "machine_id": "3f9a8c12", "shim_version": "0.1.0",
            "request_id": "a2", "op": "EXECUTE_COMMAND",
            "details": {"command": "ls", "argv": null, "big": "9007199254740993"},
            "result": {"ok": true, "exit_code": 0, "duration_ms": 124, "error_code": null, "output_truncated": false},
            "seq": 1, "prev_hmac": null, "hmac": record["hmac"],
        })
    );
}

#[test]
fn the_chain_goes_on_over_restarts() {
    let dir = tempfile::tempdir().unwrap();
    for start in 1..=5 {
        let log = open(dir.path());
        assert_eq!(log.repairs(), []);
        log.record(file_read(start)).unwrap();
        assert_eq!(log.last_seq(), start);
    }
    assert!(verify_all(dir.path(), &key(), None).is_ok());
}

#[test]
fn eight_threads_write_one_chain_while_another_verifies_it() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { rotate_bytes: 200_000, ..Options::default() };
    let log = AuditLog::open(dir.path(), key(), identity(), options).unwrap();
    let barrier = Barrier::new(9);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (log, barrier) = (log.clone(), &barrier);
            scope.spawn(move || {
                barrier.wait();
                for number in 0..250 {
                    let permit = log.reserve().unwrap();
                    permit.write(file_read(thread * 1000 + number)).unwrap();
                }
            });
        }
        barrier.wait();
        for _ in 0..20 {
            let report = verify_all(dir.path(), &key(), None);
            assert!(report.is_ok(), "{report}");
        }
    });
    drop(log);
    let report = verify_all(dir.path(), &key(), None);
    assert!(report.is_ok(), "{report}");
    assert!(report.files.len() > 3, "rotated at the size it was told");
    let rotations = report.files.len() as u64 - 1;
    assert_eq!(report.records(), 2000 + rotations);
    let largest = report.files.iter().map(|file| file.bytes).max().unwrap();
    assert!(largest < 200_000 + 1000, "{largest}");
}

#[test]
fn a_permit_that_is_dropped_records_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    drop(log.reserve().unwrap());
    assert_eq!((log.last_seq(), log.size_bytes()), (0, 0));
}

#[test]
fn a_permit_outlives_the_handle_it_came_from() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    let permit = log.reserve().unwrap();
    drop(log);
    permit.write(file_read(1)).unwrap();
    assert_eq!(records(&log_of(&dir)).len(), 1);
}

#[test]
fn a_megabyte_of_details_becomes_a_bounded_record() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    let entry = Entry::event("EXECUTE_COMMAND", details(json!({"command": "é".repeat(1 << 20)})));
    log.record(entry).unwrap();
    assert!(log.size_bytes() <= MAX_RECORD as u64);
    let command = records(&log_of(&dir))[0]["details"]["command"].as_str().unwrap().to_owned();
    assert!(command.contains("…[cut: 2097152 bytes, sha256 "), "{}", &command[command.len() - 80..]);
    assert!(verify_all(dir.path(), &key(), None).is_ok());
}

#[test]
fn the_space_set_aside_is_given_back() {
    let dir = written(3);
    let metadata = log_of(&dir).metadata().unwrap();
    assert_eq!(metadata.len(), std::fs::read(log_of(&dir)).unwrap().len() as u64);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        assert!(metadata.blocks() * 512 < 64 << 10, "{} blocks", metadata.blocks());
    }
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_log() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("state/deskhand");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    open(&dir).record(file_read(1)).unwrap();
    assert_eq!(mode(&dir), 0o700);
    // Also where somebody loosened it.
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(audit::log_path(&dir), PermissionsExt::from_mode(0o666)).unwrap();
    open(&dir).rotate().unwrap();
    assert_eq!(mode(&dir), 0o700);
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn an_empty_log_cannot_be_rotated() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(open(dir.path()).rotate(), Err(audit::AuditError::Empty { .. })));
}

#[test]
fn a_subscriber_sees_every_line_and_a_slow_one_holds_up_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    let (all, slow) = (log.subscribe(100), log.subscribe(2));
    drop(log.subscribe(2));
    for number in 0..50 {
        log.record(file_read(number)).unwrap();
    }
    let seen: Vec<String> = all.try_iter().map(|line| line.to_string()).collect();
    assert_eq!(seen, support::lines(&log_of(&dir)));
    assert_eq!(slow.try_iter().count(), 2);
}

#[test]
fn tail_and_show_find_lines() {
    let dir = written(1000);
    let all = support::lines(&log_of(&dir));
    for count in [0, 1, 5, 999, 1000, 2000] {
        assert_eq!(tail(&log_of(&dir), count).unwrap(), all[1000 - count.min(1000)..]);
    }
    assert_eq!(show(&log_of(&dir), 417).unwrap().as_ref(), Some(&all[416]));
    assert_eq!(show(&log_of(&dir), 1001).unwrap(), None);
    // A line being written is not shown by halves.
    let half = [all.join("\n"), "\n{\"details".to_owned()].concat();
    std::fs::write(log_of(&dir), half).unwrap();
    assert_eq!(tail(&log_of(&dir), 1).unwrap(), all[999..]);
    std::fs::write(log_of(&dir), "").unwrap();
    assert!(tail(&log_of(&dir), 3).unwrap().is_empty());
    std::fs::write(log_of(&dir), "{\"half").unwrap();
    assert!(tail(&log_of(&dir), 3).unwrap().is_empty());
}
