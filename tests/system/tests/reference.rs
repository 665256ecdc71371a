//! The real executor and the real reference platform, over real sockets: what a person and an agent see of the two together.

use std::time::Duration;

use executor::Executor;
use executor::events::{Command, ConnectionState, Event};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use system_tests::rig::{running, until, wait_for, wait_for_state};
use system_tests::{Reference, Rig};

/// A platform, a connected machine, a session on its first root.
async fn session() -> (Reference, Rig, Executor, String) {
    let platform = Reference::start().await;
    let rig = platform.rig().await;
    let executor = rig.start();
    let session = platform.session().await;
    (platform, rig, executor, session)
}

/// So many seconds, told apart from the naps of other tests and of other runs.
fn nap(seconds: u32) -> String {
    format!("{seconds}.{}", std::process::id())
}

fn is_connected(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Connected { .. })
}

fn is_halted(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Halted { .. })
}

#[tokio::test]
async fn a_machine_that_signs_in_is_listed_with_what_it_offers() {
    let platform = Reference::start().await;
    assert_eq!(platform.get("/api/copilot/executors").await, json!({"executors": []}));
    let rig = platform.rig().await;
    let executor = rig.start();
    let machine = platform.machine(None).await;
    assert_eq!(machine["display_name"], "test machine");
    assert_eq!(machine["machine_id"], executor.status().machine_id.as_str());
    assert_eq!(machine["capabilities"], json!(["files", "directory_browse", "shell"]));
    assert_eq!(machine["protocol_version"], "1.1");
    executor.shutdown("test").await;
    until("the executor is off", || matches!(executor.status().connection, ConnectionState::Off { .. }))
        .await;
    assert_eq!(platform.get("/api/copilot/executors").await, json!({"executors": []}));
}

#[tokio::test]
async fn a_person_picks_a_folder_below_a_root_and_the_session_is_there_and_nowhere_else() {
    let platform = Reference::start().await;
    let rig = platform.rig().await;
    for name in ["a", "a/deep", "b"] {
        std::fs::create_dir(rig.root.join(name)).unwrap();
    }
    std::fs::write(rig.root.join("file"), "").unwrap();
    std::fs::write(rig.root.join("a/deep/f.txt"), "here").unwrap();
    std::fs::write(rig.root.join("b/f.txt"), "not here").unwrap();
    let _executor = rig.start();
    let machine = platform.machine(None).await;

    let roots = platform.browse(&machine, None, None).await;
    let root = &roots["entries"][0];
    assert_eq!((&root["name"], roots["current"].is_null()), (&json!("work"), true));
    let id = &roots["browse_id"];
    let inside = platform.browse(&machine, Some(id), Some(&root["directory_ref"])).await;
    let names: Vec<_> =
        inside["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b"], "files are not offered");
    let a = platform.browse(&machine, Some(id), Some(&inside["entries"][0]["directory_ref"])).await;
    let deep = &a["entries"][0]["directory_ref"];

    let (status, made) = platform.ask_for_session(&machine, id, deep).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let folder = rig.root.join("a").join("deep");
    assert_eq!(made["execution_target"]["allowed_root"], folder.to_string_lossy().as_ref());
    assert!(!made.to_string().contains("root_grant"), "the grant is the platform's own");
    let session = made["id"].as_str().unwrap();
    assert_eq!(platform.tool(session, "read_file", json!({"path": "f.txt"})).await["content"], "here");
    assert_eq!(
        platform.refused(session, "read_file", json!({"path": "../../b/f.txt"})).await,
        "PATH_OUTSIDE_ALLOWED_ROOT"
    );

    let (status, again) = platform.ask_for_session(&machine, id, &json!("0".repeat(64))).await;
    assert_eq!((status, &again["error"]), (StatusCode::CONFLICT, &json!("DIRECTORY_REFERENCE_INVALID")));
    let sessions = platform.get("/api/chat/sessions").await;
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "a refused one leaves nothing: {sessions}");
}

