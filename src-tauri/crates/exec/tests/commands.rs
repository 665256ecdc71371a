//! What a command gets, and what comes back of it.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a failure fails the test; raw calls set up what the tests need"
)]

mod common;

use std::fs::{self, File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use common::Bench;
use exec::{Cwd, ExecError, Program, Shell, TRUNCATION_MARK, baseline_env};

#[test]
fn output_and_exit_code_come_back() {
    let outcome = Bench::new().run("echo out; echo err >&2; exit 3");
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str(), outcome.exit_code), ("out\n", "err\n", 3));
    assert!(!outcome.timed_out && !outcome.cancelled && !outcome.output_truncated);
    assert!(outcome.duration > Duration::ZERO);
}

#[test]
fn an_argv_is_not_expanded() {
    let bench = Bench::new();
    let words = ["printf", "%s|", "$HOME", "*", "a b", "", "-n", "; exit 9"];
    let outcome = bench.host.start("chat", bench.argv(&words)).unwrap().wait();
    assert_eq!((outcome.stdout.as_str(), outcome.exit_code), ("$HOME|*|a b||-n|; exit 9|", 0));
}

#[test]
fn each_shell_runs_a_line() {
    let bench = Bench::new();
    for shell in [Shell::Auto, Shell::Sh, Shell::Bash] {
        let program = Program::Line { shell, command: "echo \"$0\"; echo ${BASH_VERSION:+bash}".to_owned() };
        let outcome = bench.host.start("chat", bench.spec(program)).unwrap().wait();
        let name = exec::resolve_shell(shell).unwrap();
        assert!(outcome.stdout.starts_with(name.file_name().unwrap().to_str().unwrap()), "{outcome:?}");
    }
    let cmd = Program::Line { shell: Shell::Cmd, command: "dir".to_owned() };
    let error = bench.host.start("chat", bench.spec(cmd)).unwrap_err();
    assert!(matches!(error, ExecError::ShellNotAvailable { requested: Shell::Cmd }));
}

#[test]
fn death_by_signal_is_its_negative_number() {
    let bench = Bench::new();
    assert_eq!(bench.run("kill -9 $$").exit_code, -9);
    assert_eq!(bench.run("kill -TERM $$").exit_code, -15);
    assert_eq!(bench.run("kill -SEGV $$").exit_code, -11);
}

#[test]
fn stdin_is_empty() {
    let outcome = Bench::new().run("cat; read x || echo none; readlink /proc/self/fd/0");
    assert_eq!(outcome.stdout, "none\n/dev/null\n");
}

#[test]
fn the_environment_is_the_baseline_and_the_requests() {
    // SAFETY: nothing else of this test binary reads or changes this variable.
    unsafe { std::env::set_var("DESKHAND_KEYCHAIN_PASSPHRASE", "hunter2") };
    let bench = Bench::new();
    let mut spec = bench.argv(&["env", "-0"]);
    spec.env = vec![("GREETING".to_owned(), "a=b\nc".to_owned()), ("TZ".to_owned(), "CET".to_owned())];
    let outcome = bench.host.start("chat", spec).unwrap().wait();
    let mut seen: Vec<_> = outcome.stdout.split_terminator('\0').map(str::to_owned).collect();
    let mut wanted: Vec<_> = baseline_env()
        .into_iter()
        .filter(|(name, _)| name != "TZ")
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .chain(["GREETING=a=b\nc".to_owned(), "TZ=CET".to_owned()])
        .collect();
    seen.sort();
    wanted.sort();
    assert_eq!(seen, wanted);
}

#[test]
fn no_environment_of_a_parent_holds_a_secret() {
    // SAFETY: nothing else of this test binary reads or changes this variable.
    unsafe { std::env::set_var("DESKHAND_TEST_SECRET", "hunter2") };
    // Its supervisor is its parent; `tr` makes the NULs of the file readable.
    let outcome = Bench::new().run("tr '\\0' '\\n' < /proc/$PPID/environ; echo end");
    assert!(!outcome.stdout.contains("hunter2"), "{outcome:?}");
    assert!(outcome.stdout.ends_with("end\n"));
}

