//! Folders and sessions over the control connection: attach, activate, restore, detach, and what may not be.

use std::time::Duration;

use executor::events::{Command, Event};
use serde_json::{Value, json};
use system_tests::rig::{Rig, until, wait_for};
use system_tests::scripted::{Peer, Received, Scripted};

fn code(answer: &Received) -> &str {
    answer.payload["code"].as_str().unwrap_or(&answer.kind)
}

async fn started() -> (Scripted, Rig, executor::Executor, Peer) {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let executor = rig.start();
    let control = platform.control().await;
    (platform, rig, executor, control)
}

#[tokio::test]
async fn attaching_counts_revisions_and_a_grant_restores_the_session_later() {
    let (platform, rig, _executor, mut control) = started().await;
    let first = control.attach("s1").await.payload;
    assert_eq!((&first["allowed_root"], &first["revision"]), (&json!(rig.root), &json!(1)));
    let second = control.attach("s1").await.payload;
    assert_eq!((&second["revision"], &second["fingerprint"]), (&json!(2), &first["fingerprint"]));
    control.request("DETACH_SESSION", json!({"session_id": "s1"})).await;

    let old = json!({"session_id": "s1", "root_grant": first["root_grant"]});
    let refused = control.request("RESTORE_SESSION", old).await;
    assert_eq!(
        (code(&refused), &refused.payload["details"]),
        ("SESSION_REVISION_MISMATCH", &json!({"current_revision": 2}))
    );
    let grant = json!({"session_id": "s1", "root_grant": second["root_grant"]});
    let restored = control.request("RESTORE_SESSION", grant.clone()).await;
    assert_eq!((restored.kind.as_str(), &restored.payload), ("SESSION_RESTORED", &second));
    let mut data = platform.accept().await;
    data.welcome(json!({"session_id": "s1"})).await;
    assert_eq!(control.request("RESTORE_SESSION", grant).await.payload, second, "again changes nothing");
    assert_eq!(data.request("FILE_STAT", json!({"path": "."})).await.payload["exists"], true);
    let ops: Vec<_> = rig.log().iter().map(|r| r["op"].as_str().unwrap().to_owned()).collect();
    for op in
        ["DIRECTORY_LIST", "SESSION_ALLOWED_ROOT_SET", "DETACH_SESSION", "RESTORE_SESSION", "WS_CONNECTED"]
    {
        assert!(ops.iter().any(|o| o == op), "{op} in {ops:?}");
    }
    assert!(!rig.log().iter().any(|r| r.to_string().contains("v1.")), "grants are not logged");
}

#[tokio::test]
async fn what_does_not_fit_a_session_is_refused_with_its_code() {
    let (_platform, _rig, _executor, mut control) = started().await;
    let activate = |revision: u64| json!({"session_id": "s1", "revision": revision});
    assert_eq!(code(&control.request("ACTIVATE_SESSION", activate(1)).await), "SESSION_NOT_ATTACHED");
    let attached = control.attach("s1").await.payload;
    assert_eq!(code(&control.request("ACTIVATE_SESSION", activate(7)).await), "SESSION_REVISION_MISMATCH");
    for grant in [
        json!(""),
        json!("v1.a.b"),
        json!("v2.a.b"),
        attached["root_grant"].as_str().map(|g| json!(format!("{g}x"))).unwrap(),
    ] {
        let answer =
            control.request("RESTORE_SESSION", json!({"session_id": "s1", "root_grant": grant})).await;
        assert_eq!(code(&answer), "ROOT_GRANT_INVALID", "{grant}");
    }
    let other = json!({"session_id": "s2", "root_grant": attached["root_grant"]});
    assert_eq!(code(&control.request("RESTORE_SESSION", other).await), "ROOT_GRANT_INVALID");
    let bad = json!({"session_id": "a/b", "browse_id": "x", "directory_ref": "y"});
    assert_eq!(code(&control.request("ATTACH_SESSION", bad).await), "INTERNAL_ERROR");
    let unknown = json!({"session_id": "s1", "browse_id": "x", "directory_ref": "/etc"});
    assert_eq!(code(&control.request("ATTACH_SESSION", unknown).await), "DIRECTORY_REFERENCE_INVALID");
    assert_eq!(control.request("DETACH_SESSION", json!({"session_id": "never"})).await.kind, "ACK");
}

