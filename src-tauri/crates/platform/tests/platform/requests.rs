//! Requests: room for them, what their answers must hold, and what is said when none comes.

use std::time::Duration;

use crate::common::{Conn, Rig, attached};
use serde_json::{Value, json};

fn contents(base64: &str, size: u64) -> Value {
    json!({ "content": base64, "encoding": "base64", "size_bytes": size, "truncated": false })
}

#[tokio::test]
async fn an_answer_that_breaks_the_contract_goes_no_further() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, mut data) = rig.session(&mut control, "m1", &ack).await;
    for (kind, payload) in [
        ("ACK", json!({ "ok": true })),
        ("FILE_CONTENTS", json!({})),
        ("FILE_CONTENTS", contents("aGk=", 3)),
        ("FILE_CONTENTS", contents("not base64", 2)),
        (
            "FILE_CONTENTS",
            json!({ "content": "hi", "encoding": "utf-8", "size_bytes": 2, "truncated": false }),
        ),
        ("ERROR", json!({ "code": "MADE_UP", "message": "x" })),
        ("WHATEVER", json!({})),
    ] {
        let serve = async {
            let read = data.expect("FILE_READ").await;
            data.reply(&read, kind, payload.clone()).await;
        };
        let (called, ()) = tokio::join!(rig.tool(&id, "read_file", json!({ "path": "a" })), serve);
        assert_eq!(called["error"]["code"], "MACHINE_MISBEHAVED", "{kind} {payload}");
    }
}

#[tokio::test]
async fn requests_wait_for_capacity() {
    let rig = Rig::with(|o| o.limits.max_concurrent = 2).await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, mut data) = rig.session(&mut control, "m1", &ack).await;
    let calls = futures_util::future::join_all(
        (0..4).map(|n| rig.tool(&id, "read_file", json!({ "path": format!("{n}") }))),
    );
    let serve = async {
        let first = data.expect("FILE_READ").await;
        let second = data.expect("FILE_READ").await;
        // Two are out, and there is room for two: nothing more may come.
        assert!(tokio::time::timeout(Duration::from_millis(200), data.recv()).await.is_err());
        data.reply_with(&first, "FILE_CONTENTS", contents("", 0), 0).await;
        assert!(tokio::time::timeout(Duration::from_millis(200), data.recv()).await.is_err(), "it said 0");
        data.reply_with(&second, "FILE_CONTENTS", contents("", 0), 1).await;
        let third = data.expect("FILE_READ").await;
        // It may turn one away all the same; that one comes again once there is room.
        let full =
            json!({ "code": "SHIM_OVERLOADED", "message": "full", "details": { "max_concurrent": 2 } });
        data.reply_with(&third, "ERROR", full, 0).await;
        let status = json!({
            "in_flight": 0, "max_concurrent": 2, "queue_depth": 0, "audit_log_bytes": 0, "uptime_seconds": 1,
        });
        data.send(json!({ "type": "STATUS", "id": "s", "pending_capacity": 2, "payload": status })).await;
        for _ in 0..2 {
            let read = data.expect("FILE_READ").await;
            data.reply_with(&read, "FILE_CONTENTS", contents("", 0), 1).await;
        }
    };
    let (answers, ()) = tokio::join!(calls, serve);
    assert!(answers.iter().all(|answer| answer["ok"] == true), "{answers:?}");
}

#[tokio::test]
async fn a_machine_without_room_is_busy_after_a_while() {
    let rig = Rig::with(|o| {
        o.limits.max_concurrent = 1;
        o.timings.capacity_wait = Duration::from_millis(100);
    })
    .await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, mut data) = rig.session(&mut control, "m1", &ack).await;
    let first = rig.tool(&id, "read_file", json!({ "path": "a" }));
    let rest = async {
        let read = data.expect("FILE_READ").await;
        let second = rig.tool(&id, "read_file", json!({ "path": "b" })).await;
        assert_eq!(second["error"]["code"], "MACHINE_BUSY");
        data.reply(&read, "FILE_CONTENTS", contents("", 0)).await;
    };
    let (first, ()) = tokio::join!(first, rest);
    assert_eq!(first["ok"], true);
}

/// Restores the session over `control`, as a machine that has lost its data connection does.
async fn restored(rig: &Rig, control: &mut Conn, id: &str) -> Conn {
    let restore = control.expect("RESTORE_SESSION").await;
    control.reply(&restore, "SESSION_RESTORED", attached(id)).await;
    rig.data(id, "m1").await
}

#[tokio::test]
async fn what_changes_nothing_is_repeated_once_after_a_reconnect() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, mut data) = rig.session(&mut control, "m1", &ack).await;
    let serve = async {
        data.expect("FILE_READ").await;
        drop(data);
        let mut data = restored(&rig, &mut control, &id).await;
        let read = data.expect("FILE_READ").await;
        data.reply(&read, "FILE_CONTENTS", contents("aGk=", 2)).await;
        data
    };
    let (called, mut data) = tokio::join!(rig.tool(&id, "read_file", json!({ "path": "a" })), serve);
    assert_eq!(called["result"]["content"], "hi", "{called}");
    let serve = async {
        data.expect("FILE_READ").await;
        drop(data);
        let mut data = restored(&rig, &mut control, &id).await;
        data.expect("FILE_READ").await;
        drop(data);
    };
    let (called, ()) = tokio::join!(rig.tool(&id, "read_file", json!({ "path": "a" })), serve);
    assert_eq!(called["error"]["code"], "NO_ANSWER", "once, not for ever");
}

#[tokio::test]
async fn what_changes_something_is_never_repeated() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, mut data) = rig.session(&mut control, "m1", &ack).await;
    for (tool, arguments, request, code) in [
        ("write_file", json!({ "path": "a", "content": "x" }), "FILE_WRITE", "WRITE_UNCONFIRMED"),
        ("bash_exec", json!({ "command": "make" }), "EXECUTE_COMMAND", "OP_UNCONFIRMED"),
    ] {
        let serve = async {
            data.expect(request).await;
            drop(data);
        };
        let (called, ()) = tokio::join!(rig.tool(&id, tool, arguments), serve);
        assert_eq!(called["error"]["code"], code);
        assert!(called["error"]["message"].as_str().unwrap().contains("look whether it happened"));
        let next = rig.tool(&id, "read_file", json!({ "path": "a" }));
        let serve = async {
            let mut data = restored(&rig, &mut control, &id).await;
            let read = data.expect("FILE_READ").await;
            data.reply(&read, "FILE_CONTENTS", contents("", 0)).await;
            data
        };
        let (called, again) = tokio::join!(next, serve);
        assert_eq!(called["ok"], true, "the next request was the read, not the {request}");
        data = again;
    }
}

#[tokio::test]
async fn an_answer_that_never_comes_is_unconfirmed() {
    let rig = Rig::with(|o| {
        o.timings.request_timeout = Duration::from_millis(100);
        o.limits.command_timeout_seconds = 0.1;
    })
    .await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, _data) = rig.session(&mut control, "m1", &ack).await;
    let called = rig.tool(&id, "bash_exec", json!({ "command": "sleep 9" })).await;
    assert_eq!(called["error"]["code"], "OP_UNCONFIRMED");
    let called = rig.tool(&id, "read_file", json!({ "path": "a" })).await;
    assert_eq!(called["error"]["code"], "NO_ANSWER");
}