#[tokio::test]
async fn an_agent_writes_reads_edits_finds_and_searches_files() {
    let (platform, rig, _executor, session) = session().await;
    let tool = |name: &'static str, arguments: Value| platform.tool(&session, name, arguments);

    let text = "one\ntwo\nthree\n";
    assert_eq!(tool("write_file", json!({"path": "a/b/n.txt", "content": text})).await["size_bytes"], 14);
    assert_eq!(std::fs::read_to_string(rig.root.join("a/b/n.txt")).unwrap(), text);
    let part = tool("read_file", json!({"path": "a/b/n.txt", "offset": 4, "length": 3})).await;
    assert_eq!(
        (&part["content"], &part["truncated"], &part["next_offset"]),
        (&json!("two"), &json!(true), &json!(7))
    );
    tool("write_file", json!({"path": "bin", "content": "AP8=", "encoding": "base64"})).await;
    assert_eq!(std::fs::read(rig.root.join("bin")).unwrap(), [0, 255]);
    assert_eq!(tool("read_file", json!({"path": "bin", "encoding": "base64"})).await["content"], "AP8=");

    let edit = json!({"path": "a/b/n.txt", "old_string": "two", "new_string": "zwei é"});
    assert_eq!(tool("edit_file", edit.clone()).await["replacements"], 1);
    assert_eq!(std::fs::read_to_string(rig.root.join("a/b/n.txt")).unwrap(), "one\nzwei é\nthree\n");
    assert_eq!(platform.refused(&session, "edit_file", edit).await, "NO_MATCH");

    let found = tool("glob", json!({"pattern": "**/*.txt"})).await;
    assert_eq!(found["matches"][0]["path"], "a/b/n.txt");
    assert_eq!((found["matches"].as_array().unwrap().len(), &found["truncated"]), (1, &json!(false)));
    let found = tool("grep", json!({"pattern": "^z.ei"})).await;
    assert_eq!(found["matches"], json!([{"path": "a/b/n.txt", "line": 2, "text": "zwei é"}]));

    assert_eq!(platform.refused(&session, "read_file", json!({"path": "none"})).await, "PATH_NOT_FOUND");
    let shown = platform.get(&format!("/api/chat/sessions/{session}")).await;
    let calls = shown["messages"].as_array().unwrap();
    assert_eq!(
        (calls.len(), &calls[0]["tool"], &calls[8]["error"]),
        (9, &json!("write_file"), &json!("PATH_NOT_FOUND"))
    );
    assert!(!rig.log().iter().any(|record| record.to_string().contains("zwei")), "the log has no contents");
}

#[tokio::test]
async fn a_large_file_goes_both_ways_whole() {
    let (platform, rig, _executor, session) = session().await;
    // Bytes that JSON writes at six times their size, more than a text payload takes at once.
    let bytes: Vec<u8> = (0..3 << 20).map(|i: u32| u8::try_from(i % 31).unwrap()).collect();
    let text = String::from_utf8(bytes).unwrap();
    platform.tool(&session, "write_file", json!({"path": "big", "content": text})).await;
    assert!(std::fs::read_to_string(rig.root.join("big")).unwrap() == text);
    let mut got = String::new();
    let mut offset = json!(0);
    while !offset.is_null() {
        let mut part = platform
            .tool(&session, "read_file", json!({"path": "big", "offset": offset, "length": 1 << 20}))
            .await;
        got.push_str(part["content"].as_str().unwrap());
        offset = part["next_offset"].take();
    }
    assert!(got == text);
}

