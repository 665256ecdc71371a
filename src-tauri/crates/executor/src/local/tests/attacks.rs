//! The agent's own commands run as the same user. They may look and make things safer, and nothing else.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use rustix::process::geteuid;

use super::super::Client;
use super::Served;
use super::child::{Actor, command};
use crate::events::Command as Order;
use crate::local::endpoint;

const REFUSED_TO_COMMANDS: [&str; 11] = [
    "Connect: Forbidden",
    "Resume { session_id: None }: Forbidden",
    "Resume { session_id: Some(\"s\") }: Forbidden",
    "RotateLog: Forbidden",
    "PruneLog { older_than_seconds: 0 }: Forbidden",
    "ReloadConfig: Forbidden",
    "Pause: done",
    "Disconnect: done",
    "Stop: done",
    "Status: done",
    "Watch: Forbidden",
];

fn said(mut actor: Actor) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(line) = actor.line() {
        if line == "end" {
            break;
        }
        lines.push(line);
    }
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_of_the_agents_cannot_resume_or_connect() {
    let served = Served::new();
    let actor = Actor::start("ask", served.dir());
    assert_eq!(said(actor), REFUSED_TO_COMMANDS);
    assert_eq!(served.fake.told(), [Order::Pause, Order::Disconnect]);
    served.kills.try_recv().unwrap();
}

/// As each command's supervisor, and the executor above them, are subreapers. Other systems have none: there `exec`
/// is asked, as the next test does.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orphan_in_a_session_of_its_own_is_still_a_command() {
    use rustix::process::{getpid, set_child_subreaper};
    set_child_subreaper(Some(getpid())).unwrap();
    let served = Served::new();
    let orphan = command(&std::env::current_exe().unwrap(), "ask", served.dir());
    let mut shell = std::process::Command::new("sh");
    // The inner shell ends at once, so that what it started loses its parent; then the outer one ends too.
    shell.args(["-c", r#"( (sleep 0; exec setsid "$0" "$@") & )"#]);
    shell.arg(orphan.get_program()).args(orphan.get_args());
    shell.envs(orphan.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    assert_eq!(said(Actor::run(shell)), REFUSED_TO_COMMANDS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_exec_knows_as_a_command_is_one() {
    use std::sync::Arc;
    let Served { state, fake, instance, server, kills } = Served::new();
    drop(server);
    let setup = super::Setup {
        runtime_dir: state.path().to_owned(),
        host: fake,
        executor: tokio::runtime::Handle::current(),
        stop: Arc::new(|| {}),
        is_command: Arc::new(|pid| pid == std::process::id()),
    };
    let _server = super::Server::start(&instance, setup).unwrap();
    let mut client = Client::connect(state.path()).await.unwrap();
    assert!(client.command(Order::Connect).await.unwrap_err().to_string().contains("only the person"));
    client.status().await.unwrap();
    drop(kills);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_hold_all_their_connections_do_not_keep_the_person_out() {
    let served = Served::new();
    let mut actor = Actor::start("crowd", served.dir());
    assert_eq!(actor.line().as_deref(), Some("held"));
    let mut client = Client::connect(served.dir()).await.unwrap();
    client.command(Order::Pause).await.unwrap();
    client.command(Order::Stop).await.unwrap();
    served.kills.try_recv().unwrap();
}

/// Needs another user, and so root; anybody else cannot become one to try it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_user_is_not_heard_even_where_the_modes_would_let_it_in() {
    if !geteuid().is_root() {
        return;
    }
    let served = Served::new();
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(served.dir(), 0o755);
    open(endpoint::look_up(served.dir()).unwrap().unwrap().as_ref(), 0o777);
    for file in ["deskhand.socket", "deskhand.lock"] {
        open(&served.dir().join(file), 0o644);
    }
    // The build's folders may be closed to others.
    let executable = served.dir().join("attacker");
    std::fs::copy(std::env::current_exe().unwrap(), &executable).unwrap();
    let mut attacker = command(&executable, "ask", served.dir());
    attacker.uid(65534).gid(65534).current_dir("/");
    let said = said(Actor::run(attacker));
    assert_eq!(said.len(), REFUSED_TO_COMMANDS.len(), "{said:?}");
    assert!(said.iter().all(|line| line.contains("another user's")), "{said:?}");
    assert_eq!(served.fake.told(), []);
    assert!(served.kills.try_recv().is_err());
}
