//! `deskhand audit` on a real log.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use audit::{AuditKey, AuditLog, Entry, Identity, Options};
use common::Desk;
use vault::{BackendChoice, SecretString, Vault, VaultOptions};

fn vault(desk: &Desk) -> Vault {
    Vault::open(&VaultOptions {
        state_dir: desk.path("state"),
        service: "unused".into(),
        passphrase: Some(SecretString::from("a passphrase for tests")),
        backend: BackendChoice::File,
    })
    .unwrap()
}

/// A log of `count` records, written as `run` does.
fn with_log(count: usize) -> Desk {
    let desk = Desk::new();
    let (state, vault) = (desk.path("state"), vault(&desk));
    let key = AuditKey::new(*vault.audit_key().unwrap());
    let identity = Identity { machine_id: "m".into(), shim_version: "0".into() };
    let log = AuditLog::open(&state, key, identity, Options::default()).unwrap();
    for _ in 0..count {
        log.record(Entry::event("SHIM_START", serde_json::Map::new())).unwrap();
    }
    log.sync().unwrap();
    desk
}

#[test]
fn records_are_shown_as_they_are_in_the_log() {
    let desk = with_log(5);
    let text = std::fs::read_to_string(desk.log()).unwrap();
    assert_eq!(desk.run(&["audit", "tail", "--json"]).expect(0).stdout, text);
    let last: Vec<_> = text.lines().rev().take(2).collect();
    assert_eq!(
        desk.run(&["audit", "tail", "--json", "-n", "2"]).expect(0).stdout,
        format!("{}\n{}\n", last[1], last[0])
    );
    let columns = desk.run(&["audit", "tail", "-n", "2"]).expect(0).stdout;
    let columns: Vec<Vec<_>> = columns.lines().map(|line| line.split_whitespace().collect()).collect();
    let hmac = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["hmac"].as_str().unwrap()[..8].to_owned()
    };
    assert_eq!(columns[0], ["4", hmac(last[1]).as_str(), "SHIM_START", "ok"]);
    assert_eq!(columns[1], ["5", hmac(last[0]).as_str(), "SHIM_START", "ok"]);
    assert_eq!(desk.run(&["audit", "show", "3"]).expect(0).json()["seq"], 3);
    let none = desk.run(&["audit", "show", "6"]).expect(1);
    assert!(none.stderr.contains("no record 6"), "{}", none.stderr);
}

#[test]
fn a_whole_log_verifies_and_a_changed_one_exits_65_and_names_the_line() {
    let desk = with_log(5);
    desk.run(&["audit", "verify"]).expect(0);
    assert!(desk.run(&["audit", "verify-all"]).expect(0).stdout.ends_with("ok\n"));
    let whole = std::fs::read_to_string(desk.log()).unwrap();

    let mut lines: Vec<_> = whole.lines().map(str::to_owned).collect();
    lines[2] = lines[2].replace("SHIM_START", "SHIM_STOPS");
    std::fs::write(desk.log(), lines.join("\n") + "\n").unwrap();
    let verified = desk.run(&["audit", "verify"]).expect(65);
    assert!(verified.stdout.contains("line 3: tampered"), "{}", verified.stdout);
    desk.run(&["audit", "verify-all"]).expect(65);

    // A cut end shows by the head, and, with that gone too, by a hmac that was noted down.
    let last = serde_json::from_str::<serde_json::Value>(whole.lines().last().unwrap()).unwrap();
    let hmac = last["hmac"].as_str().unwrap();
    std::fs::write(desk.log(), whole.lines().take(3).map(|line| format!("{line}\n")).collect::<String>())
        .unwrap();
    for command in ["verify", "verify-all"] {
        let cut = desk.run(&["audit", command]).expect(65);
        assert!(
            cut.stdout.contains("PROBLEM") && cut.stdout.contains("the end is missing, up to seq 5"),
            "{cut:?}"
        );
    }
    std::fs::remove_file(desk.path("state/audit.head")).unwrap();
    desk.run(&["audit", "verify"]).expect(0);
    desk.run(&["audit", "verify", "--last", hmac]).expect(65);
    desk.run(&["audit", "verify", "--last", "zz"]).expect(64);
    std::fs::remove_file(desk.log()).unwrap();
    desk.run(&["audit", "verify"]).expect(65);
}