#[tokio::test]
async fn an_agent_runs_commands_and_sees_how_they_went() {
    let nap = nap(302);
    let (platform, rig, _executor, session) = session().await;
    let tool = |arguments: Value| platform.tool(&session, "bash_exec", arguments);
    let ran = tool(json!({"command": "pwd; echo err >&2; echo $X; exit 3", "env": {"X": "é"}})).await;
    assert_eq!(ran["stdout"], format!("{}\né\n", rig.root.display()));
    assert_eq!((&ran["stderr"], &ran["exit_code"]), (&json!("err\n"), &json!(3)));
    let ran = tool(json!({"argv": ["printf", "%s", "a b; c"]})).await;
    assert_eq!((&ran["stdout"], &ran["exit_code"]), (&json!("a b; c"), &json!(0)));
    let ran = tool(json!({"command": format!("echo on; sleep {nap}"), "timeout_seconds": 0.5})).await;
    assert_eq!(
        (&ran["stdout"], &ran["timed_out"], &ran["exit_code"]),
        (&json!("on\n"), &json!(true), &json!(-1))
    );
    until("what timed out dies", || running(&nap).is_empty()).await;
    let refused = |arguments: Value| platform.refused(&session, "bash_exec", arguments);
    assert_eq!(refused(json!({"argv": ["no-such-program"]})).await, "SHELL_NOT_AVAILABLE");
    assert_eq!(refused(json!({"command": "true", "cwd": ".."})).await, "PATH_OUTSIDE_ALLOWED_ROOT");
}

#[tokio::test]
async fn no_tool_leaves_the_folder() {
    let (platform, rig, _executor, session) = session().await;
    std::fs::write(rig.outside().join("secret"), "s3cr3t").unwrap();
    #[cfg(unix)]
    for (link, target) in [("link", "secret"), ("dangling", "new"), ("up", "")] {
        std::os::unix::fs::symlink(rig.outside().join(target), rig.root.join(link)).unwrap();
    }
    for (tool, arguments) in [
        ("read_file", json!({"path": "../secret"})),
        ("read_file", json!({"path": rig.outside().join("secret")})),
        ("read_file", json!({"path": "link"})),
        ("read_file", json!({"path": "up/secret"})),
        ("write_file", json!({"path": "dangling", "content": "x"})),
        ("write_file", json!({"path": "nope/../../new", "content": "x"})),
        ("edit_file", json!({"path": "link", "old_string": "s", "new_string": "x"})),
        ("glob", json!({"pattern": "*", "path": ".."})),
        ("grep", json!({"pattern": "s", "path": "up"})),
        ("bash_exec", json!({"command": "cat secret", "cwd": "up"})),
    ] {
        let answer = platform.answer(&session, tool, arguments.clone()).await;
        assert_eq!(answer["error"]["code"], "PATH_OUTSIDE_ALLOWED_ROOT", "{tool} {arguments}: {answer}");
        assert!(!answer.to_string().contains("s3cr3t"), "{answer}");
    }
    let all = platform.tool(&session, "grep", json!({"pattern": "s3cr3t"})).await;
    assert_eq!(all["matches"], json!([]), "links are not followed");
    assert_eq!(std::fs::read_to_string(rig.outside().join("secret")).unwrap(), "s3cr3t");
    assert!(!rig.outside().join("new").exists());
}

#[tokio::test]
async fn what_no_rule_allows_is_denied_where_nobody_can_be_asked() {
    let platform = Reference::start().await;
    let rules = "[[rules]]\ncapability = \"shell\"\nprogram = \"true\"\ndecision = \"allow\"\n";
    let mut rig = platform.rig_with(rules).await;
    rig.config.consent.shell = executor::config::Decision::Ask;
    rig.config.consent.write = executor::config::Decision::Deny;
    let _executor = rig.start();
    let session = platform.session().await;
    assert_eq!(platform.tool(&session, "bash_exec", json!({"argv": ["true"]})).await["exit_code"], 0);
    for (tool, arguments, capability) in [
        ("bash_exec", json!({"argv": ["touch", "x"]}), "shell"),
        ("bash_exec", json!({"command": "true; touch x"}), "shell"),
        ("bash_exec", json!({"argv": ["true"], "env": {"PATH": "."}}), "shell"),
        ("write_file", json!({"path": "x", "content": ""}), "write"),
    ] {
        let answer = platform.answer(&session, tool, arguments.clone()).await;
        let error = &answer["error"];
        assert_eq!(
            (&error["code"], &error["details"]["reason"], &error["details"]["capability"]),
            (&json!("CONSENT_REQUIRED"), &json!("rule"), &json!(capability)),
            "{arguments}: {answer}"
        );
    }
    assert!(!rig.root.join("x").exists());
}

