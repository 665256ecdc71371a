//! What holds on Windows.
#![cfg(windows)]
#![allow(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a failure fails the test; a raw call sets up what one needs"
)]

mod common;

use std::thread;
use std::time::Duration;

use common::{Bench, until};
use exec::{ExecError, Program, Shell};

/// There is no `sleep`; this one takes no input.
const SLEEP: &str = "ping -n 1000 127.0.0.1 >nul";

#[test]
fn output_and_exit_code_come_back() {
    let outcome = Bench::new().run("echo out&echo err 1>&2&exit 3");
    assert_eq!((outcome.stdout.trim_end(), outcome.stderr.trim_end(), outcome.exit_code), ("out", "err", 3));
    assert!(!outcome.timed_out && !outcome.cancelled && !outcome.output_truncated);
}

#[test]
fn the_console_speaks_utf8() {
    let bench = Bench::new();
    assert!(bench.run("chcp").stdout.contains("65001"));
    assert_eq!(bench.run("echo é 漢").stdout.trim_end(), "é 漢");
}

#[test]
fn a_line_keeps_its_quotes() {
    let outcome = Bench::new().run("echo \"a b\" & echo c");
    assert_eq!(outcome.stdout.lines().map(str::trim_end).collect::<Vec<_>>(), ["\"a b\"", "c"]);
}

#[test]
fn an_argv_runs_without_a_shell() {
    let bench = Bench::new();
    let outcome = bench.host.start("chat", bench.argv(&["cmd", "/c", "exit", "7"])).unwrap().wait();
    assert_eq!(outcome.exit_code, 7);
}

#[test]
fn the_environment_is_the_baseline_and_the_requests() {
    // SAFETY: nothing else of this test binary reads or changes this variable.
    unsafe { std::env::set_var("DESKHAND_KEYCHAIN_PASSPHRASE", "hunter2") };
    let bench = Bench::new();
    let mut spec = bench.line("echo %GREETING%&set");
    spec.env = vec![("greeting".to_owned(), "lower".to_owned()), ("GREETING".to_owned(), "hello".to_owned())];
    let outcome = bench.host.start("chat", spec).unwrap().wait();
    assert!(outcome.stdout.starts_with("hello"), "{outcome:?}");
    assert!(!outcome.stdout.contains("hunter2"), "{outcome:?}");
    assert!(outcome.stdout.to_lowercase().contains("systemroot="), "{outcome:?}");
}

#[test]
fn a_command_starts_in_its_folder() {
    let bench = Bench::new();
    std::fs::write(bench.dir.path().join("mark"), "").unwrap();
    assert_eq!(bench.run("dir /b").stdout.trim_end(), "mark");
}

#[test]
fn programs_and_shells_that_are_not_there_are_refused() {
    let bench = Bench::new();
    let error = bench.host.start("chat", bench.argv(&["no-such-program-anywhere"])).map(drop).unwrap_err();
    assert!(matches!(error, ExecError::ProgramNotFound { .. }), "{error:?}");
    let zsh = Program::Line { shell: Shell::Zsh, command: "true".to_owned() };
    let error = bench.host.start("chat", bench.spec(zsh)).map(drop).unwrap_err();
    assert!(matches!(error, ExecError::ShellNotAvailable { requested: Shell::Zsh }), "{error:?}");
}

#[test]
fn a_timeout_ends_the_tree() {
    let bench = Bench::new();
    let mut spec = bench.line(&format!("echo ready&start /b {SLEEP}&{SLEEP}"));
    spec.timeout = Duration::from_secs(2);
    let outcome = bench.host.start("chat", spec).unwrap().wait();
    assert!(outcome.timed_out);
    assert_eq!((outcome.exit_code, outcome.stdout.trim_end()), (-1, "ready"));
    assert!(bench.host.survivors().is_empty());
}

#[test]
fn a_cancel_and_a_kill_end_the_tree() {
    let bench = Bench::new();
    for by_owner in [false, true] {
        let running = bench.host.start("chat", bench.line(&format!("start /b {SLEEP}&{SLEEP}"))).unwrap();
        let canceller = running.canceller();
        let waiting = thread::spawn(move || running.wait());
        if by_owner {
            bench.host.kill_owner("chat");
        } else {
            canceller.cancel();
        }
        let outcome = waiting.join().unwrap();
        assert!(outcome.cancelled);
        assert_eq!(outcome.exit_code, -9);
    }
    assert!(bench.host.survivors().is_empty());
}

#[test]
fn a_background_process_does_not_delay_the_answer_and_belongs_to_its_owner() {
    let bench = Bench::new();
    let outcome = bench.run("start /b ping -n 1000 127.0.0.1 & echo started");
    assert_eq!(outcome.exit_code, 0);
    assert!(outcome.stdout.contains("started"), "{outcome:?}");
    assert!(bench.host.survivors().iter().any(|survivor| survivor.name.eq_ignore_ascii_case("ping.exe")));
    bench.host.kill_owner("chat");
    until("all are dead", || bench.host.survivors().is_empty());
}

#[test]
fn dropping_a_command_ends_it() {
    let bench = Bench::new();
    drop(bench.host.start("chat", bench.line(SLEEP)).unwrap());
    assert!(bench.host.survivors().is_empty());
}

#[test]
fn output_over_the_budget_is_dropped_and_marked() {
    let bench = Bench::new();
    let mut spec = bench.line("for /l %i in (1,1,200) do @echo 0123456789");
    spec.output_limit = 100;
    let outcome = bench.host.start("chat", spec).unwrap().wait();
    assert!(outcome.output_truncated);
    assert!(outcome.stderr.ends_with(exec::TRUNCATION_MARK), "{outcome:?}");
    assert!(outcome.stdout.len() + outcome.stderr.len() <= 100);
}
