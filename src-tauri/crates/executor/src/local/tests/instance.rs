use super::super::{Instance, InstanceError, force_stop};
use super::child::Actor;
use crate::off;

#[test]
fn a_second_claim_names_the_process_and_the_claim_ends_with_its_holder() {
    let state = tempfile::tempdir().unwrap();
    let held = Instance::claim(state.path()).unwrap();
    let refused = Instance::claim(state.path()).unwrap_err();
    let us = std::process::id();
    assert!(matches!(refused, InstanceError::Running { pid: Some(pid), .. } if pid == us));
    assert!(refused.to_string().contains(&format!("process {us}")), "{refused}");
    assert_eq!(Instance::running(state.path()).unwrap(), Some(Some(us)));
    drop(held);
    assert_eq!(Instance::running(state.path()).unwrap(), None);
    drop(Instance::claim(state.path()).unwrap());
}

#[test]
fn of_many_that_start_at_once_one_wins_and_the_others_name_it() {
    let state = tempfile::tempdir().unwrap();
    let mut actors: Vec<_> = (0..8).map(|_| Actor::start("claim", state.path())).collect();
    for actor in &mut actors {
        assert_eq!(actor.line().as_deref(), Some("ready"));
    }
    actors.iter_mut().for_each(Actor::go);
    let said: Vec<_> = actors.iter_mut().map(|actor| actor.line().unwrap()).collect();
    let winners: Vec<_> = said.iter().filter_map(|line| line.strip_prefix("won ")).collect();
    assert_eq!(winners.len(), 1, "{said:?}");
    let lost = format!("lost to {}", winners[0]);
    assert_eq!(said.iter().filter(|line| **line == lost).count(), 7, "{said:?}");
}

#[test]
fn what_a_killed_process_leaves_is_no_obstacle() {
    let state = tempfile::tempdir().unwrap();
    let mut actor = Actor::start("claim", state.path());
    actor.go();
    while actor.line().is_some_and(|line| !line.starts_with("won")) {}
    assert_eq!(Instance::running(state.path()).unwrap(), Some(Some(actor.child.id())));
    actor.child.kill().unwrap();
    actor.child.wait().unwrap();
    assert!(std::fs::exists(state.path().join("deskhand.pid")).unwrap());
    let _held = Instance::claim(state.path()).unwrap();
    assert_eq!(Instance::running(state.path()).unwrap(), Some(Some(std::process::id())));
}

#[test]
fn a_process_that_does_not_answer_is_ended_by_force_and_the_machine_stays_off() {
    let state = tempfile::tempdir().unwrap();
    assert_eq!(force_stop(&state.path().join("none")).unwrap(), None);
    let mut actor = Actor::start("claim", state.path());
    actor.go();
    while actor.line().is_some_and(|line| !line.starts_with("won")) {}
    // Collected at once, as the shell does that started a real one: a dead process that nobody collects is not gone.
    let pid = actor.child.id();
    let stopped = std::thread::scope(|scope| {
        let stop = scope.spawn(|| force_stop(state.path()).unwrap());
        actor.child.wait().unwrap();
        stop.join().unwrap()
    });
    assert_eq!(stopped, Some(pid));
    assert_eq!(Instance::running(state.path()).unwrap(), None);
    assert_eq!(off::recall(state.path()), Some(off::Off::Stopped));
    assert_eq!(force_stop(state.path()).unwrap(), None);
}
