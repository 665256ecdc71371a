//! Who takes the place of Deskhand, or forges what names it.

#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::super::{Client, ClientError, Instance, force_stop};
use super::Served;
use super::child::Actor;
use crate::events::Command as Order;
use crate::local::{endpoint, os};

fn innocent() -> Child {
    Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap()
}

/// Another process that holds the state folder, as a Deskhand that hangs.
fn holder(state: &Path) -> Actor {
    let mut actor = Actor::start("claim", state);
    actor.go();
    while actor.line().is_some_and(|line| !line.starts_with("won")) {}
    actor
}

/// A socket of our own in the place of the one that runs.
fn take_its_place(state: &Path) -> os::Listener {
    let listener = os::Listener::bind(state).unwrap();
    std::fs::write(state.join("deskhand.socket"), listener.address().unwrap()).unwrap();
    listener
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_answers_in_the_place_of_deskhand_is_not_believed() {
    let state = tempfile::tempdir().unwrap();
    let actor = holder(state.path());
    let mut impostor = take_its_place(state.path());
    let says_done = tokio::spawn(async move {
        while let Ok(Some((mut stream, _))) = impostor.accept().await {
            use tokio::io::AsyncWriteExt;
            let _ = stream.write_all(b"{\"answer\":\"done\",\"took_ms\":1}\n").await;
        }
    });
    let answer = match Client::connect(state.path()).await {
        Ok(mut client) => client.command(Order::Stop).await,
        Err(error) => Err(error),
    };
    let pid = actor.child.id();
    assert!(
        matches!(&answer, Err(ClientError::Silent { pid: Some(holder), .. }) if *holder == pid),
        "{answer:?}"
    );
    drop(actor);
    assert!(matches!(Client::connect(state.path()).await, Err(ClientError::NotRunning)));
    says_done.abort();
}

#[test]
fn a_forged_process_id_neither_leads_to_an_innocent_one_nor_saves_the_holder() {
    let state = tempfile::tempdir().unwrap();
    let mut actor = holder(state.path());
    let mut innocent = innocent();
    std::fs::write(state.path().join("deskhand.pid"), innocent.id().to_string()).unwrap();
    let pid = actor.child.id();
    assert_eq!(Instance::running(state.path()).unwrap(), Some(Some(pid)));
    let ended = std::thread::scope(|scope| {
        let stop = scope.spawn(|| force_stop(state.path()).unwrap());
        actor.child.wait().unwrap();
        stop.join().unwrap()
    });
    assert_eq!(ended, Some(pid));
    assert_eq!(innocent.try_wait().unwrap(), None, "it lives");
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_is_told_whether_it_is_the_person() {
    let served = Served::new();
    let is_person = Client::connect(served.dir()).await.unwrap().is_person().await.unwrap();
    assert!(is_person);
    let mut actor = Actor::start("stand", served.dir());
    assert_eq!(actor.line().as_deref(), Some("a command: true"));
    assert!(endpoint::look_up(served.dir()).unwrap().is_some());
}