#[test]
fn a_log_is_rotated_pruned_and_exported_while_nothing_runs() {
    let desk = with_log(3);
    let closed = desk.run(&["audit", "rotate"]).expect(0).stdout;
    assert!(closed.contains("audit.log.2"), "{closed}");
    let zip = desk.path("export.zip");
    let zip = zip.to_str().unwrap();
    desk.run(&["audit", "export", zip]).expect(0);
    desk.run(&["audit", "verify", zip]).expect(0);
    let taken = desk.run(&["audit", "export", zip]).expect(78);
    assert!(taken.stderr.contains(zip) && taken.stderr.contains("choose another name"), "{taken:?}");
    let kept = desk.run(&["audit", "prune", "--older-than", "90d"]).expect(0);
    assert_eq!(kept.stdout, "");
    assert!(kept.stderr.contains("nothing to delete"), "{kept:?}");
    assert_eq!(desk.run(&["audit", "prune", "--older-than", "0s"]).expect(0).stdout, closed);
    desk.run(&["audit", "verify-all"]).expect(0);
    let bytes = std::fs::read(zip).unwrap();
    let middle = bytes.len() / 3;
    let changed: Vec<_> =
        bytes.iter().enumerate().map(|(at, b)| if at == middle { b ^ 1 } else { *b }).collect();
    std::fs::write(zip, changed).unwrap();
    desk.run(&["audit", "verify", zip]).expect(65);
}

#[test]
fn a_file_that_is_not_there_is_a_mistake_of_the_command_line_and_no_verdict() {
    let desk = with_log(1);
    let none = desk.path("none").display().to_string();
    let zip = desk.path("none.zip").display().to_string();
    let folder = desk.path("share").display().to_string();
    let last = "0".repeat(64);
    let wrong: [&[&str]; 5] = [
        &["audit", "verify", &none],
        &["audit", "verify", &none, "--last", &last],
        &["audit", "verify", &zip],
        &["audit", "verify", &folder],
        &["audit", "show", "1", "--file", &none],
    ];
    for arguments in wrong {
        let ended = desk.run(arguments).expect(64);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert!(
            arguments.iter().any(|argument| argument.len() > 8 && ended.stderr.contains(argument)),
            "{ended:?}"
        );
    }
}

#[test]
fn a_record_that_was_closed_away_is_found_by_what_show_says() {
    let desk = with_log(3);
    let closed = desk.run(&["audit", "rotate"]).expect(0).stdout;
    let closed = closed.trim();
    let none = desk.run(&["audit", "show", "3"]).expect(1).stderr;
    assert!(none.contains(&format!("deskhand audit show 3 --file {closed}")), "{none}");
    assert_eq!(desk.run(&["audit", "show", "3", "--file", closed]).expect(0).json()["seq"], 3);
}

#[test]
fn the_key_is_shown_only_when_asked_for_by_name() {
    let desk = with_log(1);
    desk.run(&["audit", "key"]).expect(64);
    let key = desk.run(&["audit", "key", "--show"]).expect(0).stdout;
    assert_eq!(key.trim().len(), 64, "{key}");
    assert!(key.trim().bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn without_a_key_nothing_verifies_and_none_is_made() {
    let desk = Desk::new();
    for command in ["verify", "verify-all", "rotate"] {
        let ended = desk.run(&["audit", command]).expect(78);
        assert!(ended.stderr.contains("no audit key yet"), "{}", ended.stderr);
    }
    let empty = desk.run(&["audit", "tail"]).expect(0);
    assert!(empty.stderr.contains("no log yet"), "{}", empty.stderr);
}

#[test]
fn a_log_that_is_being_written_is_not_taken_over() {
    let desk = with_log(2);
    let vault = vault(&desk);
    let identity = Identity { machine_id: "m".into(), shim_version: "0".into() };
    let key = AuditKey::new(*vault.audit_key().unwrap());
    let _writing = AuditLog::open(&desk.path("state"), key, identity, Options::default()).unwrap();
    for arguments in [&["audit", "rotate"][..], &["audit", "prune", "--older-than", "1d"]] {
        let ended = desk.run(arguments).expect(69);
        assert!(ended.stderr.contains("another process is writing"), "{}", ended.stderr);
    }
    desk.run(&["audit", "verify-all"]).expect(0);
}
