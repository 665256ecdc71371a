//! Whatever is done to a log shows.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test helpers panic as tests do")]

mod support;

use std::fs;
use std::path::Path;

use audit::{Fault, Report, verify_all, verify_file};
use support::{file_read, key, lines, log_of, open, records, rewrite, written};

fn faults(report: &Report) -> Vec<&Fault> {
    report.problems.iter().map(|problem| &problem.fault).collect()
}

/// A folder with three files of a few records each, closed.
fn three_files() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    for round in 0..3 {
        for number in 0..4 {
            log.record(file_read(number)).unwrap();
        }
        if round < 2 {
            log.rotate().unwrap();
        }
    }
    drop(log);
    dir
}

fn names(dir: &Path) -> Vec<std::path::PathBuf> {
    audit::log_files(dir).unwrap()
}

#[test]
fn a_log_we_wrote_verifies_by_itself_and_as_a_whole() {
    let dir = three_files();
    let report = verify_all(dir.path(), &key(), None);
    assert!(report.is_ok() && report.notes.is_empty(), "{report}");
    assert_eq!(report.records(), 4 + 5 + 5);
    for file in names(dir.path()) {
        assert!(verify_file(&file, &key()).is_ok());
    }
}

#[test]
fn any_changed_byte_of_any_line_shows_in_that_line() {
    let dir = written(3);
    let original = lines(&log_of(&dir));
    for number in 0..3 {
        for at in (0..original[number].len()).step_by(7) {
            let mut bytes = original[number].clone().into_bytes();
            bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
            let mut text: Vec<Vec<u8>> = original.iter().map(|line| line.clone().into_bytes()).collect();
            text[number] = bytes;
            fs::write(log_of(&dir), [text.join(&b'\n'), b"\n".to_vec()].concat()).unwrap();
            let report = verify_file(&log_of(&dir), &key());
            assert_eq!(report.problems.len(), 1, "byte {at} of line {}", number + 1);
            assert_eq!(report.problems[0].line, Some(number as u64 + 1), "{report}");
        }
    }
}

#[test]
fn lines_removed_repeated_or_swapped_show() {
    let dir = written(5);
    let original = lines(&log_of(&dir));
    let gap = |after, found| Fault::SequenceGap { after, found };
    let mut cases = Vec::new();
    let mut removed = original.clone();
    removed.remove(2);
    cases.push((removed, 3, gap(2, 4)));
    let mut repeated = original.clone();
    repeated.insert(2, original[1].clone());
    cases.push((repeated, 3, gap(2, 2)));
    let mut swapped = original.clone();
    swapped.swap(1, 2);
    cases.push((swapped, 2, gap(1, 3)));
    cases.push((original[1..].to_vec(), 1, Fault::BadStart { seq: 2 }));
    let mut blank = original.clone();
    blank.insert(3, String::new());
    rewrite(&log_of(&dir), &blank);
    assert_eq!(verify_file(&log_of(&dir), &key()).problems[0].line, Some(4));
    for (text, line, fault) in cases {
        rewrite(&log_of(&dir), &text);
        let report = verify_file(&log_of(&dir), &key());
        assert_eq!((report.problems[0].line, &report.problems[0].fault), (Some(line), &fault), "{report}");
    }
}

#[test]
fn a_line_of_another_log_of_the_same_key_breaks_the_chain() {
    let (dir, other) = (written(5), written(5));
    let mut text = lines(&log_of(&dir));
    text[2] = lines(&log_of(&other))[2].clone();
    rewrite(&log_of(&dir), &text);
    let report = verify_file(&log_of(&dir), &key());
    assert!(matches!(report.problems[0].fault, Fault::ChainBreak { after: 2, found: 3, .. }), "{report}");
}

#[test]
fn a_second_key_in_a_line_is_not_overlooked() {
    let dir = written(2);
    let mut text = lines(&log_of(&dir));
    text[0] = text[0].replacen("{\"details\"", "{\"op\":\"NOTHING\",\"details\"", 1);
    rewrite(&log_of(&dir), &text);
    let report = verify_file(&log_of(&dir), &key());
    assert!(
        matches!(&report.problems[0].fault, Fault::NotARecord { reason } if reason.contains("twice")),
        "{report}"
    );
}

