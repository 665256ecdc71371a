//! What depends on the clock, which only these tests can set.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};

use super::*;
use crate::names::{log_files, rotated};
use crate::{Note, verify_all};

const NOON: u64 = 1_712_318_400; // 2024-04-05 12:00:00 UTC
const KEY: [u8; 32] = [5; 32];

struct Rig {
    dir: tempfile::TempDir,
    seconds: Arc<AtomicU64>,
}

impl Rig {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), seconds: Arc::new(AtomicU64::new(NOON)) }
    }

    fn at(&self, seconds: u64) {
        self.seconds.store(seconds, Ordering::SeqCst);
    }

    fn open(&self, options: Options) -> AuditLog {
        let seconds = Arc::clone(&self.seconds);
        let clock = Clock::of(move || Duration::from_secs(seconds.load(Ordering::SeqCst)));
        let identity = Identity { machine_id: "machine".into(), shim_version: "0.1.0".into() };
        AuditLog::open_with_clock(self.dir.path(), AuditKey::new(KEY), &identity, options, clock).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let files = log_files(self.dir.path()).unwrap();
        files.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    fn first_record(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.dir.path().join(name)).unwrap();
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    }

    fn verify(&self) -> crate::Report {
        verify_all(self.dir.path(), &AuditKey::new(KEY), None)
    }
}

fn event() -> Entry {
    Entry::event("PAUSED", Map::new())
}

#[test]
fn a_file_older_than_the_limit_is_rotated_before_the_next_record() {
    let rig = Rig::new();
    let log = rig.open(Options::default());
    log.record(event()).unwrap();
    rig.at(NOON + 30 * 86_400 - 1);
    log.record(event()).unwrap();
    assert_eq!(rig.names(), ["audit.log"]);
    rig.at(NOON + 30 * 86_400);
    log.record(event()).unwrap();
    assert_eq!(rig.names(), ["audit.log.20240505-120000", "audit.log"]);
    assert_eq!(log.last_seq(), 2);
    assert!(rig.verify().is_ok(), "{}", rig.verify());
}

#[test]
fn the_age_counts_from_the_first_record_over_restarts() {
    let rig = Rig::new();
    rig.open(Options::default()).record(event()).unwrap();
    rig.at(NOON + 31 * 86_400);
    rig.open(Options::default()).record(event()).unwrap();
    assert_eq!(rig.names(), ["audit.log.20240506-120000", "audit.log"]);
}

#[test]
fn rotations_in_one_second_never_overwrite() {
    let rig = Rig::new();
    let log = rig.open(Options::default());
    log.record(event()).unwrap();
    std::fs::write(rig.dir.path().join("audit.log.20240405-120000-1"), "somebody else's").unwrap();
    for _ in 0..3 {
        log.rotate().unwrap();
    }
    assert_eq!(
        rig.names(),
        [
            "audit.log.20240405-120000",
            "audit.log.20240405-120000-1",
            "audit.log.20240405-120000-2",
            "audit.log.20240405-120000-3",
            "audit.log"
        ]
    );
    let untouched = std::fs::read_to_string(rig.dir.path().join("audit.log.20240405-120000-1")).unwrap();
    assert_eq!(untouched, "somebody else's");
    assert_eq!(rig.first_record("audit.log")["details"]["previous_file"], "audit.log.20240405-120000-3");
}

#[test]
fn a_clock_that_jumps_back_breaks_nothing() {
    let rig = Rig::new();
    let log = rig.open(Options::default());
    log.record(event()).unwrap();
    log.rotate().unwrap();
    log.record(event()).unwrap();
    rig.at(NOON - 400 * 86_400);
    log.record(event()).unwrap();
    log.rotate().unwrap(); // its name sorts before the file it follows
    log.record(event()).unwrap();
    drop(log);
    assert!(rig.verify().is_ok(), "{}", rig.verify());
    // Also where the order has to be found out: after a crash in a rotation.
    std::fs::remove_file(rig.dir.path().join("audit.log")).unwrap();
    rig.at(0);
    drop(rig.open(Options::default()));
    let before = rig.first_record("audit.log")["details"]["previous_file"].clone();
    assert_eq!(before, rotated(rig.dir.path()).unwrap()[0].name, "{:?}", rig.names());
}

#[test]
fn pruning_deletes_what_is_old_and_leaves_a_log_that_verifies() {
    let rig = Rig::new();
    let log = rig.open(Options::default());
    for day in 0..4 {
        rig.at(NOON + day * 86_400);
        log.record(event()).unwrap();
        log.rotate().unwrap();
    }
    std::fs::write(rig.dir.path().join("audit.log.torn-20240405-120000"), "{\"half").unwrap();
    let pruned = log.prune(Duration::from_secs(2 * 86_400)).unwrap();
    assert_eq!(pruned.len(), 3, "two logs and a half line: {pruned:?}");
    assert_eq!(rig.names(), ["audit.log.20240407-120000", "audit.log.20240408-120000", "audit.log"]);
    let report = rig.verify();
    assert!(report.is_ok(), "{report}");
    assert_eq!(report.notes, [Note::PrunedBefore { path: rig.dir.path().join("audit.log.20240407-120000") }]);
}
