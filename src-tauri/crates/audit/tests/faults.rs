//! Crashes, full disks, other programs' hands in the folder.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test helpers panic as tests do")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use audit::{AuditError, AuditKey, AuditLog, Options, Repair, verify_all, verify_file};
use serde_json::json;
#[cfg(unix)]
use support::details;
use support::{file_read, identity, key, lines, log_of, open, records, written};

/// Set in the child's environment: this test binary plays a part in the folder named.
const CHILD_DIR: &str = "DESKHAND_AUDIT_TEST_DIR";

/// Runs the test of that name again as a child, which sees `child_dir()`.
fn child(test: &str, dir: &Path) -> Child {
    let binary = std::env::current_exe().unwrap();
    let mut command = if cfg!(unix) {
        // A write beyond the limit on file size is to be an error, not the end of the process.
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(binary);
        shell
    } else {
        Command::new(binary)
    };
    command.args(["--exact", test, "--nocapture"]).env(CHILD_DIR, dir).stdout(Stdio::piped()).spawn().unwrap()
}

fn child_dir() -> Option<PathBuf> {
    std::env::var_os(CHILD_DIR).map(PathBuf::from)
}

/// Returns the pipe, for the child to go on writing to.
#[must_use]
fn wait_for_line(child: &mut Child, wanted: &str) -> BufReader<ChildStdout> {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let found = output.by_ref().lines().map_while(Result::ok).any(|line| line.contains(wanted));
    assert!(found, "the child ended without saying {wanted}");
    output
}

#[cfg(unix)]
fn entry_of_a_kilobyte() -> audit::Entry {
    let mut entry = file_read(1);
    entry.details = details(json!({"path": "x".repeat(1000)}));
    entry
}

#[test]
fn a_second_writer_is_refused_and_told_why() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    let second = AuditLog::open(dir.path(), key(), identity(), Options::default());
    assert!(matches!(second, Err(AuditError::Busy { .. })));
    // Also when the lock file was deleted.
    #[cfg(unix)]
    {
        fs::remove_file(dir.path().join("audit.lock")).unwrap();
        let second = AuditLog::open(dir.path(), key(), identity(), Options::default());
        assert!(matches!(second, Err(AuditError::Busy { .. })));
    }
    log.record(file_read(1)).unwrap();
}

