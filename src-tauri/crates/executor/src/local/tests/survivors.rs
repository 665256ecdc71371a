//! Commands that outlive Deskhand: known by their mark, which Linux keeps.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::Arc;

use super::super::{Client, ClientError, Instance, Server, Setup, force_stop};
use super::child::command;
use super::{Fake, Served};
use crate::events::Command as Order;

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !matches!(stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()), Some("Z" | "X") | None)
}

/// What is in a file once `text` is: another process writes it, which is no event of ours.
async fn written(file: &Path, text: &str) -> String {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        match std::fs::read_to_string(file) {
            Ok(found) if found.contains(text) => return found,
            found => assert!(std::time::Instant::now() < deadline, "{}: {found:?}", file.display()),
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// A run whose command has stopped its supervisor and killed it, and lives; the command's process id.
fn survivor_of(state: &Path, then: &str) -> Option<u32> {
    use std::os::unix::process::CommandExt;
    if exec::lineage::is_inside_command() {
        return None; // there, everything is marked, and nothing can be told
    }
    let mut actor = command(&std::env::current_exe().unwrap(), "survive", state);
    actor.env("LOCAL_TEST_THEN", then).process_group(0);
    let mut actor = actor.spawn().unwrap();
    actor.wait().unwrap();
    let pid = std::fs::read_to_string(state.join("survivor")).unwrap().trim().parse().unwrap();
    assert!(is_alive(pid), "nothing has survived: the attack is none");
    Some(pid)
}

#[test]
fn stop_ends_what_a_command_of_an_earlier_run_has_left() {
    let state = tempfile::tempdir().unwrap();
    let Some(pid) = survivor_of(state.path(), "sleep 1000") else { return };
    assert_eq!(force_stop(state.path()).unwrap(), None);
    assert!(!is_alive(pid));
}

#[test]
fn the_next_run_ends_what_a_command_of_an_earlier_run_has_left() {
    let state = tempfile::tempdir().unwrap();
    let Some(pid) = survivor_of(state.path(), "sleep 1000") else { return };
    let _next = Instance::claim(state.path()).unwrap();
    assert!(!is_alive(pid));
}

/// A survivor that claims the state folder and answers there is no Deskhand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_survivor_that_claims_to_be_deskhand_is_not_believed_and_ended() {
    let state = tempfile::tempdir().unwrap();
    let test = std::env::current_exe().unwrap();
    let then = format!(
        "export LOCAL_TEST_ACT=pose; exec {} --exact local::tests::child::acts > /dev/null 2>&1",
        test.display()
    );
    if survivor_of(state.path(), &then).is_none() {
        return;
    }
    let pid: u32 = written(&state.path().join("posing"), "").await.parse().unwrap();
    assert_eq!(Instance::running(state.path()).unwrap(), Some(Some(pid)));
    let answer = Client::connect(state.path()).await;
    assert!(matches!(answer, Err(ClientError::Silent { .. })), "{answer:?}");
    let state = state.path().to_owned();
    assert_eq!(tokio::task::spawn_blocking(move || force_stop(&state).unwrap()).await.unwrap(), Some(pid));
    assert!(!is_alive(pid));
}

/// Of another installation, so that this one has not ended it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_survivor_of_an_earlier_run_cannot_steer() {
    let earlier = tempfile::tempdir().unwrap();
    let Served { state, fake, instance, server, kills } = Served::new();
    drop(server);
    let host = exec::Host::new().unwrap();
    let setup = Setup {
        runtime_dir: state.path().to_owned(),
        host: Fake::clone(&fake),
        executor: tokio::runtime::Handle::current(),
        stop: Arc::new(|| {}),
        is_command: Arc::new(move |pid| host.is_command(pid)),
    };
    let _server = Server::start(&instance, setup).unwrap();
    let test = std::env::current_exe().unwrap();
    let (test, state) = (test.display(), state.path().display());
    let then = format!(
        "setsid -f env -i LOCAL_TEST_ACT=ask LOCAL_TEST_STATE={state} {test} --exact local::tests::child::acts \
         --nocapture --test-threads=1 > said 2>&1; sleep 1000"
    );
    let earlier_dir = earlier.path().to_owned();
    let survived = tokio::task::spawn_blocking(move || survivor_of(&earlier_dir, &then)).await.unwrap();
    if survived.is_none() {
        return;
    }
    let said = written(&earlier.path().join("said"), "#act# end").await;
    for order in ["Connect", "Resume { session_id: None }", "RotateLog", "ReloadConfig", "Watch"] {
        assert!(said.contains(&format!("{order}: Forbidden")), "{said}");
    }
    assert_eq!(fake.told(), [Order::Pause, Order::Disconnect]);
    assert!(exec::lineage::end_survivors(crate::mark::mark(earlier.path())) >= 1);
    drop(kills);
}
