use std::sync::Arc;
use std::sync::mpsc;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;

use super::super::{Answer, Client, ClientError, Instance, Refusal, Request, Server, Setup};
#[cfg(unix)]
use super::Fake;
use super::{Served, report};
use crate::events::{Command, Event};
use crate::local::{endpoint, os};

#[tokio::test]
async fn status_and_commands_reach_the_executor_over_one_connection() {
    let served = Served::new();
    let mut client = Client::connect(served.dir()).await.unwrap();
    assert_eq!(client.status().await.unwrap(), report());
    let resume = Command::Resume { session_id: Some("s".into()) };
    for command in
        [Command::Connect, Command::Disconnect, Command::Pause, resume.clone(), Command::ReloadConfig]
    {
        assert_eq!(client.command(command).await.unwrap(), None);
    }
    let failed = client.command(Command::RotateLog).await.unwrap_err();
    assert!(
        matches!(&failed, ClientError::Refused { code: Refusal::Failed, message } if message == "the disk is full")
    );
    let told = served.fake.told();
    assert_eq!(told.len(), 6);
    assert_eq!(told[3], resume);
}

#[test]
fn the_lines_are_what_the_documentation_says() {
    let line = |request| serde_json::to_string(&request).unwrap();
    assert_eq!(line(Request::Status), r#"{"request":"status"}"#);
    assert_eq!(line(Request::Command(Command::Pause)), r#"{"request":"command","command":"pause"}"#);
    let resume = Request::Command(Command::Resume { session_id: None });
    assert_eq!(line(resume.clone()), r#"{"request":"command","command":"resume","session_id":null}"#);
    assert_eq!(
        serde_json::from_str::<Request>(r#"{"request":"command","command":"resume"}"#).unwrap(),
        resume
    );
}

#[tokio::test]
async fn a_watcher_sees_the_state_then_each_event_then_the_end() {
    let Served { state, fake, instance, server, .. } = Served::new();
    let mut watch = Client::connect(state.path()).await.unwrap().watch().await.unwrap();
    assert_eq!(watch.next().await.unwrap(), Some(Answer::Status { report: Box::new(report()) }));
    let event = Event::Paused { paused: true, reason: Some("a\nb".into()) };
    fake.events.send(event.clone()).unwrap();
    assert_eq!(watch.next().await.unwrap(), Some(Answer::Event { event }));
    drop(server);
    assert_eq!(watch.next().await.unwrap(), None);
    drop(instance);
    assert!(matches!(Client::connect(state.path()).await, Err(ClientError::NotRunning)));
}

#[tokio::test]
async fn a_slow_watcher_is_told_how_much_it_missed() {
    let served = Served::new();
    let mut watch = Client::connect(served.dir()).await.unwrap().watch().await.unwrap();
    watch.next().await.unwrap();
    // The watcher reads nothing while far more is sent than the stream's buffers and the channel hold.
    let event = Event::Warning { message: "x".repeat(8192) };
    for _ in 0..500 {
        served.fake.events.send(event.clone()).unwrap();
    }
    let mut missed = 0;
    let mut seen = 0;
    while missed == 0 {
        match watch.next().await.unwrap().unwrap() {
            Answer::Missed { events } => missed = events,
            Answer::Event { .. } => seen += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(missed > 0 && seen < 500, "{missed} {seen}");
}

#[test]
fn stop_works_while_the_executor_hangs_and_others_are_told_that_it_does() {
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (release, hang) = mpsc::channel::<()>();
    let (hanging, hangs) = mpsc::channel();
    executor.spawn(async move {
        hanging.send(()).unwrap();
        let _ = hang.recv();
    });
    hangs.recv().unwrap();

    let served = Served::on(executor.handle().clone());
    let ours = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    ours.block_on(async {
        let mut client = Client::connect(served.dir()).await.unwrap();
        let silent = client.status().await.unwrap_err();
        assert!(matches!(&silent, ClientError::Refused { code: Refusal::NoAnswer, message } if message.contains("deskhand stop")));
        let started = Instant::now();
        client.command(Command::Stop).await.unwrap();
        assert!(started.elapsed().as_millis() < 1000);
    });
    served.kills.try_recv().unwrap();
    drop(release);
}

#[tokio::test]
async fn stop_tells_how_long_the_kill_took() {
    let Served { state, fake, instance, server, .. } = Served::new();
    drop(server);
    let events = fake.events.clone();
    let setup = Setup {
        runtime_dir: state.path().to_owned(),
        host: fake,
        executor: Handle::current(),
        stop: Arc::new(move || {
            events.send(Event::Killed { took_ms: 7 }).unwrap();
        }),
        is_command: Arc::new(|_| false),
    };
    let _server = Server::start(&instance, setup).unwrap();
    for _ in 0..3 {
        let mut client = Client::connect(state.path()).await.unwrap();
        assert_eq!(client.command(Command::Stop).await.unwrap(), Some(7));
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_the_next_line_is_heard() {
    let served = Served::new();
    let mut stream = raw(&served).await;
    stream
        .write_all(b"\xff\n{\"request\":\"command\",\"command\":\"explode\"}\n{\"request\":\"status\"}\n")
        .await
        .unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap(); // until the server has waited long enough for a fourth
    let answers: Vec<Answer> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(matches!(
        answers[..],
        [
            Answer::Refused { code: Refusal::BadRequest, .. },
            Answer::Refused { code: Refusal::BadRequest, .. },
            Answer::Status { .. }
        ]
    ));
}

#[tokio::test]
async fn an_endless_line_is_cut_off() {
    let served = Served::new();
    let mut stream = raw(&served).await;
    // The server hangs up before it has taken all of it.
    let _ = stream.write_all(&[b'['; 100_000]).await;
    let mut client = Client::connect(served.dir()).await.unwrap();
    client.status().await.unwrap();
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_let_go() {
    let served = Served::new();
    let mut stream = raw(&served).await;
    stream.write_all(b"{\"request\"").await.unwrap();
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap(), 0);
}

#[tokio::test]
async fn nobody_running_and_nobody_answering_are_told_apart() {
    let state = tempfile::tempdir().unwrap();
    let missing = Client::connect(&state.path().join("none")).await.unwrap_err();
    assert!(matches!(missing, ClientError::NotRunning));
    std::fs::write(state.path().join("deskhand.socket"), "/nonexistent/socket").unwrap();
    assert!(matches!(Client::connect(state.path()).await.unwrap_err(), ClientError::NotRunning));
    let _instance = Instance::claim(state.path()).unwrap();
    let silent = Client::connect(state.path()).await.unwrap_err();
    assert!(matches!(silent, ClientError::Silent { pid: Some(pid), .. } if pid == std::process::id()));
}

#[cfg(unix)]
#[tokio::test]
async fn the_socket_is_the_owners_alone_and_goes_with_the_server() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let served = Served::new();
    let path = endpoint::look_up(served.dir()).unwrap().unwrap();
    let metadata = std::fs::metadata(&path).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    drop(served.server);
    assert!(!std::fs::exists(&path).unwrap());
    assert_eq!(endpoint::look_up(served.state.path()).unwrap(), None);
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_too_deep_for_a_socket_has_it_elsewhere_and_a_leftover_is_replaced() {
    let state = tempfile::tempdir().unwrap();
    let deep = state.path().join("x".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let instance = Instance::claim(&deep).unwrap();
    let start = || {
        let setup = Setup {
            runtime_dir: deep.clone(),
            host: Fake::new(),
            executor: Handle::current(),
            stop: Arc::new(|| {}),
            is_command: Arc::new(|_| false),
        };
        Server::start(&instance, setup).unwrap()
    };
    let first = start();
    let path = endpoint::look_up(&deep).unwrap().unwrap();
    assert!(path.starts_with("/tmp/deskhand-"), "{path}");
    drop(first);
    // As a killed process leaves it.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let _second = start();
    Client::connect(&deep).await.unwrap().status().await.unwrap();
}

async fn raw(served: &Served) -> os::ClientStream {
    os::connect(&endpoint::look_up(served.dir()).unwrap().unwrap()).await.unwrap().0
}