#[test]
fn a_bad_line_deep_in_a_large_file_is_found_by_its_number() {
    let dir = written(20_000); // several parts, checked side by side
    let mut text = lines(&log_of(&dir));
    for at in [19_999, 13_000, 7_000, 1] {
        text[at] = text[at].replace("utf-8", "utf-9");
        rewrite(&log_of(&dir), &text);
        let report = verify_file(&log_of(&dir), &key());
        let problem = &report.problems[0];
        assert_eq!((problem.line, problem.seq), (Some(at as u64 + 1), Some(at as u64 + 1)), "{report}");
        assert_eq!(problem.fault, Fault::Tampered);
        assert_eq!(report.records(), at as u64);
    }
}

#[test]
fn a_whole_file_that_is_missing_shows() {
    for which in [0, 1] {
        let dir = three_files();
        let gone = names(dir.path())[which].clone();
        fs::remove_file(&gone).unwrap();
        let report = verify_all(dir.path(), &key(), None);
        assert_eq!(faults(&report), [&Fault::FileMissing], "{report}");
        assert_eq!(report.problems[0].path, gone);
    }
}

#[test]
fn a_closed_file_whose_end_was_cut_shows() {
    let dir = three_files();
    let closed = &names(dir.path())[1];
    let kept = lines(closed);
    rewrite(closed, &kept[..kept.len() - 1]);
    let report = verify_all(dir.path(), &key(), None);
    assert!(matches!(faults(&report)[..], [Fault::EndMismatch { expected_seq: 5, .. }]), "{report}");
    fs::write(closed, format!("{}\n{{\"half", kept.join("\n"))).unwrap();
    let report = verify_all(dir.path(), &key(), None);
    assert_eq!(faults(&report), [&Fault::TornEnd { bytes: 6 }], "{report}");
}

#[test]
fn a_cut_tail_of_the_log_being_written_shows() {
    let dir = three_files();
    let kept = lines(&log_of(&dir));
    rewrite(&log_of(&dir), &kept[..2]);
    let report = verify_all(dir.path(), &key(), None);
    assert!(matches!(faults(&report)[..], [Fault::TailCut { known_seq: Some(5), .. }]), "{report}");
    fs::remove_file(log_of(&dir)).unwrap();
    assert!(!verify_all(dir.path(), &key(), None).is_ok());
}

#[test]
fn a_cut_tail_is_on_the_record_after_the_next_start() {
    let dir = written(6);
    let kept = lines(&log_of(&dir));
    rewrite(&log_of(&dir), &kept[..2]);
    let log = open(dir.path());
    log.record(file_read(9)).unwrap();
    assert_eq!(log.repairs().len(), 1, "{:?}", log.repairs());
    drop(log);
    let repaired = &records(&log_of(&dir))[2];
    assert_eq!(
        (repaired["op"].as_str(), repaired["details"]["known_seq"].as_u64()),
        (Some("LOG_REPAIRED"), Some(6))
    );
    let report = verify_all(dir.path(), &key(), None);
    assert_eq!(faults(&report), [&Fault::RecordsMissing { known_seq: 6 }], "{report}");
}

#[test]
fn a_log_deleted_between_two_starts_is_on_the_record() {
    for dir in [written(6), three_files()] {
        fs::remove_file(log_of(&dir)).unwrap();
        open(dir.path()).record(file_read(1)).unwrap();
        let report = verify_all(dir.path(), &key(), None);
        assert!(matches!(faults(&report)[..], [Fault::RecordsMissing { .. }]), "{report}");
    }
}

#[test]
fn a_file_that_no_other_names_shows() {
    let (dir, other) = (three_files(), written(3));
    fs::copy(log_of(&other), dir.path().join("audit.log.20200101-000000")).unwrap();
    let report = verify_all(dir.path(), &key(), None);
    assert_eq!(faults(&report), [&Fault::Unlinked], "{report}");
}

#[test]
fn a_changed_head_shows() {
    let dir = written(3);
    let head = dir.path().join("audit.head");
    let text = fs::read_to_string(&head).unwrap();
    fs::write(&head, text.replace("\"seq\":3", "\"seq\":2")).unwrap();
    assert_eq!(faults(&verify_all(dir.path(), &key(), None)), [&Fault::HeadForged]);
    fs::remove_file(&head).unwrap();
    let report = verify_all(dir.path(), &key(), None);
    assert!(report.is_ok() && report.notes == [audit::Note::NoHead], "{report}");
}

#[test]
fn an_empty_folder_and_an_unreadable_file_are_not_mistaken_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    assert!(verify_all(dir.path(), &key(), None).is_ok());
    assert!(matches!(verify_file(&log_of(&dir), &key()).problems[0].fault, Fault::Unreadable { .. }));
    fs::create_dir(log_of(&dir)).unwrap();
    assert!(!verify_all(dir.path(), &key(), None).is_ok());
}
