//! Trees that end: by timeout, cancel, kill, drop; and what outlives its command until then.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a failure fails the test; raw calls set up what the tests need"
)]

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{Bench, STUBBORN, STUBBORN_COUNT, assert_dead, is_alive, until};
use exec::{ExecError, Host, MAX_TREES};

/// The stubborn ones below a command that goes on itself.
fn stubborn_and_waiting() -> String {
    format!("{STUBBORN}\necho ready; sleep 1000")
}

#[test]
fn a_timeout_ends_every_kind_of_descendant() {
    let bench = Bench::new();
    let mut spec = bench.line(&stubborn_and_waiting());
    spec.timeout = Duration::from_millis(500);
    let running = bench.host.start("chat", spec).unwrap();
    let command = running.pid() as i32;
    let outcome = running.wait();
    assert!(outcome.timed_out);
    assert_eq!((outcome.exit_code, outcome.stdout.as_str()), (-1, "ready\n"));
    assert!(outcome.duration >= Duration::from_millis(500));
    assert_dead(&bench.pids(STUBBORN_COUNT));
    assert_dead(&[command]);
    assert!(bench.host.survivors().is_empty());
}

#[test]
fn a_timeout_asks_first_and_does_not_wait_for_who_obeys() {
    let bench = Bench::new();
    let mut spec = bench.line("trap 'echo bye; exit 0' TERM; echo hello; while :; do sleep 0.02; done");
    spec.timeout = Duration::from_millis(200);
    let outcome = bench.host.start("chat", spec).unwrap().wait();
    assert!(outcome.timed_out);
    assert_eq!((outcome.exit_code, outcome.stdout.as_str()), (-1, "hello\nbye\n"));
    println!("ended after {:?}", outcome.duration);
}

#[test]
fn a_timeout_reaches_who_has_closed_its_output() {
    let bench = Bench::new();
    let mut spec = bench.line("echo $$ >> pids; exec >&- 2>&-; trap '' TERM; while :; do sleep 1000; done");
    spec.timeout = Duration::from_millis(100);
    let outcome = bench.host.start("chat", spec).unwrap().wait();
    assert!(outcome.timed_out);
    assert_dead(&bench.pids(1));
}

#[test]
fn a_cancel_ends_every_kind_of_descendant() {
    let bench = Bench::new();
    let running = bench.host.start("chat", bench.line(&stubborn_and_waiting())).unwrap();
    let canceller = running.canceller();
    let waiting = thread::spawn(move || running.wait());
    let pids = bench.pids(STUBBORN_COUNT);
    canceller.cancel();
    let outcome = waiting.join().unwrap();
    assert!(outcome.cancelled && !outcome.timed_out);
    assert_eq!(outcome.exit_code, -9);
    assert_dead(&pids);
}

#[test]
fn a_cancel_needs_nobody_who_waits() {
    let bench = Bench::new();
    let running = bench.host.start("chat", bench.line(&stubborn_and_waiting())).unwrap();
    let pids = bench.pids(STUBBORN_COUNT);
    running.canceller().cancel();
    assert_dead(&pids);
    let outcome = running.wait();
    assert!(outcome.cancelled);
    assert_eq!((outcome.exit_code, outcome.stdout.as_str()), (-9, "ready\n"));
}

#[test]
fn a_cancel_after_the_end_leaves_what_lives_on_to_the_owner() {
    let bench = Bench::new();
    let running = bench.host.start("chat", bench.line("sleep 1000 & echo $! >> pids")).unwrap();
    let canceller = running.canceller();
    let outcome = running.wait();
    canceller.cancel();
    assert!(!outcome.cancelled);
    assert!(is_alive(bench.pids(1)[0]));
}

#[test]
fn dropping_a_command_ends_every_kind_of_descendant() {
    let bench = Bench::new();
    let running = bench.host.start("chat", bench.line(&stubborn_and_waiting())).unwrap();
    let pids = bench.pids(STUBBORN_COUNT);
    drop(running);
    assert_dead(&pids);
}

#[test]
fn dropping_the_last_host_ends_everything() {
    let bench = Bench::new();
    let host = Host::new().unwrap();
    let outcome = host.start("chat", bench.line(STUBBORN)).unwrap().wait();
    assert_eq!(outcome.exit_code, 0);
    let pids = bench.pids(STUBBORN_COUNT);
    drop(host);
    assert_dead(&pids);
}

#[test]
fn a_background_process_does_not_delay_the_answer_and_belongs_to_its_owner() {
    let bench = Bench::new();
    let outcome = bench.run("sleep 1000 & echo $! >> pids; echo started");
    assert_eq!((outcome.stdout.as_str(), outcome.exit_code), ("started\n", 0));
    assert!(outcome.duration >= Duration::from_secs(2), "it holds the pipes: {:?}", outcome.duration);
    let survivors = bench.host.survivors();
    let pid = bench.pids(1)[0];
    assert_eq!(survivors.len(), 1);
    assert_eq!(
        (survivors[0].owner.as_str(), survivors[0].pid, survivors[0].name.as_str()),
        ("chat", pid as u32, "sleep")
    );
    bench.host.kill_owner("somebody else");
    assert!(is_alive(pid));
    bench.host.kill_owner("chat");
    assert_dead(&[pid]);
    assert!(bench.host.survivors().is_empty());
}

