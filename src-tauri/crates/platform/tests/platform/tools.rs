//! Tools: what they ask of a machine, what they return, and what an agent is told.

use crate::common::{Conn, Files, ROOT, Rig, serving};
use reqwest::StatusCode;
use serde_json::{Value, json};

fn files(entries: &[(&str, &str)]) -> Files {
    entries.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

async fn session(rig: &Rig) -> (String, Conn, Conn) {
    let (mut control, ack) = rig.machine("m1").await;
    let (id, data) = rig.session(&mut control, "m1", &ack).await;
    (id, control, data)
}

#[tokio::test]
async fn a_file_is_written_read_and_edited() {
    let rig = Rig::start().await;
    let (id, _control, mut data) = session(&rig).await;
    let mut machine = Files::new();
    let mut call = async |name: &str, arguments: Value| {
        serving(&mut data, &mut machine, rig.tool(&id, name, arguments)).await
    };
    let written = call("write_file", json!({ "path": "src/a.txt", "content": "één\ntwo\n" })).await;
    assert_eq!(written["result"], json!({ "written": true, "size_bytes": 10 }));
    let read = call("read_file", json!({ "path": "src/a.txt" })).await;
    assert_eq!(read["result"]["content"], "één\ntwo\n");
    let part = call("read_file", json!({ "path": "src/a.txt", "length": 1 })).await;
    assert_eq!((&part["result"]["truncated"], &part["result"]["next_offset"]), (&json!(true), &json!(1)));
    let edited =
        call("edit_file", json!({ "path": "src/a.txt", "old_string": "two", "new_string": "2" })).await;
    assert_eq!(edited["result"], json!({ "replacements": 1, "size_bytes": 8 }));
    let read = call("read_file", json!({ "path": "src/a.txt", "encoding": "base64" })).await;
    assert_eq!(read["result"]["content"], "w6nDqW4KMgo=");
    let (_, shown) = rig.get(&format!("/api/chat/sessions/{id}")).await;
    let tools: Vec<_> =
        shown["messages"].as_array().unwrap().iter().map(|m| m["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["write_file", "read_file", "read_file", "edit_file", "read_file"]);
    assert!(!shown.to_string().contains("a.txt"), "what was called is kept, not with what");
}

#[tokio::test]
async fn an_edit_of_a_file_that_changes_meanwhile_writes_nothing() {
    let rig = Rig::start().await;
    let (id, _control, mut data) = session(&rig).await;
    let edit = rig.tool(&id, "edit_file", json!({ "path": "a", "old_string": "x", "new_string": "y" }));
    let serve = async {
        for content in ["eA==", "eHg="] {
            let read = data.expect("FILE_READ").await;
            let size = if content == "eA==" { 1 } else { 2 };
            let answer =
                json!({ "content": content, "encoding": "base64", "size_bytes": size, "truncated": false });
            data.reply(&read, "FILE_CONTENTS", answer).await;
        }
    };
    let (edited, ()) = tokio::join!(edit, serve);
    assert_eq!(edited["error"]["code"], "EDIT_CONFLICT");
}

#[tokio::test]
async fn edits_of_one_session_wait_for_each_other() {
    let rig = Rig::start().await;
    let (id, _control, mut data) = session(&rig).await;
    let mut machine = files(&[("n", "0")]);
    let edits = async {
        let edit = |from: &str, to: &str| {
            rig.tool(&id, "edit_file", json!({ "path": "n", "old_string": from, "new_string": to }))
        };
        tokio::join!(edit("0", "01"), edit("0", "02"))
    };
    let (a, b) = serving(&mut data, &mut machine, edits).await;
    assert!(a["ok"] == true && b["ok"] == true, "{a} {b}");
    let end = String::from_utf8(machine["n"].clone()).unwrap();
    assert!(end == "021" || end == "012", "both edits are in: {end}");
}

#[tokio::test]
async fn glob_and_grep_find_what_is_there() {
    let rig = Rig::start().await;
    let (id, _control, mut data) = session(&rig).await;
    let mut machine = files(&[
        ("a.rs", "fn main() {}\n"),
        ("src/b.rs", "// nothing\nfn b() {}\r\n"),
        ("src/deep/c.rs", "struct C;"),
        ("src/d.txt", "fn text"),
        ("bin", "fn\0"),
    ]);
    let mut call = async |name: &str, arguments: Value| {
        serving(&mut data, &mut machine, rig.tool(&id, name, arguments)).await["result"].clone()
    };
    let paths = |found: &Value| -> Vec<String> {
        let matches = found["matches"].as_array().unwrap();
        matches.iter().map(|m| m["path"].as_str().unwrap().to_owned()).collect()
    };
    for (pattern, expected) in [
        ("*.rs", &["a.rs"][..]),
        ("**/*.rs", &["a.rs", "src/b.rs", "src/deep/c.rs"]),
        ("src/*", &["src/b.rs", "src/d.txt"]),
        ("src/**/*.{rs,txt}", &["src/b.rs", "src/d.txt", "src/deep/c.rs"]),
        ("missing/*", &[]),
    ] {
        assert_eq!(paths(&call("glob", json!({ "pattern": pattern })).await), expected, "{pattern}");
    }
    let below = call("glob", json!({ "pattern": "*.rs", "path": "src" })).await;
    assert_eq!(paths(&below), ["src/b.rs"], "relative to the session's folder, ready for the next call");
    let found = call("grep", json!({ "pattern": "^fn \\w+" })).await;
    let hit = |path: &str, line: u32, text: &str| json!({ "path": path, "line": line, "text": text });
    assert_eq!(
        found,
        json!({
            "matches": [hit("a.rs", 1, "fn main() {}"), hit("src/b.rs", 2, "fn b() {}"), hit("src/d.txt", 1, "fn text")],
            "files_searched": 4, "files_skipped": 1, "truncated": false,
        })
    );
    let found =
        call("grep", json!({ "pattern": "FN", "case_insensitive": true, "glob": "*.rs", "max_matches": 1 }))
            .await;
    assert_eq!((paths(&found), &found["truncated"]), (vec!["a.rs".to_owned()], &json!(true)));
    let found = call("grep", json!({ "pattern": "struct", "path": "src/deep/c.rs" })).await;
    assert_eq!(paths(&found), ["src/deep/c.rs"]);
}

#[tokio::test]
async fn a_command_is_passed_on_as_it_is() {
    let rig = Rig::start().await;
    let (id, _control, mut data) = session(&rig).await;
    let call =
        rig.tool(&id, "bash_exec", json!({ "command": "make", "timeout_seconds": 5, "env": { "A": "1" } }));
    let result = json!({
        "stdout": "ok\n", "stderr": "", "exit_code": 0, "timed_out": false, "duration_seconds": 0.5,
        "output_truncated": false,
    });
    let serve = async {
        let request = data.expect("EXECUTE_COMMAND").await;
        let expected = json!({
            "command": "make", "argv": null, "shell": "auto", "cwd": null, "timeout_seconds": 5.0, "env": { "A": "1" },
        });
        assert_eq!(request["payload"], expected);
        data.reply(&request, "COMMAND_RESULT", result.clone()).await;
    };
    let (called, ()) = tokio::join!(call, serve);
    assert_eq!(called["result"], result);
}

#[tokio::test]
async fn an_agent_is_told_base_names_only() {
    let rig = Rig::start().await;
    let (id, _control, mut data) = session(&rig).await;
    let serve = async {
        let request = data.expect("FILE_READ").await;
        let payload = json!({
            "code": "PATH_NOT_FOUND", "message": format!("no file '{ROOT}/secret plans/a.txt'"),
            "details": { "resolved": "/home/ann/elsewhere/a.txt" },
        });
        data.reply(&request, "ERROR", payload).await;
    };
    let (called, ()) =
        tokio::join!(rig.tool(&id, "read_file", json!({ "path": "secret plans/a.txt" })), serve);
    let error = json!({
        "code": "PATH_NOT_FOUND", "message": "no file 'a.txt'", "details": { "resolved": "a.txt" },
    });
    assert_eq!(called, json!({ "tool": "read_file", "ok": false, "error": error }));
}

#[tokio::test]
async fn wrong_arguments_are_told_and_nothing_is_sent() {
    let rig = Rig::start().await;
    let (id, _control, _data) = session(&rig).await;
    for (tool, arguments, word) in [
        ("read_file", json!({}), "path"),
        ("read_file", json!({ "path": "a", "ofset": 1 }), "ofset"),
        ("read_file", json!({ "path": "a", "length": 0 }), "nonzero"),
        ("write_file", json!({ "path": "a", "content": "%", "encoding": "base64" }), "base64"),
        ("edit_file", json!({ "path": "a", "old_string": "", "new_string": "" }), "old_string"),
        ("glob", json!({ "pattern": "../*" }), "'..'"),
        ("grep", json!({ "pattern": "(" }), "pattern"),
        ("grep", json!({ "pattern": "(a{1000}){1000}" }), "pattern"),
        ("bash_exec", json!({}), "exactly one"),
        ("bash_exec", json!({ "command": "a", "argv": ["a"] }), "exactly one"),
        ("bash_exec", json!({ "command": "a", "timeout_seconds": 0 }), "above 0"),
    ] {
        let called = rig.tool(&id, tool, arguments.clone()).await;
        assert_eq!(called["error"]["code"], "INVALID_ARGUMENTS", "{tool} {arguments}: {called}");
        let message = called["error"]["message"].as_str().unwrap();
        assert!(message.contains(word), "{tool} {arguments}: {message}");
    }
    let path = format!("/api/copilot/sessions/{id}/tools/format_disk");
    assert_eq!(rig.post(&path, json!({})).await.0, StatusCode::NOT_FOUND);
}

/// A machine that shows its screen and lets itself be clicked, but not typed into.
async fn with_screen(rig: &Rig) -> (String, Conn, Conn) {
    let mut greeting = crate::common::hello("m1");
    greeting["capabilities"] = json!(["files", "directory_browse", "computer_use"]);
    greeting["computer_use_features"] = json!(["input.click", "screenshot.region"]);
    greeting["computer_use_features_coarse"] = json!(["screenshot", "input"]);
    let mut control = rig.dial("/ws/local-executor").await;
    let ack = control.greet(greeting.clone()).await;
    let (id, _plain) = rig.session(&mut control, "m1", &ack).await;
    greeting["capabilities"] = json!(["files", "computer_use"]);
    greeting["allowed_root"] = json!(ROOT);
    let mut data = rig.dial(&format!("/ws/local-executor/{id}")).await;
    data.greet(greeting).await;
    (id, control, data)
}

fn consent(approved: bool, features: &[&str]) -> Value {
    json!({
        "approved": approved, "expected_machine_id": "m1",
        "expected_features_coarse": ["input", "screenshot"], "expected_features": features,
    })
}

#[tokio::test]
async fn computer_use_needs_consent_for_this_machine_and_these_features() {
    let rig = Rig::start().await;
    let (id, _control, mut data) = with_screen(&rig).await;
    let path = format!("/api/copilot/sessions/{id}/executor/consent");
    let click = json!({ "x": 5, "y": 6 });
    let code = async |called: Value| called["error"]["code"].as_str().unwrap_or("none").to_owned();
    assert_eq!(code(rig.tool(&id, "local_pc_click", click.clone()).await).await, "CONSENT_REQUIRED");
    let (status, body) = rig.post(&path, consent(true, &["input.click"])).await;
    assert_eq!((status, &body["error"]), (StatusCode::CONFLICT, &json!("features_changed")));
    let features = ["screenshot.region", "input.click"];
    assert_eq!(rig.post(&path, consent(true, &features)).await.0, StatusCode::OK);
    let serve = async {
        let request = data.expect("INPUT_ACTION").await;
        assert_eq!(request["payload"]["action"], "left_click");
        assert_eq!(request["payload"]["coordinate"], json!([5, 6]));
        data.reply(&request, "ACK", json!({ "ok": true, "effect": "confirmed" })).await;
    };
    let (clicked, ()) = tokio::join!(rig.tool(&id, "local_pc_click", click.clone()), serve);
    assert_eq!(clicked["result"], json!({ "ok": true, "effect": "confirmed" }));
    assert_eq!(rig.post(&path, consent(false, &features)).await.0, StatusCode::OK);
    assert_eq!(code(rig.tool(&id, "local_pc_click", click).await).await, "CONSENT_REQUIRED", "withdrawn");
}

#[tokio::test]
async fn a_tool_needs_its_own_feature() {
    let rig = Rig::start().await;
    let (id, _control, mut data) = with_screen(&rig).await;
    let path = format!("/api/copilot/sessions/{id}/executor/consent");
    rig.post(&path, consent(true, &["input.click", "screenshot.region"])).await;
    for (tool, arguments) in [
        ("local_pc_type", json!({ "text": "x" })),
        ("local_pc_key", json!({ "key": "enter" })),
        ("local_pc_click", json!({ "x": 1, "y": 1, "modifiers": ["ctrl"] })),
        ("local_pc_screenshot", json!({ "window_id": "win_1" })),
        ("local_pc_list_windows", json!({})),
        ("local_pc_clipboard_read", json!({})),
        ("bash_exec", json!({ "command": "ls" })),
    ] {
        let called = rig.tool(&id, tool, arguments).await;
        assert_eq!(called["error"]["code"], "CAPABILITY_NOT_GRANTED", "{tool}: {called}");
    }
    let (_, offered) = rig.get(&format!("/api/copilot/sessions/{id}/tools")).await;
    let names: Vec<_> =
        offered["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    let expected = [
        "read_file",
        "write_file",
        "edit_file",
        "glob",
        "grep",
        "local_pc_screenshot",
        "local_pc_click",
        "local_pc_list_machines",
    ];
    assert_eq!(names, expected);
    let picture = json!({
        "image_base64": "/9j/", "mime_type": "image/jpeg", "width": 2, "height": 1, "monitor": 0, "region": [0, 0, 2, 1],
        "display_scale": 1.0, "logical_size": [2, 1], "meta": { "origin": [0, 0], "display_id": "d" },
    });
    let serve = async {
        let request = data.expect("SCREENSHOT_REQUEST").await;
        assert_eq!(request["payload"]["region"], json!([0, 0, 2, 1]));
        data.reply(&request, "SCREENSHOT_RESPONSE", picture.clone()).await;
    };
    let (shot, ()) =
        tokio::join!(rig.tool(&id, "local_pc_screenshot", json!({ "region": [0, 0, 2, 1] })), serve);
    assert_eq!(shot["result"], picture);
    let machines = rig.tool(&id, "local_pc_list_machines", json!({})).await;
    assert_eq!(machines["result"]["machines"][0]["machine_id"], "m1");
}
