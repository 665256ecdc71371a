//! This test binary as another process: what an attacker, or a second start, does.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::super::{Client, ClientError, Instance, InstanceError, is_inside_command};
use crate::events::Command as Order;
use crate::local::{endpoint, os};

const ACT: &str = "LOCAL_TEST_ACT";
const STATE: &str = "LOCAL_TEST_STATE";
/// What stands before each line that a parent reads; the test harness prints some of its own.
const MARK: &str = "#act# ";

/// The command line of a child that plays `act` with the state folder.
pub(super) fn command(executable: &Path, act: &str, state: &Path) -> Command {
    let mut command = Command::new(executable);
    command.args(["--exact", "local::tests::child::acts", "--nocapture", "--test-threads=1"]);
    command.env(ACT, act).env(STATE, state).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A child that has started to play; its lines are read one by one.
pub(super) struct Actor {
    pub(super) child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Actor {
    pub(super) fn start(act: &str, state: &Path) -> Self {
        Self::run(command(&std::env::current_exe().unwrap(), act, state))
    }

    pub(super) fn run(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line it says; none at its end.
    pub(super) fn line(&mut self) -> Option<String> {
        // The harness may leave a line of its own unfinished before ours.
        self.lines.by_ref().map(Result::unwrap).find_map(|line| Some(line.split_once(MARK)?.1.to_owned()))
    }

    /// Lets it go on: its standard input ends.
    pub(super) fn go(&mut self) {
        drop(self.child.stdin.take());
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(line: &str) {
    println!("{MARK}{line}");
    std::io::stdout().flush().unwrap();
}

fn await_go() {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}

/// Not a test but the child's part; does nothing when the tests run.
#[test]
fn acts() {
    let (Some(act), Some(state)) = (std::env::var_os(ACT), std::env::var_os(STATE)) else { return };
    let state = Path::new(&state);
    match act.to_str().unwrap() {
        "claim" => claim(state),
        "ask" => steer(state),
        "crowd" => crowd(state),
        "stand" => say(&format!("a command: {}", block_on(is_inside_command(state)))),
        #[cfg(target_os = "linux")]
        "survive" => survive(state),
        #[cfg(target_os = "linux")]
        "pose" => pose(state),
        other => panic!("{other}"),
    }
}

#[ctor::ctor(unsafe)]
fn be_the_supervisor_if_asked() {
    exec::supervisor::run_if_asked();
}

/// A run of an installation whose command ends it, and goes on with what it was told.
#[cfg(target_os = "linux")]
fn survive(state: &Path) {
    let _instance = Instance::claim(state).unwrap();
    let host = exec::Host::with_mark(crate::mark::mark(state)).unwrap();
    let us = std::process::id();
    let then = std::env::var("LOCAL_TEST_THEN").unwrap();
    let line = format!("echo $$ > survivor; kill -STOP $PPID; kill -KILL {us}; {then}");
    let spec = exec::CommandSpec {
        program: exec::Program::Line { shell: exec::Shell::Sh, command: line },
        cwd: exec::Cwd::open(state).unwrap(),
        timeout: std::time::Duration::from_secs(60),
        env: vec![(STATE.to_owned(), state.display().to_string())],
        output_limit: 1000,
    };
    host.start("chat", spec).unwrap().wait();
}

/// Takes the place of the one that was killed.
#[cfg(target_os = "linux")]
fn pose(state: &Path) {
    let _instance = loop {
        if let Ok(instance) = Instance::claim(state) {
            break instance;
        }
    };
    let address = state.join("posing.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&address).unwrap();
    std::fs::write(state.join("deskhand.socket"), address.display().to_string()).unwrap();
    std::fs::write(state.join("posing.new"), std::process::id().to_string()).unwrap();
    std::fs::rename(state.join("posing.new"), state.join("posing")).unwrap();
    loop {
        std::thread::park();
    }
}

fn claim(state: &Path) {
    say("ready");
    await_go();
    match Instance::claim(state) {
        Ok(_instance) => {
            say(&format!("won {}", std::process::id()));
            loop {
                std::thread::park();
            }
        }
        Err(InstanceError::Running { pid, .. }) => say(&format!("lost to {}", pid.unwrap())),
        Err(error) => say(&error.to_string()),
    }
}

fn block_on<T>(what: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(what)
}

/// Tries everything that can be asked, and says how it went.
fn steer(state: &Path) {
    let told = |answer: Result<String, ClientError>| match answer {
        Ok(what) => what,
        Err(ClientError::Refused { code, .. }) => format!("{code:?}"),
        Err(other) => format!("{other:?}"),
    };
    block_on(async {
        let orders = [
            Order::Connect,
            Order::Resume { session_id: None },
            Order::Resume { session_id: Some("s".into()) },
            Order::RotateLog,
            Order::PruneLog { older_than_seconds: 0 },
            Order::ReloadConfig,
            Order::Pause,
            Order::Disconnect,
            Order::Stop,
        ];
        for order in orders {
            let answer = match Client::connect(state).await {
                Ok(mut client) => client.command(order.clone()).await.map(|_| "done".to_owned()),
                Err(error) => Err(error),
            };
            say(&format!("{order:?}: {}", told(answer)));
        }
        let answer = match Client::connect(state).await {
            Ok(mut client) => client.status().await.map(|_| "done".to_owned()),
            Err(error) => Err(error),
        };
        say(&format!("Status: {}", told(answer)));
        let answer = match Client::connect(state).await {
            Ok(client) => {
                let mut watch = client.watch().await.unwrap();
                watch.next().await.map(|_| "done".to_owned())
            }
            Err(error) => Err(error),
        };
        say(&format!("Watch: {}", told(answer)));
    });
    say("end");
}

/// Holds as many connections as it can.
fn crowd(state: &Path) {
    let address = endpoint::look_up(state).unwrap().unwrap();
    block_on(async {
        let mut held = Vec::new();
        for _ in 0..100 {
            held.push(os::connect(&address).await.unwrap().0);
        }
        say("held");
        await_go();
    });
}
