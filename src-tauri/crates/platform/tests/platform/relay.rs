//! The relay: who may connect, who takes over, and what happens to requests when connections end.

use std::time::Duration;

use crate::common::{Conn, ROOT, Rig, answer, data_hello, hello};
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

#[tokio::test]
async fn a_machine_connects_and_is_listed() {
    let rig = Rig::start().await;
    let (_control, ack) = rig.machine("m1").await;
    assert_eq!(ack["protocol_version"], "1.1");
    assert_eq!(ack["granted_capabilities"], json!(["files", "directory_browse", "shell"]));
    assert_eq!(
        (&ack["max_file_size_bytes"], &ack["command_timeout_seconds"], &ack["max_concurrent"]),
        (&json!(10_485_760), &json!(30.0), &json!(4))
    );
    let (_, list) = rig.get("/api/copilot/executors").await;
    let machine = &list["executors"][0];
    assert_eq!((&machine["machine_id"], &machine["display_name"]), (&json!("m1"), &json!("Ann's PC")));
    assert_eq!(machine["connection_id"], ack["connection_id"]);
}

#[tokio::test]
async fn only_a_bearer_header_opens_a_socket() {
    let rig = Rig::start().await;
    for token in ["", "nonsense"] {
        assert_eq!(rig.dial_with(token, "/ws/local-executor").await.err(), Some(StatusCode::UNAUTHORIZED));
        assert_eq!(rig.dial_with(token, "/ws/local-executor/s").await.err(), Some(StatusCode::UNAUTHORIZED));
    }
    let path = format!("/ws/local-executor?token={}", rig.access);
    assert_eq!(rig.dial_with("", &path).await.err(), Some(StatusCode::BAD_REQUEST));
    assert_eq!(rig.dial_with(&rig.access, &path).await.err(), Some(StatusCode::BAD_REQUEST));
}

#[tokio::test]
async fn a_bad_greeting_is_refused_with_its_code() {
    let rig = Rig::with(|o| o.timings.hello_timeout = Duration::from_millis(300)).await;
    let frame = |payload: Value| json!({ "type": "HELLO", "id": "h", "payload": payload }).to_string();
    let with = |key: &str, value: Value| {
        let mut hello = hello("m1");
        hello[key] = value;
        frame(hello)
    };
    let cases = [
        ("not JSON".to_owned(), 4400),
        (json!({ "type": "PONG", "id": "x" }).to_string(), 4400),
        (frame(json!({})), 4400),
        (with("machine_id", json!("../m")), 4400),
        (with("arch", json!(7)), 4400),
        (with("display_name", json!("x".repeat(129))), 4400),
        (with("capabilities", json!(["files"])), 4400),
        (with("allowed_root", json!("/x")), 4400),
        (with("hardware_devices", json!([{ "x": "y".repeat(64 * 1024) }])), 4400),
        (with("protocol_version", json!("2.0")), 4426),
        (with("protocol_version", json!("one")), 4400),
    ];
    for (text, expected) in cases {
        let mut conn = rig.dial("/ws/local-executor").await;
        let shown: String = text.chars().take(80).collect();
        conn.send_text(text).await;
        let (code, reason, before) = conn.closed().await;
        assert_eq!((code, before), (expected, vec![]), "{shown}");
        assert!(reason.len() <= 123);
        if code == 4426 {
            let reason: Value = serde_json::from_str(&reason).unwrap();
            assert_eq!(reason["error"], "PROTOCOL_VERSION_MISMATCH");
        }
    }
    let mut silent = rig.dial("/ws/local-executor").await;
    assert_eq!(silent.closed().await.0, 4408);
}

#[tokio::test]
async fn a_newer_machine_is_welcome_and_gets_what_we_know() {
    let rig = Rig::start().await;
    let mut newer = hello("m1");
    newer["protocol_version"] = json!("1.9");
    newer["capabilities"] = json!(["files", "directory_browse", "telepathy"]);
    newer["something_new"] = json!({});
    let mut conn = rig.dial("/ws/local-executor").await;
    assert_eq!(conn.greet(newer).await["granted_capabilities"], json!(["files", "directory_browse"]));
}

#[tokio::test]
async fn a_binary_greeting_is_accepted() {
    let rig = Rig::start().await;
    let mut conn = rig.dial("/ws/local-executor").await;
    let frame = json!({ "type": "HELLO", "id": "h", "payload": hello("m1") }).to_string();
    conn.socket.send(Message::Binary(frame.into_bytes().into())).await.unwrap();
    conn.expect("HELLO_ACK").await;
}

