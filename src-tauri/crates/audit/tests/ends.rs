//! A log that was cut, emptied or deleted shows, whatever of what knows its end is left.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use audit::{
    Anchor, AuditLog, Fault, Note, Options, Repair, Report, verify_all, verify_current, verify_file,
};
use support::*;

fn faults(report: &Report) -> Vec<&Fault> {
    report.problems.iter().map(|problem| &problem.fault).collect()
}

/// Three closed files and the current one, each of some records.
fn rotated() -> (tempfile::TempDir, Anchor) {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    for _ in 0..3 {
        (0..3).for_each(|number| log.record(file_read(number)).unwrap());
        log.rotate().unwrap();
    }
    log.record(file_read(9)).unwrap();
    let anchor = log.anchor().unwrap().unwrap();
    log.record(file_read(10)).unwrap();
    (dir, anchor)
}

fn closed(dir: &Path) -> Vec<PathBuf> {
    let mut files = audit::log_files(dir).unwrap();
    files.retain(|file| !file.ends_with("audit.log"));
    files
}

fn reopen(dir: &Path, anchor: Anchor) -> AuditLog {
    let options = Options { anchor: Some(anchor), ..Options::default() };
    AuditLog::open(dir, key(), identity(), options).unwrap()
}

#[test]
fn a_current_log_that_was_cut_or_emptied_does_not_verify_by_itself() {
    for dir in [written(6), rotated().0] {
        let log = log_of(&dir);
        let whole = lines(&log);
        assert!(verify_file(&log, &key()).is_ok());
        for left in 0..whole.len() {
            rewrite(&log, &whole[..left]);
            let report = verify_file(&log, &key());
            let end = whole.len() as u64;
            assert!(
                matches!(faults(&report)[..], [Fault::TailCut { known_seq: Some(seq), .. }] if *seq == end),
                "{report}"
            );
        }
    }
}

#[test]
fn a_log_just_begun_is_not_mistaken_for_a_cut_one() {
    let dir = written(4);
    let head = fs::read(dir.path().join("audit.head")).unwrap();
    drop(open(dir.path()).rotate().unwrap());
    // As a process leaves it that is killed in a rotation: the head is in the file before, its last record or an earlier.
    fs::write(dir.path().join("audit.head"), head).unwrap();
    assert!(verify_file(&log_of(&dir), &key()).is_ok());
    let earlier = written(2); // the same key; a head that names another log's record is no excuse
    fs::copy(earlier.path().join("audit.head"), dir.path().join("audit.head")).unwrap();
    assert!(!verify_file(&log_of(&dir), &key()).is_ok());
}

#[test]
fn a_closed_log_that_was_cut_does_not_verify_by_itself() {
    let (dir, _) = rotated();
    for file in closed(dir.path()) {
        assert!(verify_file(&file, &key()).is_ok());
        let whole = lines(&file);
        for left in 0..whole.len() {
            rewrite(&file, &whole[..left]);
            let report = verify_file(&file, &key());
            assert!(matches!(faults(&report)[..], [Fault::EndMismatch { .. }]), "{report}");
        }
        rewrite(&file, &whole);
    }
}