#[test]
fn a_background_process_with_output_of_its_own_does_not_hold_the_pipes() {
    let bench = Bench::new();
    let outcome = bench.run("sleep 1000 >/dev/null 2>&1 & echo $! >> pids");
    println!("answered after {:?}", outcome.duration);
    assert!(is_alive(bench.pids(1)[0]));
}

#[test]
fn a_background_process_can_go_on_printing() {
    let bench = Bench::new();
    // More than a pipe holds: it would stop, or die of SIGPIPE, if nobody read on.
    bench.run("(sleep 2.2; head -c 5000000 /dev/zero && echo ok > printed; echo ok >&2 && echo 1 >> pids) &");
    bench.pids(1);
    assert!(bench.dir.path().join("printed").exists());
    until("it has ended", || bench.host.survivors().is_empty());
}

#[test]
fn killing_an_owner_ends_running_and_background_processes_of_that_owner_only() {
    let bench = Bench::new();
    let start = |owner: &str| bench.host.start(owner, bench.line(&stubborn_and_waiting())).unwrap();
    let background = bench.host.start("chat", bench.line(STUBBORN)).unwrap();
    assert_eq!(background.wait().exit_code, 0);
    let running = start("chat");
    let pids = bench.pids(2 * STUBBORN_COUNT);
    let other = bench.host.start("other", bench.line("echo $$ >> other; sleep 1000")).unwrap();
    bench.host.kill_owner("chat");
    assert_dead(&pids);
    let outcome = running.wait();
    assert!(outcome.cancelled);
    assert_eq!(outcome.exit_code, -9);
    assert!(is_alive(other.pid() as i32));
}

#[test]
fn the_kill_switch_ends_32_commands_with_their_trees() {
    let bench = Bench::new();
    let waiting: Vec<_> = (0..32)
        .map(|number| {
            let running =
                bench.host.start(&format!("chat {number}"), bench.line(&stubborn_and_waiting())).unwrap();
            thread::spawn(move || running.wait())
        })
        .collect();
    let pids = bench.pids(32 * STUBBORN_COUNT);
    let started = Instant::now();
    bench.host.kill_all();
    let took = started.elapsed();
    assert_dead(&pids);
    println!("killed {} processes in {took:?}", pids.len());
    assert!(took < Duration::from_secs(5), "{took:?}");
    for thread in waiting {
        assert!(thread.join().unwrap().cancelled);
    }
    assert!(children_of_this_process().is_empty(), "no spare supervisor is left either");
    assert_eq!(bench.run("echo again").stdout, "again\n");
}

/// Only those of this test: with a thread for each test, others have children of their own.
fn children_of_this_process() -> Vec<String> {
    if std::env::var_os("NEXTEST").is_none() {
        return Vec::new();
    }
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .flat_map(|task| {
            let list = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
            list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn a_kill_while_commands_start_leaves_none() {
    let bench = Bench::new();
    for round in 0..20 {
        let starters: Vec<_> = (0..4)
            .map(|_| {
                let host = bench.host.clone();
                let spec = bench.line("echo $$ >> pids; sleep 1000");
                thread::spawn(move || host.start("chat", spec).map(exec::Running::wait))
            })
            .collect();
        // Not a wait for something: each round strikes at another moment of the start.
        thread::sleep(Duration::from_micros(400 * round));
        // Those that are asked for after the kill are not its business: kill until all have been answered.
        until("all have been answered", || {
            bench.host.kill_all();
            starters.iter().all(thread::JoinHandle::is_finished)
        });
        for starter in starters {
            match starter.join().unwrap() {
                Ok(outcome) => assert!(outcome.cancelled),
                Err(error) => assert!(matches!(error, ExecError::Stopped), "{error:?}"),
            }
        }
    }
    let text = std::fs::read_to_string(bench.dir.path().join("pids")).unwrap_or_default();
    assert_dead(&text.lines().map(|line| line.parse().unwrap()).collect::<Vec<_>>());
}

#[test]
fn kills_from_many_threads_at_once_all_return() {
    let bench = Bench::new();
    let running = bench.host.start("chat", bench.line(&stubborn_and_waiting())).unwrap();
    let pids = bench.pids(STUBBORN_COUNT);
    let killers: Vec<_> = (0..8)
        .map(|_| {
            let host = bench.host.clone();
            thread::spawn(move || host.kill_all())
        })
        .collect();
    for killer in killers {
        killer.join().unwrap();
    }
    assert_dead(&pids);
    assert!(running.wait().cancelled);
}

#[test]
fn trees_are_limited() {
    let bench = Bench::new();
    let mut running = Vec::new();
    let error = loop {
        match bench.host.start("chat", bench.argv(&["sleep", "1000"])) {
            Ok(one) => running.push(one),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ExecError::TooMany { limit: MAX_TREES, .. }), "{error:?}");
    assert_eq!(running.len(), MAX_TREES);
    bench.host.kill_all();
    drop(running);
    until("there is room again", || bench.host.start("chat", bench.line("true")).is_ok());
}

#[test]
fn many_commands_at_once_each_get_their_own() {
    let bench = Bench::new();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let host: Host = bench.host.clone();
            let specs: Vec<_> =
                (0..25).map(|n| (n, bench.line(&format!("echo {thread} {n}; exit {n}")))).collect();
            thread::spawn(move || {
                for (n, spec) in specs {
                    let outcome = host.start("chat", spec).unwrap().wait();
                    assert_eq!((outcome.stdout, outcome.exit_code), (format!("{thread} {n}\n"), n));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(bench.host.survivors().is_empty());
}
