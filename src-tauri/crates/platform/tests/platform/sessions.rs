//! Sessions: making, undoing, restoring and deleting them.

use std::time::Duration;

use crate::common::{Rig, activated, answer, attached, client, hello};
use platform::{Platform, PlatformOptions};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn a_session_is_attached_persisted_activated_and_seen() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, _data) = rig.session(&mut control, "m1", &ack).await;
    let (status, shown) = rig.get(&format!("/api/chat/sessions/{id}?limit=5")).await;
    assert_eq!(status, StatusCode::OK);
    let target = json!({
        "kind": "local", "machine_id": "m1", "allowed_root": crate::common::ROOT, "fingerprint": "ab".repeat(32), "revision": 1,
    });
    assert_eq!(shown["execution_target"], target, "the grant is left out, and a page keeps the target");
    assert!(!shown.to_string().contains("root_grant") && !shown.to_string().contains("v1."));
    let (_, presence) = rig.get(&format!("/api/copilot/sessions/{id}/executor")).await;
    assert_eq!((&presence["kind"], &presence["active"]), (&json!("shim"), &json!(true)));
    let (_, list) = rig.get("/api/chat/sessions").await;
    assert_eq!(list["sessions"][0]["id"], id);
}

#[tokio::test]
async fn a_cloud_session_has_no_machine() {
    let rig = Rig::start().await;
    let (status, made) =
        rig.post("/api/chat/sessions", json!({ "execution_target": { "kind": "cloud" } })).await;
    assert_eq!(status, StatusCode::CREATED);
    let id = made["id"].as_str().unwrap();
    let (_, presence) = rig.get(&format!("/api/copilot/sessions/{id}/executor")).await;
    assert_eq!(presence, json!({ "kind": "none", "reason": "cloud" }));
    let called = rig.tool(id, "read_file", json!({ "path": "a" })).await;
    assert_eq!(called["error"]["code"], "CLOUD_SESSION");
    let mut data = rig.dial(&format!("/ws/local-executor/{id}")).await;
    assert_eq!(data.closed().await.0, 4403);
}

/// What a machine does wrong, and what the caller is told.
#[tokio::test]
async fn every_failure_undoes_the_steps_before_it() {
    let rig = Rig::with(|o| o.timings.data_connection_wait = Duration::from_millis(200)).await;
    let (mut control, ack) = rig.machine("m1").await;
    let faults: &[(&str, StatusCode)] = &[
        ("refuse attach", StatusCode::CONFLICT),
        ("attach another session", StatusCode::BAD_GATEWAY),
        ("attach without a grant", StatusCode::BAD_GATEWAY),
        ("attach with a relative root", StatusCode::BAD_GATEWAY),
        ("refuse activate", StatusCode::CONFLICT),
        ("activate another folder", StatusCode::BAD_GATEWAY),
        ("never connect", StatusCode::BAD_GATEWAY),
    ];
    for (fault, expected) in faults {
        let create = rig.post("/api/chat/sessions", rig.target("m1", &ack));
        let serve = async {
            let attach = control.expect("ATTACH_SESSION").await;
            let session = attach["payload"]["session_id"].as_str().unwrap().to_owned();
            let mut payload = attached(&session);
            match *fault {
                "refuse attach" => {
                    control.refuse(&attach, "DIRECTORY_REFERENCE_INVALID", "list again").await;
                    return detached(&mut control, &session).await;
                }
                "attach another session" => payload["session_id"] = json!("other"),
                "attach without a grant" => drop(payload.as_object_mut().unwrap().remove("root_grant")),
                "attach with a relative root" => payload["allowed_root"] = json!("work"),
                _ => {}
            }
            control.reply(&attach, "SESSION_ATTACHED", payload).await;
            if fault.starts_with("attach") {
                return detached(&mut control, &session).await;
            }
            let activate = control.expect("ACTIVATE_SESSION").await;
            let mut payload = activated(&session);
            match *fault {
                "refuse activate" => control.refuse(&activate, "ROOT_GRANT_INVALID", "gone").await,
                "activate another folder" => {
                    payload["allowed_root"] = json!("/elsewhere");
                    control.reply(&activate, "SESSION_ACTIVATED", payload).await;
                }
                _ => control.reply(&activate, "SESSION_ACTIVATED", payload).await,
            }
            detached(&mut control, &session).await
        };
        let ((status, body), session) = tokio::join!(create, serve);
        assert_eq!(status, *expected, "{fault}: {body}");
        assert_eq!(
            rig.get(&format!("/api/chat/sessions/{session}")).await.0,
            StatusCode::NOT_FOUND,
            "{fault}"
        );
    }
    assert_eq!(rig.get("/api/chat/sessions").await.1, json!({ "sessions": [] }));
}

async fn detached(control: &mut crate::common::Conn, session: &str) -> String {
    let detach = control.expect("DETACH_SESSION").await;
    assert_eq!(detach["payload"]["session_id"], session);
    control.reply(&detach, "ACK", json!({ "ok": true })).await;
    session.to_owned()
}