#[tokio::test]
async fn an_active_session_keeps_its_folder_and_activating_it_again_changes_nothing() {
    let (platform, _rig, _executor, mut control) = started().await;
    let mut data = platform.open(&mut control, "s1").await;
    assert_eq!(code(&control.attach("s1").await), "SESSION_ALREADY_ACTIVE");
    let again = control.request("ACTIVATE_SESSION", json!({"session_id": "s1", "revision": 1})).await;
    assert_eq!(again.kind, "SESSION_ACTIVATED");
    assert_eq!(data.request("FILE_STAT", json!({"path": "."})).await.payload["exists"], true);
}

#[tokio::test]
async fn a_folder_that_was_replaced_or_taken_off_the_list_is_not_restored() {
    let (_platform, rig, executor, mut control) = started().await;
    let attached = control.attach("s1").await.payload;
    let grant = json!({"session_id": "s1", "root_grant": attached["root_grant"]});
    std::fs::rename(&rig.root, rig.outside().join("moved")).unwrap();
    std::fs::create_dir(&rig.root).unwrap();
    assert_eq!(code(&control.request("RESTORE_SESSION", grant.clone()).await), "ROOT_GRANT_INVALID");
    let activate = json!({"session_id": "s1", "revision": 1});
    assert_eq!(code(&control.request("ACTIVATE_SESSION", activate).await), "ROOT_GRANT_INVALID");

    let attached = control.attach("s2").await.payload;
    let other = rig.outside().join("other");
    std::fs::create_dir(&other).unwrap();
    let text = std::fs::read_to_string(rig.dirs.config_file()).unwrap();
    let text = text.replace(&format!("{:?}", rig.root), &format!("{other:?}"));
    std::fs::write(rig.dirs.config_file(), text).unwrap();
    executor.command(Command::ReloadConfig).await.unwrap();
    drop(control);
    let mut control = _platform.control().await; // what is browsable is read at each connection
    let grant = json!({"session_id": "s2", "root_grant": attached["root_grant"]});
    assert_eq!(code(&control.request("RESTORE_SESSION", grant).await), "ROOT_GRANT_INVALID");
}

#[tokio::test]
async fn a_root_that_goes_away_under_a_session_is_an_error_and_not_another_folder() {
    let (platform, rig, _executor, mut control) = started().await;
    let mut data = platform.open(&mut control, "s1").await;
    std::fs::write(rig.root.join("f"), "mine").unwrap();
    let moved = rig.outside().join("moved");
    std::fs::rename(&rig.root, &moved).unwrap();
    std::fs::create_dir(&rig.root).unwrap();
    std::fs::write(rig.root.join("f"), "another's").unwrap();
    let read = data.request("FILE_READ", json!({"path": "f"})).await;
    assert_ne!(read.payload["content"], "another's", "the handle does not follow the name");
    std::fs::remove_dir_all(&rig.root).unwrap();
    std::fs::remove_dir_all(&moved).unwrap();
    let write = data.request("FILE_WRITE", json!({"path": "new", "content": "x"})).await;
    assert_eq!(write.kind, "ERROR", "{write:?}");
    let run = data.request("EXECUTE_COMMAND", json!({"command": "echo x > y; pwd"})).await;
    assert!(run.kind == "ERROR" || run.payload["exit_code"] != 0 || !rig.root.exists(), "{run:?}");
}

#[tokio::test]
async fn a_ninth_session_is_refused_and_a_detached_one_makes_room() {
    let (platform, _rig, _executor, mut control) = started().await;
    let mut sessions = Vec::new();
    for n in 0..8 {
        sessions.push(platform.open(&mut control, &format!("s{n}")).await);
    }
    let revision = control.attach("s8").await.payload["revision"].clone();
    let activate = json!({"session_id": "s8", "revision": revision});
    let refused = control.request("ACTIVATE_SESSION", activate.clone()).await;
    assert_eq!(
        (code(&refused), &refused.payload["details"]),
        ("SHIM_OVERLOADED", &json!({"max_sessions": 8}))
    );
    control.request("DETACH_SESSION", json!({"session_id": "s3"})).await;
    assert_eq!(control.request("ACTIVATE_SESSION", activate).await.kind, "SESSION_ACTIVATED");
}

