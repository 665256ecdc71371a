//! Requests on a session, end to end: files behind the jail, commands, what is refused and how.

use serde_json::{Value, json};
use system_tests::rig::{Rig, running, until};
use system_tests::scripted::{Peer, Scripted};

async fn session(rig_with: &str) -> (Rig, executor::Executor, Peer, Peer) {
    let platform = Scripted::start().await;
    let rig = Rig::with(&platform.url, rig_with);
    let executor = rig.start();
    let (control, data) = platform.session("s1").await;
    (rig, executor, control, data)
}

#[tokio::test]
async fn files_are_written_read_listed_moved_and_deleted() {
    let (rig, _executor, _control, mut data) = session("").await;
    let write = json!({"path": "a/b.txt", "content": "héllo\r\n", "create_parents": true});
    assert_eq!(data.request("FILE_WRITE", write).await.kind, "ACK");
    assert_eq!(std::fs::read_to_string(rig.root.join("a/b.txt")).unwrap(), "héllo\r\n");

    let read = data.request("FILE_READ", json!({"path": "a/b.txt"})).await;
    assert_eq!(
        read.payload,
        json!({"content": "héllo\r\n", "encoding": "utf-8", "size_bytes": 8, "truncated": false})
    );
    let read = data
        .request("FILE_READ", json!({"path": "a/b.txt", "format": "bytes", "offset": 1, "length": 2}))
        .await;
    assert_eq!(
        read.payload,
        json!({"content": "w6k=", "encoding": "base64", "size_bytes": 2, "truncated": true})
    );

    let stat = data.request("FILE_STAT", json!({"path": "a/b.txt"})).await.payload;
    assert_eq!(
        (&stat["exists"], &stat["size_bytes"], &stat["mime_type"]),
        (&json!(true), &json!(8), &json!("text/plain"))
    );
    let gone = data.request("FILE_STAT", json!({"path": "a/none"})).await.payload;
    assert_eq!((&gone["exists"], &gone["is_file"]), (&json!(false), &Value::Null));

    let list = data.request("FILE_LIST", json!({"path": ".", "recursive": true})).await.payload;
    let names: Vec<_> =
        list["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!((names, &list["truncated"]), (vec!["a", "b.txt"], &json!(false)));

    assert_eq!(data.request("FILE_MOVE", json!({"src": "a/b.txt", "dst": "c.txt"})).await.kind, "ACK");
    assert_eq!(data.request("FILE_DELETE", json!({"path": "c.txt"})).await.kind, "ACK");
    assert!(!rig.root.join("c.txt").exists());
    for op in ["FILE_WRITE", "FILE_READ", "FILE_STAT", "FILE_LIST", "FILE_MOVE", "FILE_DELETE"] {
        assert!(!rig.logged(op).is_empty(), "{op} is logged");
    }
    let written = &rig.logged("FILE_WRITE")[0];
    assert_eq!(written["details"]["size_bytes_written"], 8);
    assert!(!written.to_string().contains("llo"), "the log has no contents");
}

#[tokio::test]
async fn nothing_leaves_the_root_and_each_attempt_is_named_in_the_log() {
    let (rig, _executor, _control, mut data) = session("").await;
    let secret = rig.outside().join("secret");
    std::fs::write(&secret, "s").unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&secret, rig.root.join("link")).unwrap();
        std::os::unix::fs::symlink(rig.outside().join("new"), rig.root.join("dangling")).unwrap();
    }
    let attempts = [
        ("FILE_READ", json!({"path": "../secret"})),
        ("FILE_READ", json!({"path": secret})),
        ("FILE_READ", json!({"path": "link"})),
        ("FILE_STAT", json!({"path": "link"})),
        ("FILE_STAT", json!({"path": "../nothing"})),
        ("FILE_WRITE", json!({"path": "dangling", "content": "x"})),
        ("FILE_WRITE", json!({"path": "nope/../../x", "content": "x", "create_parents": true})),
        ("FILE_LIST", json!({"path": ".."})),
        ("FILE_DELETE", json!({"path": "."})),
        ("FILE_DELETE", json!({"path": "..", "recursive": true})),
        ("FILE_MOVE", json!({"src": "../secret", "dst": "mine"})),
        ("FILE_MOVE", json!({"src": ".", "dst": "mine"})),
        ("EXECUTE_COMMAND", json!({"command": "true", "cwd": ".."})),
        ("FILE_READ", json!({"path": rig.dirs.config_file()})),
        ("FILE_READ", json!({"path": "/etc/passwd"})),
    ];
    let count = attempts.len();
    for (kind, payload) in attempts {
        let answer = data.request(kind, payload.clone()).await;
        assert_eq!(answer.payload["code"], "PATH_OUTSIDE_ALLOWED_ROOT", "{kind} {payload}: {answer:?}");
        let message = answer.payload["message"].as_str().unwrap();
        let asked = payload.to_string();
        assert!(asked.contains("secret") || !message.contains("secret"), "{message}");
    }
    assert!(secret.exists() && !rig.outside().join("x").exists() && !rig.outside().join("new").exists());
    assert_eq!(rig.logged("JAIL_VIOLATION").len(), count);
}

