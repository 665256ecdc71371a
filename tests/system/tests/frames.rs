//! Bad frames, bad order, bad lines: each is answered or dropped, nothing is lost, and the process goes on serving.

use std::time::Duration;

use executor::events::ConnectionState;
use futures_util::StreamExt as _;
use serde_json::json;
use system_tests::rig::{Rig, until, wait_for_state};
use system_tests::scripted::{Ended, Scripted};

#[tokio::test]
async fn malformed_frames_are_answered_where_somebody_can_be_and_never_end_the_connection() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let _executor = rig.start();
    let (_control, mut data) = platform.session("s1").await;
    let deep = format!(
        r#"{{"type":"FILE_STAT","id":"deep","payload":{{"path":{}{}}}}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    for (frame, id) in [
        (r#"{"type":7,"id":"a"}"#.to_owned(), "a"),
        (r#"{"type":"FILE_STAT","id":"b","payload":[]}"#.to_owned(), "b"),
        (r#"{"type":"FILE_STAT","id":"c","ts":"x","payload":{"path":"."}}"#.to_owned(), "c"),
        (r#"{"type":"FILE_STAT","id":"d","payload":{"path":".","path":"."}}"#.to_owned(), "d"),
        (deep, "deep"),
    ] {
        data.raw(frame).await;
        let error = data.answer_to(id).await;
        assert_eq!(
            (error.kind.as_str(), error.payload["code"].as_str()),
            ("ERROR", Some("INTERNAL_ERROR")),
            "{id}"
        );
    }
    for frame in ["", "null", "[]", "{", r#"{"type":"FILE_STAT"}"#, r#"{"type":"FILE_STAT","id":""}"#] {
        data.raw(frame.to_owned()).await;
    }
    data.raw_bytes(vec![0xff, 0xfe]).await;
    data.raw_bytes(br#"{"type":"FILE_STAT","id":"bin","payload":{"path":"."}}"#.to_vec()).await;
    assert_eq!(data.answer_to("bin").await.kind, "FILE_STAT_RESPONSE", "binary frames of JSON are read");
}

#[tokio::test]
async fn other_versions_are_told_apart() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let _executor = rig.start();
    let (_control, mut data) = platform.session("s1").await;
    data.raw(r#"{"type":"FILE_STAT","id":"major","version":"2.0","payload":{"path":"."}}"#.to_owned()).await;
    for (id, version) in [("minor", "\"1.9\""), ("odd", "7"), ("none", "null")] {
        data.raw(format!(
            r#"{{"type":"FILE_STAT","id":"{id}","version":{version},"payload":{{"path":"."}},"x":1}}"#
        ))
        .await;
        assert_eq!(data.answer().await.id, id, "the frame of another major was dropped");
    }
}

#[tokio::test]
async fn ping_is_answered_while_every_slot_is_taken_and_the_next_request_is_refused_at_once() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let _executor = rig.start();
    let (_control, mut data) = platform.session("s1").await;
    for n in 0..4 {
        data.send(
            "EXECUTE_COMMAND",
            json!({"command": format!("echo > on{n}; while [ ! -e go ]; do sleep 0.05; done")}),
        )
        .await;
    }
    until("all four run", || (0..4).all(|n| rig.root.join(format!("on{n}")).exists())).await;
    data.reply("PING", "p1", json!({})).await;
    let pong = data.answer_to("p1").await;
    assert_eq!((pong.kind.as_str(), pong.pending_capacity), ("PONG", None));
    let fifth = data.request("FILE_STAT", json!({"path": "."})).await;
    assert_eq!((&fifth.payload["code"], fifth.pending_capacity), (&json!("SHIM_OVERLOADED"), Some(0)));
    assert_eq!(fifth.payload["details"], json!({"max_concurrent": 4}));
    std::fs::write(rig.root.join("go"), "").unwrap();
    let first = data.receive().await;
    assert_eq!((first.kind.as_str(), first.pending_capacity), ("COMMAND_RESULT", Some(1)));
    let next = data.receive().await;
    assert_eq!(next.kind, "STATUS", "from full to one free: a STATUS follows");
    assert_eq!((&next.payload["max_concurrent"], next.pending_capacity), (&json!(4), Some(1)));
    for _ in 0..3 {
        assert_eq!(data.answer().await.kind, "COMMAND_RESULT");
    }
    assert_eq!(rig.logged("FILE_STAT")[0]["result"]["error_code"], "SHIM_OVERLOADED");
}

#[tokio::test]
async fn a_request_sent_twice_runs_once() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let _executor = rig.start();
    let (_control, mut data) = platform.session("s1").await;
    let run = json!({"command": "echo x >> count; while [ ! -e go ]; do sleep 0.05; done"});
    data.reply("EXECUTE_COMMAND", "twice", run.clone()).await;
    until("it runs", || rig.root.join("count").exists()).await;
    data.reply("EXECUTE_COMMAND", "twice", run).await;
    let refused = data.answer().await;
    assert_eq!((refused.kind.as_str(), refused.payload["code"].as_str()), ("ERROR", Some("INTERNAL_ERROR")));
    assert_eq!(refused.payload["details"], json!({"reason": "duplicate_id", "duplicate_of": "twice"}));
    assert_ne!(refused.id, "twice", "it would pass for the first one's answer");
    assert_eq!(rig.logged("EXECUTE_COMMAND")[0]["result"]["error_code"], "INTERNAL_ERROR");
    data.request("FILE_STAT", json!({"path": "."})).await;
    std::fs::write(rig.root.join("go"), "").unwrap();
    assert_eq!(data.answer_to("twice").await.kind, "COMMAND_RESULT");
    assert!(data.is_silent_for(Duration::from_millis(200)).await);
    assert_eq!(std::fs::read_to_string(rig.root.join("count")).unwrap(), "x\n");
}

#[tokio::test]
async fn a_request_with_an_id_that_is_too_long_is_told_so() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let _executor = rig.start();
    let (_control, data) = platform.session("s1").await;
    // The scripted platform reads frames as we do, and would not take the long id either.
    let mut socket = data.into_socket();
    let mut ask = async |length: usize| -> serde_json::Value {
        use futures_util::SinkExt as _;
        let frame = json!({"type": "FILE_STAT", "id": "x".repeat(length), "payload": {"path": "."}});
        socket.send(tokio_tungstenite::tungstenite::Message::text(frame.to_string())).await.unwrap();
        loop {
            let message = socket.next().await.unwrap().unwrap();
            let Ok(text) = message.to_text() else { continue };
            match serde_json::from_str::<serde_json::Value>(text) {
                Ok(frame) if frame["type"] != "STATUS" => return frame,
                Ok(_) | Err(_) => {}
            }
        }
    };
    assert_eq!(ask(4096).await["type"], "FILE_STAT_RESPONSE");
    for length in [4097, 65_536] {
        let error = ask(length).await;
        assert_eq!((&error["type"], &error["payload"]["code"]), (&json!("ERROR"), &json!("INTERNAL_ERROR")));
        assert_eq!(error["payload"]["details"]["field"], "id");
        assert_eq!(error["id"].as_str().unwrap().len(), length);
    }
    let error = ask(5 << 20).await;
    assert!(error["id"].as_str().unwrap().len() < 64, "an id of our own");
    assert_eq!(error["payload"]["details"], json!({"field": "id", "id_begins": "x".repeat(64)}));
    assert_eq!(ask(36).await["type"], "FILE_STAT_RESPONSE");
}

#[tokio::test]
async fn a_frame_over_the_limit_ends_the_connection_which_then_comes_back() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let _executor = rig.start();
    let mut control = platform.control().await;
    let huge = json!({"type": "PING", "id": "x", "payload": {"a": "y".repeat(17 << 20)}}).to_string();
    // The executor may cut the line while it is still being sent.
    let mut socket = {
        use futures_util::SinkExt as _;
        let mut socket = control.into_socket();
        drop(socket.send(tokio_tungstenite::tungstenite::Message::text(huge)).await);
        socket
    };
    while let Some(Ok(_)) = socket.next().await {}
    control = platform.control().await;
    assert_eq!(control.request("DIRECTORY_LIST_REQUEST", json!({})).await.kind, "DIRECTORY_LIST_RESPONSE");
}

