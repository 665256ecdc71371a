//! Commands that outlive Deskhand itself: they stop or kill what holds them and end this program in the same moment,
//! and the next run ends them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failure fails the test")]

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{Bench, STUBBORN, STUBBORN_COUNT, assert_dead, is_alive, pids_in, processes_in, until};
use exec::lineage::{end_survivors, is_inside_command, is_marked};
use exec::{CommandSpec, Cwd, Host, Mark, Program, Shell};

const LINE: &str = "EXEC_TEST_LINE";
const MARK: &str = "EXEC_TEST_MARK";

/// Each test has its own, and each run of the tests: they run at one time.
fn mark(number: u32) -> Mark {
    Mark((std::process::id() << 4) + number)
}

/// Runs in a process of its own, started by the tests: a Deskhand that runs one command, as long as it is let.
#[test]
fn a_run_that_a_command_ends() {
    let (Some(line), Some(mark)) = (std::env::var_os(LINE), std::env::var_os(MARK)) else { return };
    let host = Host::with_mark(Mark(mark.to_str().unwrap().parse().unwrap())).unwrap();
    let spec = CommandSpec {
        program: Program::Line { shell: Shell::Auto, command: line.into_string().unwrap() },
        cwd: Cwd::open(&std::env::current_dir().unwrap()).unwrap(),
        timeout: common::LONG,
        env: vec![("DESKHAND".to_owned(), std::process::id().to_string())],
        output_limit: 1 << 20,
    };
    host.start("chat", spec).unwrap().wait();
    fs::write("ended", "").unwrap();
}

/// A Deskhand that runs `line`, and is ended by it.
fn run(dir: &Path, mark: Mark, line: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_run_that_a_command_ends"]).current_dir(dir);
    command.env(LINE, line).env(MARK, mark.0.to_string()).stdout(Stdio::null()).process_group(0);
    command.spawn().unwrap()
}

/// Whether the tests can be trusted to tell: inside a command of a Deskhand, all is marked.
fn can_tell() -> bool {
    !is_inside_command() && Host::with_mark(Mark(0)).unwrap().is_marking()
}

/// Runs `line`, which ends its Deskhand, and looks at what is left before and after the next start.
fn outlives_and_is_ended(number: u32, line: &str, pids: usize) {
    if !can_tell() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mark = mark(number);
    let mut deskhand = run(dir.path(), mark, line);
    let pids = pids_in(&dir.path().join("pids"), pids);
    fs::write(dir.path().join("go"), "").unwrap();
    deskhand.wait().unwrap();
    assert!(!dir.path().join("ended").exists(), "the command was to end it");
    assert!(pids.iter().all(|pid| is_alive(*pid)), "nothing has outlived it: the attack is none");
    // Another installation does not touch them (but ends the spoilt ones of a test that runs now).
    end_survivors(Mark(mark.0 ^ (1 << 31)));
    assert!(pids.iter().all(|pid| is_alive(*pid) && is_marked(pid.unsigned_abs())));

    assert!(end_survivors(mark) >= pids.len());
    assert_dead(&pids);
    assert_eq!(processes_in(dir.path()), [0; 0]);
    assert_eq!(end_survivors(mark), 0);
}

const AWAIT_GO: &str = "while ! [ -e go ]; do sleep 0.01; done";

#[test]
fn a_command_that_stops_its_supervisor_and_kills_deskhand_is_ended_by_the_next_start() {
    let line = format!("{STUBBORN}\n{AWAIT_GO}; kill -STOP $PPID; kill -KILL $DESKHAND; sleep 1000");
    outlives_and_is_ended(0, &line, STUBBORN_COUNT);
}

#[test]
fn a_command_that_kills_its_supervisor_and_deskhand_is_ended_by_the_next_start() {
    // A group that loses its supervisor and has a stopped member is hung up.
    let line = format!(
        "trap '' HUP; {STUBBORN}\n{AWAIT_GO}; kill -STOP $PPID; kill -KILL $DESKHAND; kill -KILL $PPID; sleep 1000"
    );
    outlives_and_is_ended(1, &line, STUBBORN_COUNT);
}

#[test]
fn what_has_changed_its_session_environment_program_and_namespace_is_ended_by_the_next_start() {
    let hide = "echo $$ >> pids; while ! [ -e went ]; do sleep 0.01; done; exec -a innocent sleep 1000";
    let line = format!(
        "(setsid -f env -i PATH=$PATH bash -c '{hide}')
        (setsid -f unshare --user --map-root-user bash -c '{hide}' || echo $$ >> pids)
        {AWAIT_GO}; kill -STOP $PPID; kill -KILL $DESKHAND; kill -KILL $PPID; touch went; sleep 1000"
    );
    outlives_and_is_ended(2, &line, 2);
}