#[tokio::test]
async fn a_command_runs_in_a_clean_environment_and_its_result_says_how_it_went() {
    let (rig, _executor, _control, mut data) = session("").await;
    let run = json!({"command": "pwd; echo err >&2; cat; echo \"$X\"; exit 3", "env": {"X": "y"}});
    let result = data.request("EXECUTE_COMMAND", run).await.payload;
    assert_eq!(result["stdout"], format!("{}\ny\n", rig.root.display()));
    assert_eq!(
        (&result["stderr"], &result["exit_code"], &result["timed_out"]),
        (&json!("err\n"), &json!(3), &json!(false))
    );
    let env = data.request("EXECUTE_COMMAND", json!({"argv": ["env"]})).await.payload;
    assert!(!env["stdout"].as_str().unwrap().contains("CARGO"), "nothing of ours is inherited");

    assert_eq!(rig.logged("COMMAND_STARTED").len(), 2, "written before it runs: it could end this program");
    let record = &rig.logged("EXECUTE_COMMAND")[0];
    assert_eq!((&record["details"]["env_keys"], &record["result"]["exit_code"]), (&json!(["X"]), &json!(3)));
    assert!(!record["details"].to_string().contains("\"y\""), "values of variables are not logged");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_its_whole_tree() {
    let (rig, _executor, _control, mut data) = session("command_timeout_seconds = 1\n").await;
    let command =
        "trap '' TERM; echo started; (setsid sh -c 'trap \"\" TERM; sleep 300.25' &) ; sleep 300.25";
    let result = data.request("EXECUTE_COMMAND", json!({"command": command})).await.payload;
    assert_eq!((&result["timed_out"], &result["exit_code"]), (&json!(true), &json!(-1)));
    assert_eq!(result["stdout"], "started\n");
    until("the setsid child dies", || running("300.25").is_empty()).await;
    assert_eq!(rig.logged("EXECUTE_COMMAND")[0]["result"]["timed_out"], true);
}

#[tokio::test]
async fn a_cut_connection_kills_what_runs_on_it_and_the_log_says_cancelled() {
    let (rig, _executor, _control, mut data) = session("").await;
    data.send("EXECUTE_COMMAND", json!({"command": "echo on > started; setsid sleep 301.25 & sleep 301.25"}))
        .await;
    until("the command starts", || rig.root.join("started").exists()).await;
    drop(data);
    until("everything dies", || running("301.25").is_empty()).await;
    until("it is logged", || !rig.logged("EXECUTE_COMMAND").is_empty()).await;
    assert_eq!(rig.logged("EXECUTE_COMMAND")[0]["result"]["error_code"], "CANCELLED");
}

#[tokio::test]
async fn a_background_process_does_not_hold_the_answer_and_dies_with_its_session() {
    let (_rig, executor, mut control, mut data) = session("").await;
    let result =
        data.request("EXECUTE_COMMAND", json!({"command": "sleep 302.25 & echo done"})).await.payload;
    assert_eq!((&result["stdout"], &result["exit_code"]), (&json!("done\n"), &json!(0)));
    let report = executor.status();
    assert!(report.sessions[0].background.iter().any(|b| b.contains("sleep")), "{report:?}");
    assert_eq!(control.request("DETACH_SESSION", json!({"session_id": "s1"})).await.kind, "ACK");
    assert!(running("302.25").is_empty());
}

#[tokio::test]
async fn what_cannot_be_served_says_why() {
    let (_rig, _executor, mut control, mut data) = session("").await;
    for (kind, payload, code, detail) in [
        ("FILE_READ", json!({}), "INTERNAL_ERROR", "field"),
        ("FILE_READ", json!({"path": 7}), "INTERNAL_ERROR", "field"),
        ("FILE_READ", json!({"path": "."}), "INTERNAL_ERROR", "kind"),
        ("FILE_READ", json!({"path": "none"}), "PATH_NOT_FOUND", ""),
        ("FILE_READ", json!({"path": "a\u{0}b"}), "PATH_INVALID_CHARS", ""),
        ("FILE_READ", json!({"path": "x/".repeat(4000)}), "PATH_INVALID_CHARS", ""),
        ("FILE_WRITE", json!({"path": "f", "content": "*", "encoding": "base64"}), "INTERNAL_ERROR", "field"),
        ("FILE_LIST", json!({"path": ".", "glob": "["}), "INTERNAL_ERROR", "field"),
        ("EXECUTE_COMMAND", json!({}), "INTERNAL_ERROR", "field"),
        ("EXECUTE_COMMAND", json!({"command": "a", "argv": ["b"]}), "INTERNAL_ERROR", "field"),
        ("EXECUTE_COMMAND", json!({"argv": []}), "INTERNAL_ERROR", "field"),
        ("EXECUTE_COMMAND", json!({"command": "a", "timeout_seconds": 0}), "INTERNAL_ERROR", "field"),
        ("EXECUTE_COMMAND", json!({"argv": ["no-such-program"]}), "SHELL_NOT_AVAILABLE", "program"),
        (
            "EXECUTE_COMMAND",
            json!({"command": "a", "shell": "powershell"}),
            "SHELL_NOT_AVAILABLE",
            "requested_shell",
        ),
        ("EXECUTE_COMMAND", json!({"command": "a", "cwd": "none"}), "PATH_NOT_FOUND", ""),
        ("SCREENSHOT_REQUEST", json!({}), "FEATURE_NOT_SUPPORTED", "reason"),
        ("LOCAL_LLM_COMPLETION", json!({}), "FEATURE_NOT_SUPPORTED", "reason"),
        ("START_RECORDING", json!({}), "FEATURE_NOT_SUPPORTED", "reason"),
        ("ATTACH_SESSION", json!({}), "FEATURE_NOT_SUPPORTED", "reason"),
        ("NO_SUCH_TYPE", json!({}), "FEATURE_NOT_SUPPORTED", "reason"),
    ] {
        let error = data.request(kind, payload.clone()).await;
        assert_eq!(
            (error.kind.as_str(), &error.payload["code"]),
            ("ERROR", &json!(code)),
            "{kind} {payload} {error:?}"
        );
        assert!(detail.is_empty() || !error.payload["details"][detail].is_null(), "{kind} {error:?}");
        assert!(error.pending_capacity.is_some());
    }
    assert_eq!(
        control.request("FILE_READ", json!({"path": "a"})).await.payload["code"],
        "FEATURE_NOT_SUPPORTED"
    );
    assert_eq!(
        data.request("FILE_STAT", json!({"path": "."})).await.payload["exists"],
        true,
        "it goes on serving"
    );
}

#[tokio::test]
async fn a_capability_that_was_not_granted_is_refused_with_what_was() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let _executor = rig.start();
    let mut control = platform.control().await;
    control.attach("s1").await;
    control.send("ACTIVATE_SESSION", json!({"session_id": "s1", "revision": 1})).await;
    let mut data = platform.accept().await;
    data.welcome(json!({"session_id": "s1", "granted_capabilities": ["files"]})).await;
    let error = data.request("EXECUTE_COMMAND", json!({"command": "true"})).await.payload;
    assert_eq!(error["code"], "CAPABILITY_NOT_GRANTED");
    assert_eq!(error["details"], json!({"required_capability": "shell", "granted_capabilities": ["files"]}));
}

