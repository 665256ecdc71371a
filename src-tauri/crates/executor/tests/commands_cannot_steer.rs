//! The agent's commands, run as they really are run, try to turn on what the person has turned off.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exec::{CommandSpec, Cwd, Outcome, Program, Shell};
use executor::events::{Command, CommandFailed, ConnectionState, Event, StatusReport};
use executor::local::{Client, Host, Instance, Server, Setup};
use tokio::runtime::Handle;
use tokio::sync::broadcast;

const STATE: &str = "STEER_STATE";

#[ctor::ctor(unsafe)]
fn be_the_supervisor_if_asked() {
    exec::supervisor::run_if_asked();
}

/// Stands in for the executor, and remembers what it was told.
#[derive(Clone)]
struct Told(Arc<Mutex<Vec<Command>>>, broadcast::Sender<Event>);

impl Host for Told {
    fn status(&self) -> StatusReport {
        StatusReport {
            version: String::new(),
            pid: std::process::id(),
            machine_id: String::new(),
            display_name: String::new(),
            platform_url: String::new(),
            connection: ConnectionState::Connecting,
            paused: false,
            uptime_seconds: 0,
            sessions: Vec::new(),
            prompts: 0,
            in_flight: 0,
            queue_depth: 0,
            audit_log: String::new(),
            audit_log_bytes: 0,
        }
    }

    fn command(&self, command: Command) -> impl Future<Output = Result<(), CommandFailed>> + Send {
        self.0.lock().unwrap().push(command);
        async { Ok(()) }
    }

    fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.1.subscribe()
    }
}

/// Not a test but what the commands run: asks for everything that is the person's, then for a pause, and leaves a file.
#[test]
fn steer() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let state = Path::new(&state);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut said = String::new();
    for command in [Command::Connect, Command::Resume { session_id: None }, Command::Pause] {
        let answer = runtime.block_on(async { Client::connect(state).await?.command(command).await });
        said.push_str(&answer.map_or_else(|error| format!("{error}\n"), |_| "done\n".to_owned()));
    }
    std::fs::write(state.join("steered"), said).unwrap();
}

/// Runs a shell line in which `$STEER` is this program in that part.
fn run(host: &exec::Host, state: &Path, line: &str) -> Outcome {
    let executable = std::env::current_exe().unwrap();
    let spec = CommandSpec {
        program: Program::Line { shell: Shell::Sh, command: line.to_owned() },
        cwd: Cwd::open(state).unwrap(),
        timeout: Duration::from_secs(60),
        env: vec![
            (STATE.to_owned(), state.display().to_string()),
            ("STEER".to_owned(), format!("{} --exact steer", executable.display())),
        ],
        output_limit: 10_000,
    };
    host.start("session", spec).unwrap().wait()
}

const AWAIT: &str = "while ! [ -e steered ]; do sleep 0.05; done";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_way_a_command_leaves_its_tree_it_cannot_turn_anything_on() {
    let state = tempfile::tempdir().unwrap();
    let told = Told(Arc::default(), broadcast::channel(1).0);
    let instance = Instance::claim(state.path()).unwrap();
    let host = exec::Host::with_mark(exec::Mark(std::process::id())).unwrap();
    let setup = Setup {
        runtime_dir: state.path().to_owned(),
        host: told.clone(),
        executor: Handle::current(),
        stop: Arc::new(|| {}),
        is_command: {
            let host = host.clone();
            Arc::new(move |pid| host.is_command(pid))
        },
    };
    let _server = Server::start(&instance, setup).unwrap();
    let steered = state.path().join("steered");

    let lines = [
        "$STEER".to_owned(),
        format!("( setsid $STEER & ) ; {AWAIT}"),
        format!("( (sleep 0.1; exec setsid $STEER) & ) ; {AWAIT}"),
        format!("nohup setsid setsid sh -c '( $STEER & )' & {AWAIT}"),
    ];
    for line in lines {
        let outcome = tokio::task::block_in_place(|| run(&host, state.path(), &line));
        let said =
            std::fs::read_to_string(&steered).unwrap_or_else(|error| panic!("{line}: {error}: {outcome:?}"));
        let answers: Vec<_> = said.lines().collect();
        assert!(
            answers[0].contains("only the person") && answers[1].contains("only the person"),
            "{line}: {said}"
        );
        assert_eq!(answers[2], "done", "{line}: {said}");
        std::fs::remove_file(&steered).unwrap();
    }

    // With its supervisor killed it comes to this process, which hunts it down; whether it gets to ask is a race, and
    // what it is answered is not.
    for _ in 0..10 {
        let line = "( setsid sh -c 'kill -9 '$PPID'; exec $STEER' & ) ; sleep 10";
        tokio::task::block_in_place(|| run(&host, state.path(), line));
        if let Ok(said) = std::fs::read_to_string(&steered) {
            assert!(said.lines().next().unwrap().contains("only the person"), "{said}");
            std::fs::remove_file(&steered).unwrap();
        }
    }
    let told = told.0.lock().unwrap().clone();
    assert!(told.iter().all(|command| *command == Command::Pause), "{told:?}");
}
