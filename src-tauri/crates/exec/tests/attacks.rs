//! Commands that fight what holds them.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a failure fails the test; raw calls set up what the tests need"
)]

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{Bench, STUBBORN, STUBBORN_COUNT, assert_dead, is_alive, pids_in, processes_in, until};

#[test]
fn killing_its_supervisor_ends_the_command_and_its_tree() {
    let bench = Bench::alone();
    let all_begun = format!("while [ $(wc -l < pids) -lt {STUBBORN_COUNT} ]; do sleep 0.01; done");
    let command = format!("{STUBBORN}\n{all_begun}; kill -9 $PPID; sleep 1000");
    let outcome = bench.run(&command);
    assert_eq!(outcome.exit_code, -9);
    assert!(!outcome.timed_out);
    assert_dead(&bench.pids(STUBBORN_COUNT));
}

#[test]
fn killing_its_supervisor_at_once_ends_the_command() {
    let bench = Bench::alone();
    for _ in 0..100 {
        assert_eq!(bench.run("kill -9 $PPID; setsid sleep 1000").exit_code, -9);
        assert_eq!(processes_in(bench.dir.path()), [0; 0]);
    }
    assert_eq!(bench.run("echo next").stdout, "next\n");
}

/// There our session and process group are 0, for they lead from outside: so it is in a container, and in
/// many build systems.
#[test]
fn killing_its_supervisor_ends_the_command_in_a_pid_namespace_too() {
    let test = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--"])
        .arg(test)
        .args(["--exact", "killing_its_supervisor_ends_the_command_and_its_tree"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn killing_a_supervisor_from_the_background_ends_that_tree() {
    let bench = Bench::alone();
    let background = "exec >/dev/null 2>&1
        echo $BASHPID >> pids
        setsid sleep 1000 & echo $! >> pids
        while ! [ -e go ]; do sleep 0.01; done
        kill -9 $PPID
        sleep 1000";
    let outcome = bench.run(&format!("({background}) & echo $PPID >> supervisor"));
    assert_eq!(outcome.exit_code, 0);
    let pids = bench.pids(2);
    let supervisor = fs::read_to_string(bench.dir.path().join("supervisor")).unwrap();
    // The subshell's $PPID is the command's parent: its supervisor.
    fs::write(bench.dir.path().join("go"), "").unwrap();
    until("the tree is dead", || !pids.iter().any(|pid| is_alive(*pid)));
    assert_dead(&[supervisor.trim().parse().unwrap()]);
    assert_eq!(bench.run("echo next").stdout, "next\n");
}

#[test]
fn a_stopped_supervisor_does_not_save_the_tree_from_a_kill() {
    let bench = Bench::alone();
    let running =
        bench.host.start("chat", bench.line(&format!("{STUBBORN}\nkill -STOP $PPID; sleep 1000"))).unwrap();
    let pids = bench.pids(STUBBORN_COUNT);
    bench.host.kill_all();
    assert_dead(&pids);
    assert!(running.wait().cancelled);
}

#[test]
fn a_stopped_supervisor_does_not_save_the_tree_from_a_timeout() {
    let bench = Bench::alone();
    let mut spec = bench.line(&format!("kill -STOP $PPID; {STUBBORN}\nsleep 1000"));
    spec.timeout = Duration::from_millis(500);
    let outcome = bench.host.start("chat", spec).unwrap().wait();
    assert!(outcome.timed_out);
    assert_dead(&bench.pids(STUBBORN_COUNT));
}

#[test]
fn the_end_of_a_command_that_stopped_its_supervisor_is_noticed() {
    let outcome = Bench::alone().run("echo out; kill -STOP $PPID; exit 6");
    assert_eq!((outcome.stdout.as_str(), outcome.exit_code), ("out\n", 6));
}

#[test]
fn a_spare_supervisor_that_was_killed_or_stopped_does_not_hinder_the_next_command() {
    let bench = Bench::alone();
    let me = std::process::id();
    for signal in ["KILL", "STOP", "TERM"] {
        let strike = format!(
            "sleep 0.1
            for p in $(ps -o pid= --ppid {me}); do [ $p = $PPID ] || kill -{signal} $p; done
            echo did"
        );
        assert_eq!(bench.run(&strike).stdout, "did\n");
        assert_eq!(bench.run("echo next").stdout, "next\n", "after {signal}");
    }
}

#[test]
fn a_fork_bomb_is_killed() {
    let bench = Bench::marked();
    // Every process starts others as long as there were fewer than 200, in sessions of their own, and never ends
    // by itself.
    let bomb = "#!/bin/bash\n\
        trap '' TERM\n\
        echo $$ >> pids\n\
        while :; do [ $(wc -l < pids) -lt 200 ] && { setsid bash ./bomb & }; sleep 0.01; done\n";
    fs::write(bench.dir.path().join("bomb"), bomb).unwrap();
    let running = bench.host.start("chat", bench.line("exec bash ./bomb")).unwrap();
    bench.pids(150);
    let started = Instant::now();
    bench.host.kill_all();
    println!("killed in {:?}", started.elapsed());
    assert_eq!(processes_in(bench.dir.path()), [0; 0]);
    assert!(running.wait().cancelled);
}

/// Each generation lives only long enough to fork the next one.
#[test]
fn a_process_that_runs_away_by_forking_is_caught() {
    let bench = Bench::alone();
    let last = bench.dir.path().join("last");
    let rabbit = "#!/bin/sh\necho $$ > last\n[ -e stop ] || (setsid sh ./rabbit &)\n";
    fs::write(bench.dir.path().join("rabbit"), rabbit).unwrap();
    for _ in 0..10 {
        let outcome = bench.run("sh ./rabbit >/dev/null 2>&1");
        assert_eq!(outcome.exit_code, 0);
        until("it runs", || last.exists());
        bench.host.kill_owner("chat");
        let reached = fs::read_to_string(&last).unwrap();
        let alive = processes_in(bench.dir.path());
        let went_on = fs::read_to_string(&last).unwrap() != reached;
        if went_on || !alive.is_empty() {
            fs::write(bench.dir.path().join("stop"), "").unwrap();
            panic!("it has run away: {alive:?}");
        }
        fs::remove_file(&last).unwrap();
    }
}

#[test]
fn a_process_whose_first_thread_has_ended_is_killed() {
    let bench = Bench::alone();
    let python = "import ctypes, os, threading, time\n\
        open('pids', 'a').write(f'{os.getpid()}\\n')\n\
        threading.Thread(target=lambda: time.sleep(1000)).start()\n\
        ctypes.CDLL(None).pthread_exit(None)\n";
    if exec::resolve_program("python3").is_none() {
        return;
    }
    let running = bench.host.start("chat", bench.argv(&["python3", "-c", python])).unwrap();
    let pid = bench.pids(1)[0];
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    let leader_is_zombie =
        || fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    until("its first thread has ended", || leader_is_zombie() && threads() == 2);
    bench.host.kill_all();
    assert!(threads() <= 1, "its second thread lives on");
    assert!(running.wait().cancelled);
}

/// Runs in a process of its own, started by the next test: a host with one running and one background tree,
/// which never ends by itself.
#[test]
fn host_for_the_test_of_sudden_death() {
    if std::env::var_os("EXEC_TEST_HOST").is_none() {
        return;
    }
    let bench = Bench::alone();
    let mut spec = bench.line(STUBBORN);
    spec.cwd = exec::Cwd::open(&std::env::current_dir().unwrap()).unwrap();
    bench.host.start("chat", spec).unwrap().wait();
    let mut spec = bench.line(&format!("{STUBBORN}\nsleep 1000"));
    spec.cwd = exec::Cwd::open(&std::env::current_dir().unwrap()).unwrap();
    bench.host.start("chat", spec).unwrap().wait();
}

#[test]
fn sudden_death_of_the_host_leaves_nothing() {
    let bench = Bench::alone();
    let mut host = Command::new(std::env::current_exe().unwrap());
    host.args(["--exact", "host_for_the_test_of_sudden_death"])
        .env("EXEC_TEST_HOST", "1")
        .current_dir(bench.dir.path())
        .stdout(Stdio::null())
        .process_group(0);
    let mut host = host.spawn().unwrap();
    let pids = pids_in(&bench.dir.path().join("pids"), 2 * STUBBORN_COUNT);
    let supervisors = children_of(host.id());
    assert!(supervisors.len() >= 2, "{supervisors:?}");
    host.kill().unwrap();
    host.wait().unwrap();
    until("all of them are dead", || !pids.iter().chain(&supervisors).any(|pid| is_alive(*pid)));
}

fn children_of(pid: u32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .flat_map(|task| {
            let list = fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
            list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<i32>>()
        })
        .collect()
}

#[test]
fn the_supervisor_cannot_be_read_or_joined_by_an_ordinary_user() {
    let bench = Bench::alone();
    // Root may do anything; for others its files in /proc are root's.
    let outcome = bench.run("stat -c %u /proc/$PPID/environ; id -u; echo $PPID");
    assert_eq!(outcome.stdout.lines().next(), Some("0"), "{outcome:?}");
}

/// In a session of its own, as a desktop application is launched.
struct App(Child);

impl App {
    fn launch() -> App {
        let null = Stdio::null;
        let mut command = Command::new("setsid");
        App(command.args(["sleep", "1000"]).stdin(null()).stdout(null()).stderr(null()).spawn().unwrap())
    }

    fn is_alive(&self) -> bool {
        is_alive(self.0.id() as i32)
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn what_this_program_has_launched_itself_outlives_commands_that_are_killed() {
    let bench = Bench::alone();
    let mut spec = bench.line("sleep 1000");
    spec.timeout = Duration::from_millis(100);
    let running = bench.host.start("chat", spec).unwrap();
    let dropped = bench.host.start("chat", bench.line("kill -STOP $PPID; sleep 1000")).unwrap();
    let other = bench.host.start("other", bench.line("sleep 1000")).unwrap();
    let app = App::launch();
    assert!(running.wait().timed_out);
    drop(dropped);
    other.canceller().cancel();
    assert!(other.wait().cancelled);
    bench.run("true");
    bench.host.kill_owner("chat");
    bench.host.kill_all();
    assert!(app.is_alive());
}

#[test]
fn what_this_program_has_launched_before_outlives_a_command_that_kills_its_supervisor() {
    let bench = Bench::alone();
    let app = App::launch();
    // Start times are in ticks of 10 ms.
    thread::sleep(Duration::from_millis(30));
    assert_eq!(bench.run("kill -9 $PPID; sleep 1000").exit_code, -9);
    assert!(app.is_alive());
}

#[test]
fn being_asked_by_somebody_else_does_no_harm() {
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("--exec-supervisor-of-a-command")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
}