#[tokio::test]
async fn limits_of_size_hold_whatever_is_asked() {
    let (rig, _executor, _control, mut data) = session("max_file_size_bytes = 1000\n").await;
    std::fs::write(rig.root.join("big"), vec![b'x'; 5000]).unwrap();
    let error = data.request("FILE_READ", json!({"path": "big"})).await.payload;
    assert_eq!(error["details"], json!({"max_file_size_bytes": 1000, "attempted_bytes": 5000, "op": "read"}));
    let part =
        data.request("FILE_READ", json!({"path": "big", "offset": 4500, "length": 1000})).await.payload;
    assert_eq!((&part["size_bytes"], &part["truncated"]), (&json!(500), &json!(false)));
    let error = data.request("FILE_WRITE", json!({"path": "new", "content": "y".repeat(1001)})).await.payload;
    assert_eq!((&error["code"], &error["details"]["op"]), (&json!("FILE_TOO_LARGE"), &json!("write")));
    assert!(!rig.root.join("new").exists());
    let result = data
        .request("EXECUTE_COMMAND", json!({"command": "head -c 100000 /dev/zero | tr '\\0' z; echo E >&2"}))
        .await
        .payload;
    assert_eq!(result["output_truncated"], true);
    let total = result["stdout"].as_str().unwrap().len() + result["stderr"].as_str().unwrap().len();
    assert!(total <= 1000, "{total}");
    assert!(result["stderr"].as_str().unwrap().ends_with("[command output truncated]"));
}

#[tokio::test]
async fn commands_have_a_rate_and_say_when_to_come_back() {
    let platform = Scripted::start().await;
    let mut rig = Rig::new(&platform.url);
    rig.config.rates.commands_per_minute = 3;
    let _executor = rig.start();
    let (_control, mut data) = platform.session("s1").await;
    for _ in 0..3 {
        assert_eq!(data.request("EXECUTE_COMMAND", json!({"argv": ["true"]})).await.kind, "COMMAND_RESULT");
    }
    let error = data.request("EXECUTE_COMMAND", json!({"argv": ["true"]})).await.payload;
    assert_eq!(error["code"], "SHIM_OVERLOADED");
    assert!(error["details"]["retry_after_seconds"].as_u64().unwrap() > 0);
    assert_eq!(rig.logged("EXECUTE_COMMAND").len(), 4, "the refused one is logged too");
}