#[test]
fn a_writer_killed_in_the_middle_leaves_a_log_to_go_on_in() {
    // So small that it is also killed in rotations.
    let options = Options { rotate_bytes: 10_000, ..Options::default() };
    if let Some(dir) = child_dir() {
        let log = AuditLog::open(&dir, key(), identity(), options).unwrap();
        println!("writing");
        loop {
            log.record(file_read(1)).unwrap();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    for round in 1..=8 {
        let mut child = child("a_writer_killed_in_the_middle_leaves_a_log_to_go_on_in", dir.path());
        let _pipe = wait_for_line(&mut child, "writing");
        // Until it has rotated a few times; the files are what there is to wait for.
        let deadline = Instant::now() + Duration::from_secs(20);
        let before = audit::log_files(dir.path()).unwrap().len();
        while audit::log_files(dir.path()).unwrap().len() < before + 3 {
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        let log = open(dir.path()); // its lock is no obstacle
        log.record(file_read(2)).unwrap();
        drop(log);
        let report = verify_all(dir.path(), &key(), None);
        assert!(report.is_ok(), "round {round}: {report}");
    }
}

#[test]
fn a_torn_last_line_is_put_aside_and_the_chain_goes_on() {
    for keep in [1, 40, 300] {
        let dir = written(5);
        let whole = lines(&log_of(&dir));
        let text = format!("{}\n{}", whole[..4].join("\n"), &whole[4][..keep]);
        fs::write(log_of(&dir), text).unwrap();
        let log = open(dir.path());
        let repairs = log.repairs();
        let Repair::Torn { file, bytes } = &repairs[0] else { panic!("{repairs:?}") };
        assert_eq!(*bytes, keep as u64);
        assert_eq!(fs::read_to_string(dir.path().join(file)).unwrap(), whole[4][..keep]);
        log.record(file_read(6)).unwrap();
        let after = records(&log_of(&dir));
        assert_eq!(after[4]["op"], "LOG_REPAIRED");
        assert_eq!((&after[4]["seq"], &after[4]["prev_hmac"]), (&json!(5), &after[3]["hmac"]));
        assert!(verify_file(&log_of(&dir), &key()).problems.iter().all(|problem| problem.line == Some(6)));
    }
}

#[test]
fn a_line_torn_by_a_power_loss_before_its_sync_is_no_loss_of_known_records() {
    let dir = written(5);
    let mut text = fs::read(log_of(&dir)).unwrap();
    text.extend_from_slice(&[0; 500]); // as file systems leave it
    fs::write(log_of(&dir), text).unwrap();
    drop(open(dir.path()));
    let report = verify_all(dir.path(), &key(), None);
    assert!(report.is_ok() && report.notes.len() == 1, "{report}");
    drop(open(dir.path()));
    assert_eq!(records(&log_of(&dir)).len(), 6, "once is enough");
}

#[test]
fn a_crash_in_a_rotation_is_mended() {
    let dir = written(3);
    // Renamed, the next file half made, and then the power went.
    fs::rename(log_of(&dir), dir.path().join("audit.log.20240405-120000")).unwrap();
    fs::write(dir.path().join("audit.log.new"), "{\"details\":{\"prev").unwrap();
    let log = open(dir.path());
    assert_eq!(log.repairs(), []);
    log.record(file_read(1)).unwrap();
    drop(log);
    let report = verify_all(dir.path(), &key(), None);
    assert!(report.is_ok() && report.notes.is_empty(), "{report}");
    assert_eq!(report.files.len(), 2);
    assert!(!dir.path().join("audit.log.new").exists());
}

#[cfg(unix)]
#[test]
fn a_log_deleted_under_us_refuses_everything_until_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    log.record(file_read(1)).unwrap();
    let under_way = log.reserve().unwrap();
    fs::remove_file(log_of(&dir)).unwrap();
    assert!(matches!(under_way.write(file_read(2)), Err(AuditError::Displaced { what: "was deleted", .. })));
    assert!(matches!(log.reserve(), Err(AuditError::Failed { .. })));
    assert!(matches!(log.record(file_read(3)), Err(AuditError::Failed { .. })));
    assert!(log.failure().is_some());
    log.try_recover().unwrap();
    assert_eq!(log.failure(), None);
    log.record(file_read(4)).unwrap();
    let missing =
        log.repairs().iter().any(|repair| matches!(repair, Repair::RecordsMissing { known_seq: 2, .. }));
    assert!(missing, "{:?}", log.repairs());
    let report = verify_all(dir.path(), &key(), None);
    assert_eq!(report.problems.len(), 1, "what was lost stays on the record: {report}");
}

#[cfg(unix)]
#[test]
fn a_log_replaced_cut_or_appended_to_under_us_refuses_everything_until_recovered() {
    type Hand = fn(&Path);
    let hands: [(Hand, &str); 4] = [
        (
            |path| {
                fs::rename(path, path.with_extension("stolen")).and_then(|()| fs::write(path, "")).unwrap();
            },
            "was replaced",
        ),
        (|path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(600).unwrap(), "was changed"),
        (|path| append(path, "{}\n"), "was changed"),
        (|path| append(path, "half"), "was changed"),
    ];
    for (hand, said) in hands {
        let dir = tempfile::tempdir().unwrap();
        let log = open(dir.path());
        for number in 0..5 {
            log.record(file_read(number)).unwrap();
        }
        hand(&log_of(&dir));
        let Err(AuditError::Displaced { what, .. }) = log.record(file_read(6)) else {
            panic!("written: {said}")
        };
        assert_eq!(what, said);
        assert!(log.reserve().is_err());
        log.try_recover().unwrap();
        log.record(file_read(7)).unwrap();
        log.rotate().unwrap();
        drop(log);
        assert!(verify_file(&log_of(&dir), &key()).is_ok());
        assert!(lines(&log_of(&dir)).len() == 1);
    }
}

#[cfg(unix)]
fn append(path: &Path, text: &str) {
    use std::io::Write;
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(log_of(&dir)).unwrap();
    let opened = AuditLog::open(dir.path(), key(), identity(), Options::default());
    assert!(matches!(opened, Err(AuditError::NotAFile { .. })));
    let file = dir.path().join("a-file");
    fs::write(&file, "").unwrap();
    assert!(matches!(
        AuditLog::open(&file, key(), identity(), Options::default()),
        Err(AuditError::Io { .. })
    ));
}

#[cfg(unix)]
#[test]
fn a_link_in_the_logs_place_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, log_of(&dir)).unwrap();
    assert!(AuditLog::open(dir.path(), key(), identity(), Options::default()).is_err());
    assert_eq!(fs::read(&target).unwrap(), b"");
    // Nor one put there while the log is written.
    fs::remove_file(log_of(&dir)).unwrap();
    let log = open(dir.path());
    fs::rename(log_of(&dir), &target).unwrap();
    std::os::unix::fs::symlink(&target, log_of(&dir)).unwrap();
    assert!(log.reserve().is_err());
    assert!(log.try_recover().is_err());
}

#[test]
fn with_another_key_the_old_log_is_set_aside_whole() {
    let dir = written(4);
    let before = fs::read(log_of(&dir)).unwrap();
    let new_key = || AuditKey::new([77; 32]);
    let log = AuditLog::open(dir.path(), new_key(), identity(), Options::default()).unwrap();
    let [Repair::SetAside { file }] = &log.repairs()[..] else { panic!("{:?}", log.repairs()) };
    assert_eq!(fs::read(dir.path().join(file)).unwrap(), before);
    log.record(file_read(1)).unwrap();
    drop(log);
    assert!(verify_file(&log_of(&dir), &new_key()).is_ok());
    assert!(!verify_all(dir.path(), &new_key(), None).is_ok(), "the old file does not verify with this key");
    assert!(verify_file(&dir.path().join(file), &key()).is_ok());
}