#[tokio::test]
async fn a_reconnect_of_control_ends_data_connections_and_references_but_not_bindings() {
    let (platform, _rig, _executor, mut control) = started().await;
    let (browse_id, directory_ref) = control.browse().await;
    let mut data = platform.open(&mut control, "s1").await;
    control.close(1011).await;
    assert_eq!(
        data.request("FILE_STAT", json!({"path": "."})).await.payload["exists"],
        true,
        "it goes on meanwhile"
    );
    let mut control = platform.control().await;
    data.end().await;
    let stale = json!({"session_id": "s2", "browse_id": browse_id, "directory_ref": directory_ref});
    assert_eq!(code(&control.request("ATTACH_SESSION", stale).await), "DIRECTORY_REFERENCE_INVALID");
    let again = control.request("ACTIVATE_SESSION", json!({"session_id": "s1", "revision": 1})).await;
    assert_eq!(again.kind, "SESSION_ACTIVATED");
    platform.accept().await.welcome(json!({"session_id": "s1"})).await;
}

#[tokio::test]
async fn a_data_connection_that_breaks_comes_back_and_one_that_is_forbidden_ends_its_session_only() {
    let (platform, _rig, executor, mut control) = started().await;
    let data = platform.open(&mut control, "s1").await;
    drop(data);
    let mut data = platform.accept().await;
    data.welcome(json!({"session_id": "s1"})).await;
    assert_eq!(data.request("FILE_STAT", json!({"path": "."})).await.payload["exists"], true);
    let mut events = executor.subscribe();
    data.close(1011).await;
    platform.refuse(403).await;
    wait_for(&mut events, |e| matches!(e, Event::SessionClosed { .. })).await;
    assert_eq!(control.request("DIRECTORY_LIST_REQUEST", json!({})).await.kind, "DIRECTORY_LIST_RESPONSE");
}

#[tokio::test]
async fn an_idle_session_is_stopped_its_processes_die_and_its_binding_stays() {
    let platform = Scripted::start().await;
    let mut rig = Rig::new(&platform.url);
    rig.timings.idle_after = Duration::from_millis(700);
    let executor = rig.start();
    let mut control = platform.control().await;
    let mut data = platform.open(&mut control, "s1").await;
    let mut events = executor.subscribe();
    data.request("EXECUTE_COMMAND", json!({"command": "sleep 303.25 & echo $! > pid"})).await;
    let pid = std::fs::read_to_string(rig.root.join("pid")).unwrap();
    let reason = wait_for(&mut events, |e| matches!(e, Event::SessionClosed { .. })).await;
    assert!(format!("{reason:?}").contains("no request"), "{reason:?}");
    until("the background process dies", || !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists())
        .await;
    assert_eq!(rig.logged("IDLE_SESSION_DETACH").len(), 1);
    let again = control.request("ACTIVATE_SESSION", json!({"session_id": "s1", "revision": 1})).await;
    assert_eq!(again.kind, "SESSION_ACTIVATED");
}

#[tokio::test]
async fn revisions_are_remembered_over_a_restart() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let executor = rig.start();
    let mut control = platform.control().await;
    let first = control.attach("s1").await.payload;
    control.attach("s1").await;
    executor.shutdown("test").await;
    drop(executor);
    let executor = rig.restart().await;
    executor.connect_unless_off();
    let mut control = platform.control().await;
    let old = json!({"session_id": "s1", "root_grant": first["root_grant"]});
    assert_eq!(code(&control.request("RESTORE_SESSION", old).await), "SESSION_REVISION_MISMATCH");
    assert_eq!(control.attach("s1").await.payload["revision"], 3);
}

#[tokio::test]
async fn browsing_shows_folders_only_and_never_ours() {
    let (_platform, rig, _executor, mut control) = started().await;
    std::fs::create_dir(rig.root.join("sub")).unwrap();
    std::fs::write(rig.root.join("file"), "").unwrap();
    let start = control.request("DIRECTORY_LIST_REQUEST", json!({})).await.payload;
    assert_eq!((&start["current"], start["entries"].as_array().unwrap().len()), (&Value::Null, 1));
    let enter =
        json!({"browse_id": start["browse_id"], "directory_ref": start["entries"][0]["directory_ref"]});
    let listing = control.request("DIRECTORY_LIST_REQUEST", enter).await.payload;
    assert_eq!(listing["entries"].as_array().unwrap().len(), 1);
    assert_eq!((&listing["entries"][0]["name"], &listing["parent_ref"]), (&json!("sub"), &Value::Null));
    let half = control.request("DIRECTORY_LIST_REQUEST", json!({"browse_id": start["browse_id"]})).await;
    assert_eq!(code(&half), "INTERNAL_ERROR");
}