#[tokio::test]
async fn sessions_go_on_after_the_platform_was_restarted() {
    let (mut platform, rig, executor, session) = session().await;
    let mut events = executor.subscribe();
    platform.tool(&session, "write_file", json!({"path": "a", "content": "before"})).await;
    let before = platform.machine(None).await;
    platform.stop().await;
    wait_for_state(&mut events, |s| matches!(s, ConnectionState::Waiting { .. })).await;
    platform.start_again().await;
    wait_for_state(&mut events, is_connected).await;
    let after = platform.machine(None).await;
    assert_ne!(before["connection_id"], after["connection_id"]);
    assert_eq!(before["machine_id"], after["machine_id"]);
    assert_eq!(platform.tool(&session, "read_file", json!({"path": "a"})).await["content"], "before");
    assert_eq!(platform.tool(&session, "bash_exec", json!({"command": "echo on"})).await["stdout"], "on\n");
    assert_eq!(rig.logged("SESSION_ALLOWED_ROOT_SET").len(), 1, "nobody picked the folder again");
    // The machine's own restart is no different.
    executor.shutdown("test").await;
    drop(executor);
    let again = rig.restart().await;
    again.connect_unless_off();
    platform.machine(Some(&after)).await;
    assert_eq!(platform.tool(&session, "read_file", json!({"path": "a"})).await["content"], "before");
    assert_eq!(rig.logged("RESTORE_SESSION").last().unwrap()["session_id"], session.as_str());
    again.shutdown("test").await;
}

#[tokio::test]
async fn a_token_that_ends_is_renewed_and_the_session_goes_on() {
    let platform = Reference::with(|options| options.timings.access_token_ttl = Duration::from_secs(3)).await;
    let rig = platform.rig().await;
    let executor = rig.start();
    let session = platform.session().await;
    platform.tool(&session, "write_file", json!({"path": "a", "content": "x"})).await;
    let before = platform.machine(None).await;
    let mut events = executor.subscribe();
    // Both sockets are closed 4401 when their token ends.
    wait_for_state(&mut events, is_connected).await;
    platform.machine(Some(&before)).await;
    assert_eq!(platform.tool(&session, "read_file", json!({"path": "a"})).await["content"], "x");
    assert!(!rig.logged("TOKEN_REFRESHED").is_empty());
    assert!(rig.vault.tokens().unwrap().is_some());
}

