//! The tools over MCP: the same table, the same refusals, and a token for every request.

use crate::common::{Conn, Files, Rig, answer, serving};
use reqwest::{StatusCode, header};
use serde_json::{Value, json};

async fn ask(rig: &Rig, path: &str, method: &str, params: Value) -> (StatusCode, Value) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = rig
        .http
        .post(rig.at(path))
        .bearer_auth(&rig.access)
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18")
        .json(&body);
    answer(request).await
}

async fn tool(rig: &Rig, path: &str, name: &str, arguments: Value) -> Value {
    let (status, body) = ask(rig, path, "tools/call", json!({ "name": name, "arguments": arguments })).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    body["result"].clone()
}

async fn session(rig: &Rig) -> (String, Conn, Conn) {
    let (mut control, ack) = rig.machine("m1").await;
    let (id, data) = rig.session(&mut control, "m1", &ack).await;
    (id, control, data)
}

#[tokio::test]
async fn a_client_learns_where_to_get_a_token() {
    let rig = Rig::start().await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let response = rig.http.post(rig.at("/mcp")).json(&body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let told = response.headers()[header::WWW_AUTHENTICATE].to_str().unwrap().to_owned();
    let url = told.split('"').nth(1).unwrap();
    let (_, resource) = answer(rig.http.get(url)).await;
    assert_eq!(resource["resource"], rig.at("/mcp"));
    let server = resource["authorization_servers"][0].as_str().unwrap();
    let (_, server) = answer(rig.http.get(format!("{server}/.well-known/oauth-authorization-server"))).await;
    assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(server["token_endpoint"], rig.at("/api/oauth/token"));
}

#[tokio::test]
async fn a_client_initialises_and_lists_the_tools() {
    let rig = Rig::start().await;
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let (status, body) = ask(&rig, "/mcp", "initialize", params).await;
    assert_eq!(
        (status, &body["result"]["serverInfo"]["name"]),
        (StatusCode::OK, &json!("deskhand-platform")),
        "{body}"
    );
    let (_, body) = ask(&rig, "/mcp", "tools/list", json!({})).await;
    let tools = body["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 19);
    let read = tools.iter().find(|tool| tool["name"] == "read_file").unwrap();
    assert_eq!(read["inputSchema"]["required"], json!(["path", "session_id"]));
    let (id, _control, _data) = session(&rig).await;
    let (_, body) = ask(&rig, &format!("/mcp?session={id}"), "tools/list", json!({})).await;
    let names: Vec<_> =
        body["result"]["tools"].as_array().unwrap().iter().map(|t| t["name"].clone()).collect();
    let expected =
        ["read_file", "write_file", "edit_file", "glob", "grep", "bash_exec", "local_pc_list_machines"];
    assert_eq!(names, expected, "what is not granted is not listed");
}

#[tokio::test]
async fn a_call_runs_on_the_sessions_machine() {
    let rig = Rig::start().await;
    let (id, _control, mut data) = session(&rig).await;
    let mut files = Files::from([("a.txt".to_owned(), b"hello".to_vec())]);
    let arguments = json!({ "path": "a.txt", "session_id": id });
    let read = serving(&mut data, &mut files, tool(&rig, "/mcp", "read_file", arguments)).await;
    assert_eq!((&read["isError"], &read["structuredContent"]["content"]), (&json!(false), &json!("hello")));
    let bound = format!("/mcp?session={id}");
    let missing = tool(&rig, &bound, "read_file", json!({ "path": "b.txt" }));
    let missing = serving(&mut data, &mut files, missing).await;
    assert_eq!(
        (&missing["isError"], &missing["structuredContent"]["code"]),
        (&json!(true), &json!("PATH_NOT_FOUND"))
    );
    let machines = tool(&rig, "/mcp", "local_pc_list_machines", json!({})).await;
    assert_eq!(machines["structuredContent"]["sessions"][0]["session_id"], id);
    assert_eq!(machines["structuredContent"]["machines"][0]["machine_id"], "m1");
}

#[tokio::test]
async fn a_call_without_its_session_goes_nowhere() {
    let rig = Rig::start().await;
    let (id, _control, _data) = session(&rig).await;
    for (path, arguments) in [
        ("/mcp".to_owned(), json!({ "path": "a" })),
        ("/mcp".to_owned(), json!({ "path": "a", "session_id": "another" })),
        (format!("/mcp?session={id}"), json!({ "path": "a", "session_id": "another" })),
        ("/mcp?session=another".to_owned(), json!({ "path": "a" })),
    ] {
        let called = tool(&rig, &path, "read_file", arguments).await;
        assert_eq!(called["isError"], true, "{called}");
    }
    let (_, unknown) =
        ask(&rig, "/mcp", "tools/call", json!({ "name": "format_disk", "arguments": {} })).await;
    assert!(unknown["error"].is_object(), "{unknown}");
    rig.platform.add_user("eve", "battery staple").await.unwrap();
    let eve = rig.platform.issue_tokens("eve", platform::DEFAULT_CLIENT_ID).await.unwrap();
    let rig = Rig { access: eve.access_token, ..rig };
    let called = tool(&rig, "/mcp", "read_file", json!({ "path": "a", "session_id": id })).await;
    assert_eq!(called["structuredContent"]["code"], "not_found", "hers are not his");
}