#[tokio::test]
async fn a_caller_who_leaves_does_not_leave_half_a_session() {
    let rig = Rig::with(|o| o.timings.data_connection_wait = Duration::from_millis(200)).await;
    let (mut control, ack) = rig.machine("m1").await;
    let attach = {
        let create = rig.post("/api/chat/sessions", rig.target("m1", &ack));
        tokio::pin!(create);
        tokio::select! {
            _ = &mut create => panic!("nobody answered yet"),
            attach = control.expect("ATTACH_SESSION") => attach,
        }
        // `create` is dropped here: its connection closes.
    };
    let session = attach["payload"]["session_id"].as_str().unwrap().to_owned();
    control.reply(&attach, "SESSION_ATTACHED", attached(&session)).await;
    let activate = control.expect("ACTIVATE_SESSION").await;
    control.refuse(&activate, "ROOT_GRANT_INVALID", "gone").await;
    detached(&mut control, &session).await;
}

#[tokio::test]
async fn a_target_that_is_stale_or_not_there_is_a_conflict() {
    let rig = Rig::start().await;
    let (_control, ack) = rig.machine("m1").await;
    let mut target = rig.target("m1", &ack);
    target["execution_target"]["connection_id"] = json!("of yesterday");
    let (status, body) = rig.post("/api/chat/sessions", target).await;
    assert_eq!((status, &body["error"]), (StatusCode::CONFLICT, &json!("stale_connection")));
    let (status, body) = rig.post("/api/chat/sessions", rig.target("m2", &ack)).await;
    assert_eq!((status, &body["error"]), (StatusCode::CONFLICT, &json!("MACHINE_OFFLINE")));
    let moon = json!({ "execution_target": { "kind": "moon" } });
    for (status, body) in [
        rig.post("/api/chat/sessions", moon).await,
        rig.post("/api/copilot/executors/-m/directories", json!({ "expected_connection_id": "x" })).await,
    ] {
        assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")));
    }
    let (status, body) = rig.get("/api/no/such/route").await;
    assert_eq!((status, &body["error"]), (StatusCode::NOT_FOUND, &json!("not_found")));
}

#[tokio::test]
async fn a_session_is_restored_at_the_first_tool_call_after_a_reconnect() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, data) = rig.session(&mut control, "m1", &ack).await;
    drop((control, data));
    wait_until_offline(&rig, &id).await;
    let called = rig.tool(&id, "read_file", json!({ "path": "a" })).await;
    assert_eq!(called["error"]["code"], "MACHINE_OFFLINE");
    let (mut control, _) = rig.machine("m1").await;
    let serve = async {
        let restore = control.expect("RESTORE_SESSION").await;
        assert_eq!(restore["payload"], json!({ "session_id": id, "root_grant": "v1.Y2xhaW1z.c2ln" }));
        control.reply(&restore, "SESSION_RESTORED", attached(&id)).await;
        let mut data = rig.data(&id, "m1").await;
        for _ in 0..2 {
            let read = data.expect("FILE_READ").await;
            let contents =
                json!({ "content": "aGk=", "encoding": "base64", "size_bytes": 2, "truncated": false });
            data.reply(&read, "FILE_CONTENTS", contents).await;
        }
        data
    };
    // Two at once: one restores, the other finds it done.
    let (first, second, _data) = tokio::join!(
        rig.tool(&id, "read_file", json!({ "path": "a" })),
        rig.tool(&id, "read_file", json!({ "path": "a" })),
        serve
    );
    assert_eq!((&first["result"]["content"], &second["result"]["content"]), (&json!("hi"), &json!("hi")));
}

async fn wait_until_offline(rig: &Rig, id: &str) {
    let deadline = tokio::time::Instant::now() + crate::common::SOON;
    while rig.get(&format!("/api/copilot/sessions/{id}/executor")).await.1["reason"] != "offline" {
        assert!(tokio::time::Instant::now() < deadline, "the platform does not notice");
    }
}

#[tokio::test]
async fn a_restore_of_another_folder_is_refused() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, data) = rig.session(&mut control, "m1", &ack).await;
    drop((control, data));
    wait_until_offline(&rig, &id).await;
    let (mut control, _) = rig.machine("m1").await;
    for (key, value) in [
        ("allowed_root", json!("/etc")),
        ("fingerprint", json!("cd".repeat(32))),
        ("revision", json!(2)),
        ("session_id", json!("other")),
    ] {
        let serve = async {
            let restore = control.expect("RESTORE_SESSION").await;
            let mut payload = attached(&id);
            payload[key] = value;
            control.reply(&restore, "SESSION_RESTORED", payload).await;
        };
        let (called, ()) = tokio::join!(rig.tool(&id, "read_file", json!({ "path": "a" })), serve);
        assert_eq!(called["error"]["code"], "MACHINE_MISBEHAVED", "{key}");
    }
}