/// Not asked of another installation: that would be right to end it too, as any of the tests that run now may.
#[test]
fn a_mark_that_was_spoilt_does_not_save_its_process() {
    if !can_tell() || can_raise_limits() {
        return; // who may raise limits may take the mark off
    }
    let spoil = "ulimit -Sm 5000; ulimit -Hm 5000; ulimit -Hm unlimited 2>/dev/null";
    let line = format!(
        "({spoil}; echo $BASHPID >> pids; exec sleep 1000) &
        {AWAIT_GO}; kill -STOP $PPID; kill -KILL $DESKHAND; kill -KILL $PPID; {spoil}; sleep 1000"
    );
    let dir = tempfile::tempdir().unwrap();
    let mut deskhand = run(dir.path(), mark(3), &line);
    let pids = pids_in(&dir.path().join("pids"), 1);
    fs::write(dir.path().join("go"), "").unwrap();
    deskhand.wait().unwrap();
    end_survivors(mark(3));
    assert_dead(&pids);
    assert_eq!(processes_in(dir.path()), [0; 0]);
}

/// A flood of processes that start others as long as they are let, without anything above them.
#[test]
fn a_flood_that_outlives_deskhand_is_ended_by_the_next_start() {
    let flood = "#!/bin/bash\n\
        trap '' TERM\n\
        echo $$ >> pids\n\
        while :; do [ $(wc -l < pids) -lt 100 ] && { setsid bash ./flood & }; sleep 0.01; done\n";
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("flood"), flood).unwrap();
    if !can_tell() {
        return;
    }
    let line = format!(
        "setsid bash {}/flood & {AWAIT_GO}; kill -STOP $PPID; kill -KILL $DESKHAND; sleep 1000",
        dir.path().display()
    );
    let mut deskhand = run(dir.path(), mark(4), &line);
    pids_in(&dir.path().join("pids"), 60);
    fs::write(dir.path().join("go"), "").unwrap();
    deskhand.wait().unwrap();
    assert!(end_survivors(mark(4)) > 60);
    assert_eq!(processes_in(dir.path()), [0; 0]);
}

#[test]
fn commands_are_known_wherever_they_have_gone_and_other_processes_are_not() {
    if !can_tell() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let host = Host::with_mark(mark(5)).unwrap();
    let innocent = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut bench = Bench::alone();
    bench.host = host;
    bench.run("(setsid -f env -i sh -c 'echo $$ >> pids; exec sleep 1000'); echo $PPID >> pids");
    let pids = bench.pids(1);
    assert!(bench.host.is_command(pids[0].unsigned_abs()));
    for stranger in [innocent.id(), std::process::id(), 1, u32::MAX] {
        assert!(!bench.host.is_command(stranger), "{stranger}");
    }
    end(innocent);
    drop(dir);
}

/// As on the systems without marks: what a host has started is known by its tree.
#[test]
fn a_host_without_marks_knows_what_is_in_its_trees() {
    let bench = Bench::new();
    let running = bench.host.start("chat", bench.line(&format!("{STUBBORN}\nsleep 1000"))).unwrap();
    let pids = bench.pids(STUBBORN_COUNT);
    assert!(!bench.host.is_marking());
    for pid in &pids {
        until("it is known", || bench.host.is_command(pid.unsigned_abs()));
    }
    assert!(bench.host.is_command(running.pid()));
    assert!(!bench.host.is_command(std::process::id()));
    bench.host.kill_all();
}

/// An agent that works on Deskhand itself runs one within a command of another one.
#[test]
fn within_a_command_nothing_is_taken_for_a_survivor() {
    let bench = Bench::new();
    if std::env::var_os("EXEC_TEST_WITHIN").is_some() {
        let innocent = Command::new("sleep").arg("1000").spawn().unwrap();
        let seen = (is_inside_command(), is_marked(innocent.id()), end_survivors(mark(6)));
        end(innocent);
        assert_eq!(bench.run("echo works").stdout, "works\n");
        assert!(!Host::with_mark(mark(6)).unwrap().is_marking());
        fs::write("within", format!("{seen:?}")).unwrap();
        return;
    }
    if !can_tell() {
        return;
    }
    let host = Host::with_mark(mark(6)).unwrap();
    let test = std::env::current_exe().unwrap().display().to_string();
    let mut spec = bench.argv(&[&test, "--exact", "within_a_command_nothing_is_taken_for_a_survivor"]);
    spec.env = vec![("EXEC_TEST_WITHIN".to_owned(), "1".to_owned())];
    let outcome = host.start("chat", spec).unwrap().wait();
    let within =
        fs::read_to_string(bench.dir.path().join("within")).unwrap_or_else(|_| panic!("{outcome:?}"));
    assert_eq!(within, "(true, false, 0)");
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// CAP_SYS_RESOURCE, bit 24 of linux/capability.h: root outside a container has it.
fn can_raise_limits() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(effective.trim(), 16).unwrap() & (1 << 24) != 0
}