#[test]
fn no_handle_of_ours_is_inherited() {
    let leak = File::open("/dev/zero").unwrap();
    // SAFETY: clears a flag of a handle that is open.
    let cleared = unsafe { libc::fcntl(leak.as_raw_fd(), libc::F_SETFD, 0) };
    assert_eq!(cleared, 0);
    let outcome = Bench::new().run("ls /proc/$$/fd; echo --; ls -l /proc/$PPID/fd /proc/$$/fd");
    let (fds, targets) = outcome.stdout.split_once("--").unwrap();
    assert_eq!(fds.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2"], "{outcome:?}");
    assert!(!targets.contains("/dev/zero"), "{outcome:?}");
}

#[test]
fn signals_are_as_a_login_has_them() {
    // SAFETY: ignoring a signal that nothing sends to this process.
    unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
    let outcome = Bench::new().run("grep -E '^Sig(Blk|Ign)' /proc/self/status");
    for line in outcome.stdout.lines() {
        let mask = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        // 32 and 33 are the C library's own, and it sets them as it likes in what it spawns.
        assert_eq!(mask & !(0b11 << 31), 0, "{outcome:?}");
    }
    assert_eq!(Bench::new().run("yes | head -n 1; echo ${PIPESTATUS[0]}").stdout, "y\n141\n");
}

#[test]
fn the_process_group_and_session_are_not_ours() {
    let outcome = Bench::new().run("ps -o pgid=,sid= -p $$; echo $$ $PPID");
    let numbers: Vec<i32> = outcome.stdout.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [group, session, command, supervisor] = numbers[..] else { panic!("{outcome:?}") };
    assert_eq!((group, session), (command, supervisor));
}

#[test]
fn a_signal_to_its_own_group_does_not_reach_the_supervisor() {
    let outcome = Bench::new().run("echo before; kill -9 0; echo after");
    assert_eq!((outcome.stdout.as_str(), outcome.exit_code), ("before\n", -9));
}

#[test]
fn signals_to_the_supervisor_do_nothing() {
    let outcome = Bench::new()
        .run("for s in HUP INT QUIT TERM USR1 PIPE ALRM CHLD TSTP; do kill -$s $PPID; done; exit 4");
    assert_eq!(outcome.exit_code, 4);
}

#[test]
fn programs_that_are_not_there_or_cannot_run_are_told_apart() {
    let bench = Bench::new();
    let tool = bench.dir.path().join("tool");
    let start = |argv: &[&str]| bench.host.start("chat", bench.argv(argv)).map(drop).unwrap_err();
    fn missing(error: &ExecError) -> bool {
        matches!(error, ExecError::ProgramNotFound { .. })
    }
    fn unusable(error: &ExecError) -> bool {
        matches!(error, ExecError::ProgramNotExecutable { .. })
    }
    type Expected = fn(&ExecError) -> bool;
    let cases: [(&str, u32, Expected); 4] = [
        ("#!/bin/sh\n", 0o644, unusable),
        ("#!/no/such/interpreter\n", 0o755, missing),
        ("no format at all\n", 0o755, unusable),
        ("", 0o755, unusable),
    ];
    assert!(missing(&start(&["no-such-program-anywhere"])));
    assert!(missing(&start(&["./tool"])));
    assert!(missing(&start(&["tool"])));
    for (content, mode, expected) in cases {
        fs::write(&tool, content).unwrap();
        fs::set_permissions(&tool, Permissions::from_mode(mode)).unwrap();
        let error = start(&["./tool"]);
        assert!(expected(&error), "{content:?}: {error:?}");
        assert!(expected(&start(&[tool.to_str().unwrap()])), "{content:?}");
    }
    assert!(unusable(&start(&["./"])));
    assert!(bench.host.survivors().is_empty());
}

#[test]
fn a_path_is_searched_where_the_request_says() {
    let bench = Bench::new();
    let tool = bench.dir.path().join("tool");
    fs::write(&tool, "#!/bin/sh\necho mine\n").unwrap();
    fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    let mut spec = bench.argv(&["tool"]);
    spec.env = vec![("PATH".to_owned(), bench.dir.path().to_str().unwrap().to_owned())];
    assert_eq!(bench.host.start("chat", spec).unwrap().wait().stdout, "mine\n");
    assert_eq!(bench.host.start("chat", bench.argv(&["./tool"])).unwrap().wait().stdout, "mine\n");
}

#[test]
fn a_command_longer_than_the_os_takes_is_refused() {
    let bench = Bench::new();
    let long = "x".repeat(4 << 20);
    let error = bench.host.start("chat", bench.argv(&["echo", &long])).map(drop).unwrap_err();
    assert!(matches!(error, ExecError::BadSpec(_)), "{error:?}");
    // What it does take arrives whole.
    let long = "x".repeat(120 << 10);
    let outcome = bench.host.start("chat", bench.argv(&["echo", &long, &long, &long])).unwrap().wait();
    assert_eq!(outcome.stdout.len(), 3 * long.len() + 3);
}

#[test]
fn a_command_starts_in_the_folder_that_was_opened() {
    let bench = Bench::new();
    let (inside, moved) = (bench.dir.path().join("inside"), bench.dir.path().join("moved"));
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("mark"), "").unwrap();
    let mut spec = bench.argv(&["ls"]);
    spec.cwd = Cwd::open(&inside).unwrap();
    fs::rename(&inside, &moved).unwrap();
    std::os::unix::fs::symlink("/", &inside).unwrap();
    assert_eq!(bench.host.start("chat", spec).unwrap().wait().stdout, "mark\n");
}