#[tokio::test]
async fn no_command_dies_of_a_token_that_ends() {
    let life = Duration::from_secs(8);
    let platform = Reference::with(|options| options.timings.access_token_ttl = life).await;
    let rig = platform.rig().await;
    let tokens = platform.tokens().await;
    rig.sign_in_for(&tokens.access_token, Some(&tokens.refresh_token), life.as_secs_f64());
    let _executor = rig.start();
    let session = platform.session().await;
    // One after the other over three lives, with hardly a pause between them.
    let (began, mut ran) = (tokio::time::Instant::now(), 0);
    while began.elapsed() < 3 * life {
        let answer = platform.answer(&session, "bash_exec", json!({"command": "sleep 1.2; echo on"})).await;
        if answer["ok"] == true {
            assert_eq!(answer["result"]["stdout"], "on\n");
            ran += 1;
        } else {
            assert_eq!(answer["error"]["code"], "SHIM_OVERLOADED", "told to come back in a moment: {answer}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    assert!(ran >= 8, "{ran}");
    let ended = rig.logged("WS_DISCONNECTED");
    assert!(!ended.is_empty());
    assert!(ended.iter().all(|record| !record.to_string().contains("4401")), "{ended:?}");
    assert!(rig.logged("EXECUTE_COMMAND").iter().all(|r| r["result"]["error_code"] != "CANCELLED"));
}

#[tokio::test]
async fn a_refresh_token_that_was_used_twice_cuts_the_machine_off() {
    let nap = nap(303);
    let platform = Reference::start().await;
    let rig = platform.rig().await;
    let stolen = platform.tokens().await;
    // It ends within the minute, so the machine renews it before it dials.
    let mut ending = rig.vault.tokens().unwrap().unwrap();
    ending.access_token = stolen.access_token.clone().into();
    ending.refresh_token = Some(stolen.refresh_token.clone().into());
    ending.expires_at = 0.0;
    rig.vault.store_tokens(&ending).unwrap();
    let executor = rig.start();
    let session = platform.session().await;
    let started = json!({"command": format!("(setsid sleep {nap} >&2 &) ; echo on")});
    platform.tool(&session, "bash_exec", started).await;
    assert_eq!((rig.logged("TOKEN_REFRESHED").len(), running(&nap).is_empty()), (1, false));

    let mut events = executor.subscribe();
    assert_eq!(platform.refresh(&stolen.refresh_token).await, StatusCode::BAD_REQUEST);
    wait_for_state(&mut events, is_halted).await;
    assert_eq!(platform.refused(&session, "read_file", json!({"path": "a"})).await, "MACHINE_OFFLINE");
    until("what ran for the session dies", || running(&nap).is_empty()).await;
    assert!(!rig.logged("SESSION_REVOKED").is_empty());
}

#[tokio::test]
async fn a_second_executor_of_the_same_machine_takes_over_and_gets_no_session_it_was_not_given() {
    let (platform, rig, executor, session) = session().await;
    let mut events = executor.subscribe();
    let second = platform.rig().await;
    std::fs::copy(rig.dirs.state.join("machine_id"), second.dirs.state.join("machine_id")).unwrap();
    let other = second.start();
    let state = wait_for_state(&mut events, is_halted).await;
    assert!(format!("{state:?}").contains("another"), "{state:?}");
    until("the old one has no session", || executor.status().sessions.is_empty()).await;
    let machine = platform.machine(None).await;
    assert_eq!(machine["machine_id"], other.status().machine_id.as_str());
    // The grant is signed with a key that the second one does not have.
    assert_eq!(platform.refused(&session, "read_file", json!({"path": "a"})).await, "ROOT_GRANT_INVALID");
    let own = platform.session().await;
    platform.tool(&own, "write_file", json!({"path": "a", "content": ""})).await;
    assert!(second.root.join("a").exists() && !rig.root.join("a").exists());
}

#[tokio::test]
async fn deleting_a_session_detaches_it_and_ends_what_runs_for_it() {
    let nap = nap(304);
    let (platform, rig, executor, session) = session().await;
    let mut events = executor.subscribe();
    platform
        .tool(&session, "bash_exec", json!({"command": format!("(setsid sleep {nap} >&2 &) ; echo on")}))
        .await;
    assert!(!running(&nap).is_empty(), "the background process outlives its command");
    let (status, _) = platform.call(Method::DELETE, &format!("/api/chat/sessions/{session}"), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    until("the background process dies", || running(&nap).is_empty()).await;
    wait_for(&mut events, |e| matches!(e, Event::SessionClosed { .. })).await;
    assert!(executor.status().sessions.is_empty());
    until("it is logged", || !rig.logged("DETACH_SESSION").is_empty()).await;
    let (status, _) = platform
        .post(&format!("/api/copilot/sessions/{session}/tools/read_file"), json!({"path": "a"}))
        .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    platform.session().await;
}

#[tokio::test]
async fn a_machine_that_is_off_is_said_to_be_and_nothing_runs_elsewhere() {
    let (platform, _rig, executor, session) = session().await;
    executor.command(Command::Disconnect).await.unwrap();
    let presence = platform.get(&format!("/api/copilot/sessions/{session}/executor")).await;
    assert_eq!((&presence["kind"], &presence["reason"]), (&json!("none"), &json!("offline")));
    let answer = platform.answer(&session, "bash_exec", json!({"command": "true"})).await;
    assert_eq!(answer["error"]["code"], "MACHINE_OFFLINE");
    assert!(answer["error"]["message"].as_str().unwrap().contains("not connected"), "{answer}");
    executor.command(Command::Connect).await.unwrap();
    platform.machine(None).await;
    assert_eq!(platform.tool(&session, "bash_exec", json!({"command": "echo on"})).await["stdout"], "on\n");
}

#[tokio::test]
async fn a_paused_machine_stays_connected_and_refuses() {
    let (platform, _rig, executor, session) = session().await;
    executor.command(Command::Pause).await.unwrap();
    let answer = platform.answer(&session, "read_file", json!({"path": "a"})).await;
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["details"]["reason"]),
        (&json!("SHIM_OVERLOADED"), &json!("paused"))
    );
    platform.machine(None).await;
    executor.command(Command::Resume { session_id: None }).await.unwrap();
    assert_eq!(platform.refused(&session, "read_file", json!({"path": "a"})).await, "PATH_NOT_FOUND");
}

#[tokio::test]
async fn the_kill_switch_ends_a_command_and_the_machine_stays_off() {
    let nap = nap(305);
    let (platform, rig, executor, session) = session().await;
    let started = rig.root.join("started");
    let command = format!("trap '' TERM; echo on > started; setsid sleep {nap} & sleep {nap}");
    let call = platform.answer(&session, "bash_exec", json!({"command": command}));
    let kill = async {
        until("the command runs", || started.exists() && running(&nap).len() >= 2).await;
        let switch = executor.kill_switch();
        let took = tokio::task::spawn_blocking(move || switch.throw("test")).await.unwrap().unwrap();
        assert!(took < Duration::from_millis(250), "{took:?}");
        assert_eq!(running(&nap), Vec::<String>::new(), "nothing lives when the switch has reported");
    };
    let (answer, ()) = tokio::join!(call, kill);
    assert_eq!(answer["ok"], false, "{answer}");
    assert_eq!(answer["error"]["code"], "OP_UNCONFIRMED", "{answer}");
    assert_eq!(platform.refused(&session, "read_file", json!({"path": "started"})).await, "MACHINE_OFFLINE");
    assert!(matches!(executor.status().connection, ConnectionState::Off { .. }));
    assert_eq!(rig.logged("KILL_SWITCH").len(), 1);

    executor.shutdown("test").await;
    drop(executor);
    let again = rig.restart().await;
    assert!(!again.connect_unless_off(), "it stays off over a restart");
    again.command(Command::Connect).await.unwrap();
    platform.machine(None).await;
    assert_eq!(platform.tool(&session, "read_file", json!({"path": "started"})).await["content"], "on\n");
}

#[tokio::test]
async fn the_log_of_all_that_verifies() {
    let (platform, rig, executor, session) = session().await;
    platform.tool(&session, "bash_exec", json!({"command": "true"})).await;
    platform.refused(&session, "read_file", json!({"path": "../x"})).await;
    executor.shutdown("test").await;
    let key = audit::AuditKey::new(*rig.vault.audit_key().unwrap());
    let report = audit::verify_file(&rig.dirs.audit_log(), &key);
    assert!(report.is_ok(), "{report}");
    let ops: Vec<_> = rig.log().iter().map(|record| record["op"].as_str().unwrap().to_owned()).collect();
    for op in [
        "SHIM_START",
        "SESSION_ALLOWED_ROOT_SET",
        "ACTIVATE_SESSION",
        "EXECUTE_COMMAND",
        "JAIL_VIOLATION",
        "SHIM_STOP",
    ] {
        assert!(ops.iter().any(|o| o == op), "{op}: {ops:?}");
    }
}
