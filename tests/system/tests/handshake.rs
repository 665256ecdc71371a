//! The handshake, and what each way of ending means for the next try.

use executor::events::ConnectionState;
use serde_json::{Value, json};
use system_tests::rig::{Rig, wait_for_state};
use system_tests::scripted::{Ended, Scripted};

fn is_halted(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Halted { .. })
}

#[tokio::test]
async fn hello_says_what_the_contract_asks_for() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let _executor = rig.start();
    let mut peer = platform.accept().await;
    assert_eq!((peer.path.as_str(), peer.authorization.as_str()), ("/ws/local-executor", "Bearer token-1"));
    let hello = peer.welcome(json!({})).await.payload;
    assert_eq!(hello["protocol_version"], "1.1");
    assert_eq!(hello["display_name"], "test machine");
    assert_eq!(hello["allowed_root"], Value::Null);
    assert_eq!(hello["capabilities"], json!(["files", "directory_browse", "shell"]));
    let machine = hello["machine_id"].as_str().unwrap().to_owned();
    let mut data = platform.open(&mut peer, "s1").await;
    assert_eq!(data.path, "/ws/local-executor/s1");
    assert_eq!(
        data.request("FILE_STAT", json!({"path": "."})).await.payload["path"],
        rig.root.to_str().unwrap()
    );
    drop(data);
    assert_eq!(std::fs::read_to_string(rig.dirs.state.join("machine_id")).unwrap(), machine);
}

#[tokio::test]
async fn an_acknowledgement_that_breaks_the_contract_is_closed_with_its_code_and_not_retried() {
    for (over, code) in [
        (json!({"session_id": "s1"}), 4403),
        (json!({"granted_capabilities": ["directory_browse", "recording"]}), 4400),
        (json!({"max_concurrent": 0}), 4400),
        (json!({"command_timeout_seconds": -1}), 4400),
        (json!({"protocol_version": "2.0"}), 4426),
        (json!({"protocol_version": "1.0"}), 4426),
        (json!({"connection_id": null}), 4426),
        (json!({"granted_capabilities": ["files"]}), 4426),
        (json!({"granted_capabilities": "files"}), 4400),
    ] {
        let platform = Scripted::start().await;
        let rig = Rig::new(&platform.url);
        let executor = rig.start_unconnected();
        let mut events = executor.subscribe();
        executor.connect_unless_off();
        let mut peer = platform.accept().await;
        peer.welcome(over.clone()).await;
        match peer.end().await {
            Ended::Closed(got, reason) => {
                assert_eq!(got, code, "{over}");
                assert!(reason.len() <= 123, "{reason}");
                if over["protocol_version"] == "2.0" {
                    let reason: Value = serde_json::from_str(&reason).unwrap();
                    assert_eq!(reason["error"], "PROTOCOL_VERSION_MISMATCH");
                }
            }
            Ended::Cut => panic!("{over}: cut without a code"),
        }
        wait_for_state(&mut events, is_halted).await;
    }
}

#[tokio::test]
async fn what_answers_hello_must_be_its_acknowledgement() {
    for (kind, id) in [("HELLO_ACK", Some("another")), ("PING", None)] {
        let platform = Scripted::start().await;
        let rig = Rig::new(&platform.url);
        let executor = rig.start_unconnected();
        let mut events = executor.subscribe();
        executor.connect_unless_off();
        let mut peer = platform.accept().await;
        let hello = peer.receive().await;
        peer.reply(
            kind,
            id.unwrap_or(&hello.id),
            json!({"protocol_version": "1.1", "granted_capabilities": []}),
        )
        .await;
        assert!(matches!(peer.end().await, Ended::Closed(4400, _)), "{kind}");
        wait_for_state(&mut events, is_halted).await;
    }
}

#[tokio::test]
async fn close_codes_decide_whether_to_dial_again() {
    for (code, again) in [
        (4400, false),
        (4403, false),
        (4426, false),
        (4427, false),
        (4428, false),
        (4408, true),
        (4500, true),
        (1011, true),
        (1000, true),
        (4429, true),
    ] {
        let platform = Scripted::start().await;
        let rig = Rig::new(&platform.url);
        let executor = rig.start_unconnected();
        let mut events = executor.subscribe();
        executor.connect_unless_off();
        let mut peer = platform.control().await;
        peer.close(code).await;
        let state =
            wait_for_state(&mut events, |s| is_halted(s) || matches!(s, ConnectionState::Waiting { .. }))
                .await;
        assert_eq!(matches!(state, ConnectionState::Waiting { .. }), again, "{code}: {state:?}");
        if again {
            platform.control().await;
        }
    }
}

#[tokio::test]
async fn a_token_that_ran_out_is_refreshed_once_and_the_connection_comes_back() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let _executor = rig.start();
    assert_eq!(platform.refuse(401).await, "Bearer token-1");
    let fresh = json!({"access_token": "token-2", "refresh_token": "refresh-2", "expires_in": 3600, "token_type": "Bearer"});
    let request = platform.http(200, &fresh).await;
    assert!(
        request.starts_with("POST /api/oauth/token") && request.contains("refresh_token=refresh-1"),
        "{request}"
    );
    let mut peer = platform.accept().await;
    assert_eq!(peer.authorization, "Bearer token-2");
    peer.welcome(json!({})).await;
    assert_eq!(rig.logged("TOKEN_REFRESHED").len(), 1);
}