#[test]
fn a_deleted_folder_is_refused() {
    let bench = Bench::new();
    let inside = bench.dir.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let mut spec = bench.line("echo ran");
    spec.cwd = Cwd::open(&inside).unwrap();
    fs::remove_dir(&inside).unwrap();
    let error = bench.host.start("chat", spec).map(drop).unwrap_err();
    assert!(matches!(error, ExecError::CwdUnavailable { .. }), "{error:?}");
}

#[test]
fn a_file_is_no_folder() {
    let bench = Bench::new();
    fs::write(bench.dir.path().join("file"), "").unwrap();
    assert!(Cwd::open(&bench.dir.path().join("file")).is_err());
    assert!(Cwd::open(&bench.dir.path().join("none")).is_err());
}

#[test]
fn what_is_not_utf8_is_replaced() {
    let outcome = Bench::new().run(r"printf 'a\377b\303\251\342\202'; printf '\360' >&2");
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("a\u{FFFD}bé\u{FFFD}", "\u{FFFD}"));
}

#[test]
fn a_character_that_comes_in_two_parts_is_whole() {
    let outcome =
        Bench::new().run(r"printf '\342\202'; sleep 0.05; printf '\254'; printf '\342' >&2; printf x");
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("€x", "\u{FFFD}"));
}

#[test]
fn output_over_the_budget_is_dropped_and_marked() {
    let bench = Bench::new();
    for limit in [0, 1, 25, 26, 27, 28, 64, 1000, 100_000] {
        let mut spec =
            bench.line("echo first >&2; head -c 3000000 /dev/zero | tr '\\0' x; echo last >&2; exit 5");
        spec.output_limit = limit;
        let outcome = bench.host.start("chat", spec).unwrap().wait();
        assert_eq!((outcome.exit_code, outcome.output_truncated), (5, true), "{limit}");
        assert!(outcome.stdout.len() + outcome.stderr.len() <= limit, "{limit}");
        let mark = &TRUNCATION_MARK[..limit.min(TRUNCATION_MARK.len())];
        assert!(outcome.stderr.ends_with(mark), "{limit}: {}", outcome.stderr);
    }
    let mut spec = bench.line("printf 12345; printf 678 >&2");
    spec.output_limit = 8;
    let outcome = bench.host.start("chat", spec).unwrap().wait();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("12345", "678"));
    assert!(!outcome.output_truncated);
}

#[test]
fn a_flood_is_drained_in_little_memory() {
    let bench = Bench::new();
    let mut spec = bench.line("head -c 300000000 /dev/zero; head -c 100000000 /dev/zero >&2; echo done >&2");
    spec.output_limit = 1 << 20;
    let before = peak_memory();
    let started = Instant::now();
    let outcome = bench.host.start("chat", spec).unwrap().wait();
    println!("400 MB drained in {:?}", started.elapsed());
    assert_eq!((outcome.exit_code, outcome.output_truncated), (0, true));
    let grown = peak_memory() - before;
    assert!(grown < 64 << 10, "{grown} KiB more at the peak");
}

/// In KiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