#[tokio::test]
async fn a_peer_that_went_silent_is_noticed() {
    let platform = Scripted::start().await;
    let mut rig = Rig::new(&platform.url);
    rig.timings.ping_every = Duration::from_millis(200);
    rig.timings.pong_within = Duration::from_millis(300);
    let executor = rig.start_unconnected();
    let mut events = executor.subscribe();
    executor.connect_unless_off();
    let silent = platform.control().await; // nobody reads it, so no pong is sent
    let state = wait_for_state(&mut events, |s| matches!(s, ConnectionState::Waiting { .. })).await;
    assert!(format!("{state:?}").contains("pong"), "{state:?}");
    drop(silent);
    platform.control().await;
}

#[tokio::test]
async fn status_comes_by_itself() {
    let platform = Scripted::start().await;
    let mut rig = Rig::new(&platform.url);
    rig.timings.status_every = Duration::from_millis(100);
    let _executor = rig.start();
    let mut control = platform.control().await;
    let status = control.receive().await;
    assert_eq!((status.kind.as_str(), status.pending_capacity), ("STATUS", Some(4)));
    assert!(status.payload["audit_log_bytes"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn an_answer_that_would_not_fit_a_frame_becomes_an_error_with_the_same_id() {
    let platform = Scripted::start().await;
    let rig = Rig::with(&platform.url, "max_file_size_bytes = 100000000\n");
    let _executor = rig.start();
    let mut control = platform.control().await;
    control.attach("s1").await;
    control.send("ACTIVATE_SESSION", json!({"session_id": "s1", "revision": 1})).await;
    let mut data = platform.accept().await;
    data.welcome(json!({"session_id": "s1", "max_file_size_bytes": 100_000_000})).await;
    std::fs::write(rig.root.join("big"), vec![0_u8; 20_000_000]).unwrap();
    for format in ["text", "bytes"] {
        let error = data.request("FILE_READ", json!({"path": "big", "format": format})).await;
        assert_eq!(error.payload["code"], "FILE_TOO_LARGE", "{format}");
        let limit = error.payload["details"]["max_file_size_bytes"].as_u64().unwrap();
        let fits = data.request("FILE_READ", json!({"path": "big", "format": format, "length": limit})).await;
        assert_eq!(
            (fits.kind.as_str(), fits.payload["size_bytes"].as_u64()),
            ("FILE_CONTENTS", Some(limit)),
            "{format}"
        );
    }
    assert!(matches!(drop_and_end(data).await, Ended::Cut | Ended::Closed(..)));
}

async fn drop_and_end(mut peer: system_tests::scripted::Peer) -> Ended {
    peer.close(1000).await;
    peer.end().await
}