#[test]
fn a_closed_log_whose_successor_is_gone_is_told_from_a_copy_elsewhere() {
    let (dir, _) = rotated();
    let files = closed(dir.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join(files[0].file_name().unwrap());
    fs::copy(&files[0], &copy).unwrap();
    let report = verify_file(&copy, &key());
    assert!(report.is_ok() && report.notes == [Note::EndUnknown { path: copy }], "{report}");
    fs::remove_file(&files[1]).unwrap();
    let report = verify_file(&files[0], &key());
    assert_eq!(faults(&report), [&Fault::Unlinked], "{report}");
}

#[test]
fn a_closed_log_whose_successor_was_never_begun_ends_where_the_head_says() {
    let dir = written(4);
    // A crash between the two halves of a rotation.
    let file = dir.path().join("audit.log.20250101-000000");
    fs::rename(log_of(&dir), &file).unwrap();
    assert!(verify_file(&file, &key()).is_ok());
    let whole = lines(&file);
    rewrite(&file, &whole[..3]);
    let report = verify_file(&file, &key());
    assert!(matches!(faults(&report)[..], [Fault::TailCut { known_seq: Some(4), .. }]), "{report}");
}

#[test]
fn a_log_deleted_with_its_head_is_missed_and_on_the_record_after_the_next_start() {
    let dir = written(5);
    let anchor = open(dir.path()).anchor().unwrap().unwrap();
    assert!(verify_all(dir.path(), &key(), Some(&anchor)).is_ok());
    for name in ["audit.log", "audit.head"] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    let report = verify_all(dir.path(), &key(), Some(&anchor));
    assert_eq!(faults(&report), [&Fault::LogMissing { known_seq: 5 }], "{report}");
    assert!(!verify_current(dir.path(), &key(), Some(&anchor), None).is_ok());

    let log = reopen(dir.path(), anchor);
    assert!(matches!(log.repairs()[..], [Repair::RecordsMissing { known_seq: 5, .. }]));
    let later = log.anchor().unwrap().unwrap();
    drop(log);
    let report = verify_all(dir.path(), &key(), Some(&later));
    assert_eq!(faults(&report), [&Fault::RecordsMissing { known_seq: 5 }], "{report}");
    // It is said once.
    assert!(reopen(dir.path(), later).repairs().is_empty());
}

#[test]
fn a_log_emptied_with_its_head_is_missed() {
    let dir = written(5);
    let anchor = open(dir.path()).anchor().unwrap().unwrap();
    for name in ["audit.log", "audit.head"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    for report in [
        verify_all(dir.path(), &key(), Some(&anchor)),
        verify_current(dir.path(), &key(), Some(&anchor), None),
    ] {
        assert!(matches!(faults(&report)[..], [Fault::TailCut { known_seq: Some(5), .. }]), "{report}");
    }
    assert!(matches!(reopen(dir.path(), anchor).repairs()[..], [Repair::RecordsMissing { .. }]));
}

#[test]
fn an_older_log_with_its_own_head_is_missed() {
    let dir = written(5);
    let older = tempfile::tempdir().unwrap();
    for name in ["audit.log", "audit.head"] {
        fs::copy(dir.path().join(name), older.path().join(name)).unwrap();
    }
    let log = open(dir.path());
    log.record(file_read(6)).unwrap();
    let anchor = log.anchor().unwrap().unwrap();
    drop(log);
    for name in ["audit.log", "audit.head"] {
        fs::copy(older.path().join(name), dir.path().join(name)).unwrap();
    }
    assert!(verify_all(dir.path(), &key(), None).is_ok(), "nothing within the folder knows better");
    for report in [
        verify_all(dir.path(), &key(), Some(&anchor)),
        verify_current(dir.path(), &key(), Some(&anchor), None),
    ] {
        assert!(matches!(faults(&report)[..], [Fault::TailCut { known_seq: Some(6), .. }]), "{report}");
    }
    assert!(matches!(
        reopen(dir.path(), anchor).repairs()[..],
        [Repair::RecordsMissing { known_seq: 6, .. }]
    ));
}

#[test]
fn an_anchor_holds_over_rotations_and_is_renewed_before_pruning() {
    let (dir, anchor) = rotated();
    let log = reopen(dir.path(), anchor);
    assert!(log.repairs().is_empty());
    log.rotate().unwrap();
    log.record(file_read(1)).unwrap();
    log.rotate().unwrap();
    assert!(verify_all(dir.path(), &key(), Some(&anchor)).is_ok());
    assert!(verify_current(dir.path(), &key(), Some(&anchor), None).is_ok());
    drop(log);
    let log = reopen(dir.path(), anchor);
    assert!(log.repairs().is_empty());
    let anchor = log.anchor().unwrap().unwrap();
    assert_eq!(log.prune(std::time::Duration::ZERO).unwrap().len(), 5);
    drop(log);
    assert!(reopen(dir.path(), anchor).repairs().is_empty());
    let report = verify_all(dir.path(), &key(), Some(&anchor));
    assert!(report.is_ok(), "{report}");
}