#[tokio::test]
async fn a_fresh_token_that_is_refused_too_means_signed_out() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let executor = rig.start_unconnected();
    let mut events = executor.subscribe();
    executor.connect_unless_off();
    platform.refuse(401).await;
    platform.http(200, &json!({"access_token": "token-2", "expires_in": 3600, "token_type": "Bearer"})).await;
    platform.refuse(401).await;
    wait_for_state(&mut events, |s| matches!(s, ConnectionState::SignedOut { .. })).await;
}

#[tokio::test]
async fn a_refused_refresh_means_signed_out_and_403_rotates_nothing() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let executor = rig.start_unconnected();
    let mut events = executor.subscribe();
    executor.connect_unless_off();
    platform.refuse(401).await;
    platform.http(400, &json!({"error": "invalid_grant"})).await;
    wait_for_state(&mut events, |s| matches!(s, ConnectionState::SignedOut { .. })).await;

    let rig = Rig::new(&platform.url);
    let executor = rig.start_unconnected();
    let mut events = executor.subscribe();
    executor.connect_unless_off();
    platform.refuse(403).await;
    wait_for_state(&mut events, is_halted).await;
    assert!(rig.logged("TOKEN_REFRESHED").is_empty());
}

#[tokio::test]
async fn a_session_that_is_revoked_is_closed_4428_and_not_dialled_again() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let executor = rig.start_unconnected();
    let mut events = executor.subscribe();
    executor.connect_unless_off();
    let (mut control, mut data) = platform.session("s1").await;
    data.reply("SESSION_REVOKED", "x", json!({"reason": "another_shim_connected"})).await;
    assert!(matches!(data.end().await, Ended::Closed(4428, _)));
    assert_eq!(control.request("DIRECTORY_LIST_REQUEST", json!({})).await.kind, "DIRECTORY_LIST_RESPONSE");
    control.reply("SESSION_REVOKED", "y", json!({"reason": "a reason of the future"})).await;
    assert!(matches!(control.end().await, Ended::Closed(4428, _)));
    wait_for_state(&mut events, is_halted).await;
    assert_eq!(rig.logged("SESSION_REVOKED").len(), 2);
}

fn tokens(name: u32, expires_in: u32) -> Value {
    json!({
        "access_token": format!("token-{name}"), "refresh_token": format!("refresh-{name}"), "expires_in": expires_in,
        "token_type": "Bearer",
    })
}

#[tokio::test]
async fn a_short_lived_token_never_signs_out() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let executor = rig.start_unconnected();
    let mut events = executor.subscribe();
    executor.connect_unless_off();
    let mut peer = platform.control().await;
    // Every connection is accepted and ended for its token, sooner than any counts as stable.
    for name in 2..6 {
        assert!(peer.is_silent_for(std::time::Duration::from_millis(50)).await);
        peer.close(4401).await;
        platform.http(200, &tokens(name, 3600)).await;
        peer = platform.accept().await;
        assert_eq!(peer.authorization, format!("Bearer token-{name}"));
        peer.welcome(json!({})).await;
    }
    // A grant that is dead does.
    peer.close(4401).await;
    platform.http(400, &json!({"error": "invalid_grant"})).await;
    wait_for_state(&mut events, |s| matches!(s, ConnectionState::SignedOut { .. })).await;
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_no_command_dies_of_it() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    rig.sign_in_for("token-1", Some("refresh-1"), 8.0);
    let _executor = rig.start();
    // One that ends within a minute is exchanged before it is used.
    platform.http(200, &tokens(2, 8)).await;
    let mut control = platform.control().await;
    assert_eq!(control.authorization, "Bearer token-2");
    control.attach("s1").await;
    control.send("ACTIVATE_SESSION", json!({"session_id": "s1", "revision": 1})).await;
    platform.http(200, &tokens(3, 8)).await;
    let mut data = platform.accept().await;
    data.welcome(json!({"session_id": "s1"})).await;
    let command = "echo > on; while [ ! -e go ]; do sleep 0.05; done; echo done";
    let run = data.send("EXECUTE_COMMAND", json!({"command": command})).await;
    // Past half of its life the next one is there, and the command goes on; towards the end no other begins.
    let held_off = loop {
        let answer = data.request("FILE_STAT", json!({"path": "."})).await;
        if answer.kind == "ERROR" {
            break answer.payload;
        }
        assert!(data.is_silent_for(std::time::Duration::from_millis(100)).await);
    };
    assert_eq!(
        (&held_off["code"], &held_off["details"]["reason"]),
        (&json!("SHIM_OVERLOADED"), &json!("renewing"))
    );
    assert!(rig.root.join("on").exists());
    std::fs::write(rig.root.join("go"), "").unwrap();
    let result = data.answer_to(&run).await;
    assert_eq!((&result.payload["stdout"], &result.payload["exit_code"]), (&json!("done\n"), &json!(0)));
    // Then, with nothing in flight, both connections are exchanged.
    assert_eq!(data.end().await, Ended::Closed(1000, String::new()));
    assert_eq!(control.end().await, Ended::Closed(1000, String::new()));
    platform.http(200, &tokens(4, 3600)).await;
    let again = platform.control().await;
    assert_eq!(again.authorization, "Bearer token-4");
    assert_eq!(rig.logged("EXECUTE_COMMAND")[0]["result"]["ok"], true);
    assert_eq!(rig.logged("TOKEN_REFRESHED").len(), 3);
}