#[tokio::test]
async fn deleting_deletes_first_and_detaches_then() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, mut data) = rig.session(&mut control, "m1", &ack).await;
    let path = format!("/api/chat/sessions/{id}");
    let serve = async {
        let detach = control.expect("DETACH_SESSION").await;
        let (status, _) = rig.get(&path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "it is gone before the machine is told");
        control.reply(&detach, "ACK", json!({ "ok": true })).await;
    };
    let ((status, _), ()) = tokio::join!(rig.delete(&path), serve);
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (code, _, before) = data.closed().await;
    assert_eq!((code, &before[0]["payload"]["reason"]), (4428, &json!("user_revoked")));
    assert_eq!(rig.delete(&path).await.0, StatusCode::NOT_FOUND);
    let mut late = rig.dial(&format!("/ws/local-executor/{id}")).await;
    assert_eq!(late.closed().await.0, 4403, "a deleted session has no data connection");
}

#[tokio::test]
async fn nobody_sees_or_uses_anothers_machines_and_sessions() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, _data) = rig.session(&mut control, "m1", &ack).await;
    rig.platform.add_user("eve", "battery staple").await.unwrap();
    let eve = rig.platform.issue_tokens("eve", platform::DEFAULT_CLIENT_ID).await.unwrap().access_token;
    let as_eve = |method: Method, path: &str, body: Value| {
        answer(rig.http.request(method, rig.at(path)).bearer_auth(&eve).json(&body))
    };
    let (_, machines) = as_eve(Method::GET, "/api/copilot/executors", json!({})).await;
    assert_eq!(machines, json!({ "executors": [] }));
    for (method, path) in [
        (Method::GET, format!("/api/chat/sessions/{id}")),
        (Method::DELETE, format!("/api/chat/sessions/{id}")),
        (Method::GET, format!("/api/copilot/sessions/{id}/executor")),
        (Method::POST, format!("/api/copilot/sessions/{id}/tools/read_file")),
    ] {
        assert_eq!(as_eve(method, &path, json!({})).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let (status, _) = as_eve(Method::POST, "/api/chat/sessions", rig.target("m1", &ack)).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let mut data = rig.dial_with(&eve, &format!("/ws/local-executor/{id}")).await.unwrap();
    assert_eq!(data.closed().await.0, 4403);
    // The same machine id under her name is another machine.
    let mut hers = rig.dial_with(&eve, "/ws/local-executor").await.unwrap();
    hers.greet(hello("m1")).await;
    let (_, machines) = rig.get("/api/copilot/executors").await;
    assert_eq!(machines["executors"][0]["connection_id"], ack["connection_id"]);
}

#[tokio::test]
async fn sessions_and_tokens_outlive_the_platform() {
    let folder = tempfile::tempdir().unwrap();
    let database = platform::Database::File(folder.path().join("platform.db"));
    let options = || PlatformOptions { database: database.clone(), ..PlatformOptions::default() };
    let before = Rig::with(|o| *o = options()).await;
    let (mut control, ack) = before.machine("m1").await;
    let (id, data) = before.session(&mut control, "m1", &ack).await;
    let (access, refresh) = (before.access.clone(), before.refresh.clone());
    drop((control, data));
    before.platform.stop().await;
    let rig = Rig { platform: Platform::start(options()).await.unwrap(), http: client(), access, refresh };
    let (mut control, _) = rig.machine("m1").await;
    let serve = async {
        let restore = control.expect("RESTORE_SESSION").await;
        control.reply(&restore, "SESSION_RESTORED", attached(&id)).await;
        let mut data = rig.data(&id, "m1").await;
        let read = data.expect("FILE_READ").await;
        data.refuse(&read, "PATH_NOT_FOUND", "not there").await;
        data
    };
    let (called, _data) = tokio::join!(rig.tool(&id, "read_file", json!({ "path": "a" })), serve);
    assert_eq!(called["error"]["code"], "PATH_NOT_FOUND", "{called}");
    let twice = rig.platform.add_user("ann", "another").await;
    assert!(matches!(twice, Err(platform::PlatformError::UserExists(_))));
    assert!(rig.platform.add_first_user("admin").await.unwrap().is_none(), "there is a user already");
}

#[tokio::test]
async fn the_first_user_gets_a_password_that_works_once_shown() {
    let platform = Platform::start(PlatformOptions::default()).await.unwrap();
    let first = platform.add_first_user("admin").await.unwrap().unwrap();
    assert!(first.password.len() >= 20);
    assert!(platform.issue_tokens(&first.name, platform::DEFAULT_CLIENT_ID).await.is_ok());
    assert!(platform.issue_tokens("nobody", platform::DEFAULT_CLIENT_ID).await.is_err());
    assert!(platform.issue_tokens(&first.name, "stranger").await.is_err());
}
