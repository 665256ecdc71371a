//! What the tests of commands share. Each test binary is its own supervisor, and each test has a host of its
//! own.
#![allow(dead_code, reason = "not every test binary uses all of it")]
#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use exec::{CommandSpec, Cwd, Host, Outcome, Program, Shell};
use tempfile::TempDir;

#[ctor::ctor(unsafe)]
fn be_the_supervisor_if_asked() {
    exec::supervisor::run_if_asked();
}

/// Far more than anything here takes; only a test that fails waits for it.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A host and a working folder.
pub(crate) struct Bench {
    pub(crate) host: Host,
    pub(crate) dir: TempDir,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench { host: Host::new().unwrap(), dir: tempfile::tempdir().unwrap(), _alone: None }
    }

    /// For commands that strike at all children of this process: no other of these tests runs meanwhile.
    pub(crate) fn alone() -> Bench {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Bench { host: Host::new().unwrap(), dir: tempfile::tempdir().unwrap(), _alone: Some(alone) }
    }

    /// As it is in Deskhand: alone, and with marks where there can be any.
    pub(crate) fn marked() -> Bench {
        let host = Host::with_mark(exec::Mark(std::process::id())).unwrap();
        let mut bench = Bench::alone();
        bench.host = host;
        bench
    }

    pub(crate) fn spec(&self, program: Program) -> CommandSpec {
        CommandSpec {
            program,
            cwd: Cwd::open(self.dir.path()).unwrap(),
            timeout: LONG,
            env: Vec::new(),
            output_limit: 1 << 20,
        }
    }

    pub(crate) fn line(&self, command: &str) -> CommandSpec {
        self.spec(Program::Line { shell: Shell::Auto, command: command.to_owned() })
    }

    pub(crate) fn argv(&self, argv: &[&str]) -> CommandSpec {
        self.spec(Program::Argv(argv.iter().map(|word| (*word).to_owned()).collect()))
    }

    pub(crate) fn run(&self, command: &str) -> Outcome {
        self.host.start("chat", self.line(command)).unwrap().wait()
    }

    /// The numbers that the command wrote into the file `pids`, once there are `count` of them.
    pub(crate) fn pids(&self, count: usize) -> Vec<i32> {
        pids_in(&self.dir.path().join("pids"), count)
    }
}

impl Drop for Bench {
    /// Whatever a test is about: in the end nothing of its commands is alive.
    fn drop(&mut self) {
        self.host.kill_all();
        if !thread::panicking() && cfg!(target_os = "linux") {
            assert_eq!(processes_in(self.dir.path()), [0; 0], "left behind");
        }
    }
}

/// The live processes that work in `dir`.
pub(crate) fn processes_in(dir: &Path) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let works_there =
        |pid: &i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(dir));
    pids.filter(works_there).filter(|pid| is_alive(*pid)).collect()
}

pub(crate) fn pids_in(file: &Path, count: usize) -> Vec<i32> {
    let mut pids = Vec::new();
    until(&format!("{count} processes have begun"), || {
        let text = fs::read_to_string(file).unwrap_or_default();
        let whole_lines = text.rfind('\n').map_or("", |end| &text[..end]);
        pids = whole_lines.lines().filter_map(|line| line.trim().parse().ok()).collect();
        pids.len() >= count
    });
    pids
}

/// Polls where there is no event to wait for: other people's processes and files.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came true that {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process runs; a zombie does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rfind(')').and_then(|end| stat[end + 1..].trim_start().chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

#[track_caller]
pub(crate) fn assert_dead(pids: &[i32]) {
    let alive: Vec<_> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(alive.is_empty(), "still alive: {alive:?} of {pids:?}");
}

/// A shell fragment that starts every kind of process that does not want to die, each with its number in
/// `pids`: a child, a TERM-proof one, one in its own session, a double-forked one, a double-forked one in its
/// own session that is TERM-proof, and a stopped one.
pub(crate) const STUBBORN: &str = r#"
    note='echo $$ >> pids; exec sleep 1000'
    deaf='trap "" TERM HUP INT; echo $$ >> pids; while :; do sleep 1000; done'
    sh -c "$note" &
    sh -c "$deaf" &
    setsid sh -c "$note" &
    (sh -c "$note" &)
    (setsid sh -c "$deaf" &)
    sh -c 'echo $$ >> pids; kill -STOP $$; sleep 1000' &
"#;

pub(crate) const STUBBORN_COUNT: usize = 6;