#[cfg(unix)]
#[test]
fn at_the_limit_on_file_size_operations_are_refused_and_granted_permits_hold() {
    let Some(dir) = child_dir() else {
        let dir = tempfile::tempdir().unwrap();
        let mut child =
            child("at_the_limit_on_file_size_operations_are_refused_and_granted_permits_hold", dir.path());
        let _pipe = wait_for_line(&mut child, "refused in time");
        assert!(child.wait().unwrap().success());
        assert!(verify_all(dir.path(), &key(), None).is_ok());
        return;
    };
    use rustix::process::{Resource, Rlimit, setrlimit};
    setrlimit(Resource::Fsize, Rlimit { current: Some(2 << 20), maximum: None }).unwrap();
    let log = open(&dir);
    until_refused(&log);
    println!("refused in time");
}

/// Writes until there is no space, holding four permits all the time, and then uses those.
#[cfg(unix)]
fn until_refused(log: &AuditLog) {
    let permits: Vec<_> = (0..4).map(|_| log.reserve().unwrap()).collect();
    let error = (0..100_000).find_map(|_| log.record(entry_of_a_kilobyte()).err());
    let error = error.expect("the limit is reached");
    assert!(matches!(error, AuditError::NoSpace { .. }), "{error}");
    assert!(matches!(log.reserve().map(drop), Err(AuditError::NoSpace { .. })));
    assert_eq!(log.failure(), None, "it passes by itself once there is space");
    for permit in permits {
        let mut largest = file_read(1);
        largest.details =
            details(json!({"a": "x".repeat(16_000), "b": "y".repeat(16_000), "c": "z".repeat(16_000)}));
        permit.write(largest).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_full_disk_operations_are_refused_and_granted_permits_hold() {
    let mount = tempfile::tempdir().unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(mount.path()).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("may not mount a small disk here; the limit on file size stands in for it in another test");
        return;
    }
    let full = std::panic::catch_unwind(|| {
        let filler = mount.path().join("filler");
        fs::write(&filler, vec![1; 4 << 20]).unwrap();
        let log = open(&mount.path().join("log"));
        until_refused(&log);
        // A rotation needs a new file, and the log goes on in the one it has.
        let seq = log.last_seq();
        assert!(matches!(log.rotate(), Err(AuditError::NoSpace { .. })));
        assert_eq!((log.last_seq(), log.failure()), (seq, None));
        fs::remove_file(&filler).unwrap();
        log.record(file_read(1)).unwrap();
        log.rotate().unwrap();
        drop(log);
        let report = verify_all(&mount.path().join("log"), &key(), None);
        assert!(report.is_ok(), "{report}");
        assert!(AuditLog::open(&mount.path().join("log"), key(), identity(), Options::default()).is_ok());
    });
    assert!(Command::new("umount").arg(mount.path()).status().unwrap().success());
    full.unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_write_that_fails_leaves_no_half_line_and_stops_the_log_until_recovered() {
    let Some(dir) = child_dir() else {
        let dir = tempfile::tempdir().unwrap();
        let mut child =
            child("a_write_that_fails_leaves_no_half_line_and_stops_the_log_until_recovered", dir.path());
        let _pipe = wait_for_line(&mut child, "failed and recovered");
        assert!(child.wait().unwrap().success());
        let report = verify_all(dir.path(), &key(), None);
        assert!(report.is_ok(), "{report}");
        return;
    };
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = |bytes| setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    let log = open(&dir);
    log.record(file_read(1)).unwrap();
    let (permit, size) = (log.reserve().unwrap(), log.size_bytes());
    limit(Some(size + 100)); // after the permit was granted: the write ends half-way
    assert!(matches!(permit.write(file_read(2)), Err(AuditError::Io { .. })));
    assert_eq!(log_path_size(&dir), size);
    assert!(matches!(log.reserve().map(drop), Err(AuditError::Failed { .. })));
    assert!(log.try_recover().is_err(), "the limit still stands");
    assert!(matches!(log.reserve().map(drop), Err(AuditError::Failed { .. })));
    limit(None);
    log.try_recover().unwrap();
    log.record(file_read(3)).unwrap();
    let kinds = log.repairs();
    assert!(matches!(&kinds[..], [Repair::WriteFailed { .. }]), "{kinds:?}");
    println!("failed and recovered");
}

#[cfg(target_os = "linux")]
fn log_path_size(dir: &Path) -> u64 {
    audit::log_path(dir).metadata().unwrap().len()
}