#[tokio::test]
async fn the_same_machine_takes_over_and_the_old_connection_is_told() {
    let rig = Rig::start().await;
    let (mut old, ack) = rig.machine("m1").await;
    let (id, mut old_data) = rig.session(&mut old, "m1", &ack).await;
    let _new_data = rig.data(&id, "m1").await;
    let (_new, _) = rig.machine("m1").await;
    for conn in [&mut old, &mut old_data] {
        let (code, _, before) = conn.closed().await;
        assert_eq!(code, 4427);
        assert_eq!(before[0]["type"], "SESSION_REVOKED");
        let told = json!({ "reason": "another_shim_connected", "new_shim_machine_id": "m1" });
        assert_eq!(before[0]["payload"], told);
    }
    assert_eq!(rig.get("/api/copilot/executors").await.1["executors"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn another_machine_or_folder_cannot_have_the_session() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, _data) = rig.session(&mut control, "m1", &ack).await;
    let path = format!("/ws/local-executor/{id}");
    let mut thief = rig.dial(&path).await;
    thief.send(json!({ "type": "HELLO", "id": "h", "payload": data_hello("m2") })).await;
    assert_eq!(thief.closed().await.0, 4427);
    let mut moved = data_hello("m1");
    moved["allowed_root"] = json!("/etc");
    let mut conn = rig.dial(&path).await;
    conn.send(json!({ "type": "HELLO", "id": "h", "payload": moved })).await;
    assert_eq!(conn.closed().await.0, 4403);
    let (_, presence) = rig.get(&format!("/api/copilot/sessions/{id}/executor")).await;
    assert_eq!(presence["active"], true, "the owner stays");
    let mut nowhere = rig.dial("/ws/local-executor/no-such-session").await;
    assert_eq!(nowhere.closed().await.0, 4403);
}

#[tokio::test]
async fn with_the_feature_off_nothing_local_works() {
    let rig = Rig::with(|o| o.features.local_executor = false).await;
    let mut conn = rig.dial("/ws/local-executor").await;
    assert_eq!(conn.closed().await.0, 4403);
    let (status, body) = rig.get("/api/copilot/executors").await;
    assert_eq!((status, &body["error"]), (StatusCode::FORBIDDEN, &json!("feature_off")));
    let (status, _) =
        rig.post("/api/chat/sessions", json!({ "execution_target": { "kind": "cloud" } })).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn pings_come_and_a_missing_pong_ends_the_connection() {
    let rig = Rig::with(|o| {
        o.timings.ping_every = Duration::from_millis(50);
        o.timings.pong_timeout = Duration::from_millis(400);
    })
    .await;
    let (mut conn, _) = rig.machine("m1").await;
    for _ in 0..3 {
        let ping = conn.expect("PING").await;
        conn.send(json!({ "type": "PONG", "id": ping["id"], "payload": {} })).await;
    }
    let ping = conn.expect("PING").await;
    conn.send(json!({ "type": "PONG", "id": "another", "payload": {} })).await;
    assert_ne!(ping["id"], "another");
    assert_eq!(conn.closed().await.0, 4500);
}

#[tokio::test]
async fn a_socket_ends_with_its_token() {
    let rig = Rig::with(|o| o.timings.access_token_ttl = Duration::from_millis(1500)).await;
    let (mut conn, _) = rig.machine("m1").await;
    let (code, _, before) = conn.closed().await;
    assert_eq!((code, before), (4401, vec![]));
}

#[tokio::test]
async fn stopping_says_goodbye() {
    let rig = Rig::start().await;
    let (mut conn, _) = rig.machine("m1").await;
    let (((), closed), silent) = {
        let mut waiting = rig.dial("/ws/local-executor").await;
        let stop = rig.platform.stop();
        let both = async { tokio::join!(stop, conn.closed()) };
        let (both, silent) = tokio::join!(both, waiting.closed());
        (both, silent)
    };
    assert_eq!((closed.0, silent.0), (4429, 4429));
}

#[tokio::test]
async fn a_frame_over_16_mib_is_refused_while_it_is_read() {
    let rig = Rig::start().await;
    let (conn, _) = rig.machine("m1").await;
    let Conn { socket } = conn;
    let (mut sink, mut stream) = socket.split();
    let send = sink.send(Message::Text("x".repeat(17 * 1024 * 1024).into()));
    let read = async {
        loop {
            match stream.next().await {
                Some(Ok(Message::Close(Some(frame)))) => return Some(u16::from(frame.code)),
                Some(Ok(_)) => {}
                // The rest of the frame was never read, so the socket may be reset before the close frame arrives.
                Some(Err(_)) | None => return None,
            }
        }
    };
    let (_, code) =
        tokio::time::timeout(crate::common::SOON, async { tokio::join!(send, read) }).await.unwrap();
    assert!(matches!(code, None | Some(1009)), "{code:?}");
}

#[tokio::test]
async fn rubbish_from_a_machine_is_ignored() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let (id, mut data) = rig.session(&mut control, "m1", &ack).await;
    for text in [
        "",
        "[]",
        "{",
        r#"{"type":"ACK","id":"nobody"}"#,
        r#"{"type":7,"id":"a"}"#,
        r#"{"type":"NEW","id":"a"}"#,
    ] {
        data.send_text(text.to_owned()).await;
    }
    let serve = async {
        let read = data.expect("FILE_READ").await;
        data.reply(
            &read,
            "FILE_CONTENTS",
            json!({ "content": "aGk=", "encoding": "base64", "size_bytes": 2, "truncated": false }),
        )
        .await;
    };
    let (called, ()) = tokio::join!(rig.tool(&id, "read_file", json!({ "path": "a" })), serve);
    assert_eq!(called["ok"], true, "{called}");
}

fn page(browse: &str, names: &[&str]) -> Value {
    let entries: Vec<_> = names
        .iter()
        .map(|name| json!({ "directory_ref": format!("ref-{name}"), "name": name, "path": format!("{ROOT}/{name}") }))
        .collect();
    json!({
        "browse_id": browse, "current": null, "parent_ref": null, "entries": entries, "next_cursor": null,
        "truncated": false, "expires_at": 2e9,
    })
}

#[tokio::test]
async fn folders_are_listed_over_the_connection_the_caller_has_in_mind() {
    let rig = Rig::start().await;
    let (mut control, ack) = rig.machine("m1").await;
    let path = "/api/copilot/executors/m1/directories";
    let start = json!({ "expected_connection_id": ack["connection_id"] });
    let serve = async {
        let list = control.expect("DIRECTORY_LIST_REQUEST").await;
        assert_eq!(list["payload"], json!({ "browse_id": null, "directory_ref": null, "cursor": null }));
        control.reply(&list, "DIRECTORY_LIST_RESPONSE", page("b1", &["src"])).await;
    };
    let ((status, folders), ()) = tokio::join!(rig.post(path, start), serve);
    assert_eq!((status, &folders["entries"][0]["name"]), (StatusCode::OK, &json!("src")));
    let next = json!({
        "expected_connection_id": ack["connection_id"], "browse_id": "b1", "directory_ref": "ref-src",
    });
    let long = vec!["x"; 201];
    for (kind, answer, expected) in [
        ("DIRECTORY_LIST_RESPONSE", page("another", &[]), StatusCode::BAD_GATEWAY),
        ("DIRECTORY_LIST_RESPONSE", page("b1", &long), StatusCode::BAD_GATEWAY),
        ("DIRECTORY_LIST_RESPONSE", page("b1", &["a\nb"]), StatusCode::BAD_GATEWAY),
        ("ACK", json!({ "ok": true }), StatusCode::BAD_GATEWAY),
        ("ERROR", json!({ "code": "DIRECTORY_REFERENCE_INVALID", "message": "old" }), StatusCode::CONFLICT),
        ("ERROR", json!({ "code": "INTERNAL_ERROR", "message": "oh" }), StatusCode::BAD_GATEWAY),
    ] {
        let serve = async {
            let list = control.expect("DIRECTORY_LIST_REQUEST").await;
            control.reply(&list, kind, answer.clone()).await;
        };
        let ((status, body), ()) = tokio::join!(rig.post(path, next.clone()), serve);
        assert_eq!(status, expected, "{body}");
    }
    let stale = json!({ "expected_connection_id": "old" });
    assert_eq!(rig.post(path, stale).await.0, StatusCode::CONFLICT);
    let half = json!({ "expected_connection_id": ack["connection_id"], "browse_id": "b1" });
    assert_eq!(rig.post(path, half).await.0, StatusCode::BAD_REQUEST);
    let request = rig.http.post(rig.at(path)).bearer_auth(&rig.access).body("x");
    assert_eq!(answer(request).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}
