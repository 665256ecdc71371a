//! The pages, as a browser without script sees them.

use crate::common::{Conn, ROOT, Rig, activated, attached, client};
use reqwest::{StatusCode, header};
use serde_json::{Value, json};

struct Browser<'a> {
    rig: &'a Rig,
    http: reqwest::Client,
}

impl<'a> Browser<'a> {
    async fn signed_in(rig: &'a Rig) -> Self {
        let browser = Self { rig, http: client() };
        let (_, page) = browser.get("/auth/sign-in").await;
        let fields = [
            ("csrf", hidden(&page, "csrf")),
            ("name", "ann".to_owned()),
            ("password", "correct horse".to_owned()),
        ];
        let (status, to) = browser.post("/auth/sign-in", &fields).await;
        assert_eq!((status, to.as_str()), (StatusCode::SEE_OTHER, "/machines"));
        browser
    }

    /// A page; one redirect is followed.
    async fn get(&self, path: &str) -> (StatusCode, String) {
        let mut response = self.http.get(self.rig.at(path)).send().await.unwrap();
        if let Some(to) = response.headers().get(header::LOCATION).cloned() {
            response = self.http.get(self.rig.at(to.to_str().unwrap())).send().await.unwrap();
        }
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let status = response.status();
        let page = response.text().await.unwrap();
        assert!(!page.contains("<script") && !page.contains("style=\""), "nothing inline");
        (status, page)
    }

    /// The answer's status, and where it leads or what it shows.
    async fn post(&self, path: &str, fields: &[(&str, String)]) -> (StatusCode, String) {
        let response = self.http.post(self.rig.at(path)).form(fields).send().await.unwrap();
        let status = response.status();
        match response.headers().get(header::LOCATION).map(|to| to.to_str().unwrap().to_owned()) {
            Some(to) => (status, to),
            None => (status, response.text().await.unwrap()),
        }
    }
}

fn hidden(page: &str, name: &str) -> String {
    let field =
        page.split(&format!(r#"name="{name}" value=""#)).nth(1).unwrap_or_else(|| panic!("{name} in {page}"));
    unescape(field.split('"').next().unwrap())
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

fn link(page: &str, text: &str) -> String {
    let before = page.split(&format!(">{text}</a>")).next().unwrap();
    unescape(before.rsplit("href=\"").next().unwrap().split('"').next().unwrap())
}

fn entry(name: &str) -> Value {
    json!({ "directory_ref": format!("ref-{name}"), "name": name, "path": format!("{ROOT}/{name}") })
}

async fn lists(control: &mut Conn, directory: Option<&str>, entries: &[&str]) {
    let request = control.expect("DIRECTORY_LIST_REQUEST").await;
    assert_eq!(request["payload"]["directory_ref"], json!(directory.map(|name| format!("ref-{name}"))));
    let page = json!({
        "browse_id": "b1", "current": directory.map(entry), "parent_ref": null,
        "entries": entries.iter().map(|name| entry(name)).collect::<Vec<_>>(),
        "next_cursor": null, "truncated": false, "expires_at": 2e9,
    });
    control.reply(&request, "DIRECTORY_LIST_RESPONSE", page).await;
}

#[tokio::test]
async fn pages_need_a_signed_in_browser() {
    let rig = Rig::start().await;
    let browser = Browser { rig: &rig, http: client() };
    for path in ["/machines", "/console", "/machines/m1/folders"] {
        let response = browser.http.get(rig.at(path)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let to = response.headers()[header::LOCATION].to_str().unwrap();
        assert!(to.starts_with("/auth/sign-in?next=%2F"), "{to}");
    }
    let browser = Browser::signed_in(&rig).await;
    let (_, page) = browser.get("/machines").await;
    assert!(page.contains("No machine of yours is connected"));
    let (status, _) = browser.post("/auth/sign-out", &[("csrf", hidden(&page, "csrf"))]).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    let response = browser.http.get(rig.at("/machines")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_person_picks_a_folder_and_calls_a_tool() {
    let rig = Rig::start().await;
    let browser = Browser::signed_in(&rig).await;
    let (mut control, _) = rig.machine("m1").await;
    let (_, page) = browser.get("/machines").await;
    assert!(page.contains("Ann's PC"));
    let start = link(&page, "Choose a folder");
    let ((_, page), ()) = tokio::join!(browser.get(&start), lists(&mut control, None, &["src", "a<b"]));
    assert!(page.contains("a&lt;b") && !page.contains("a<b"), "names of a machine are text");
    assert!(!page.contains("Start a chat session"), "nothing is chosen yet");
    let open = link(&page, "src");
    let ((_, page), ()) = tokio::join!(browser.get(&open), lists(&mut control, Some("src"), &["deep"]));
    let deep = link(&page, "deep");
    let ((_, page), ()) = tokio::join!(browser.get(&deep), lists(&mut control, Some("deep"), &[]));
    assert!(page.contains(r#"aria-current="page""#), "{page}");
    let up = link(&page, "src");
    let ((_, page), ()) = tokio::join!(browser.get(&up), lists(&mut control, Some("src"), &["deep"]));
    assert!(page.contains("Start a chat session in src"));
    let mut fields: Vec<(&str, String)> = ["csrf", "machine", "connection", "browse", "ref"]
        .iter()
        .map(|name| (*name, hidden(&page, name)))
        .collect();
    // The header's form carries the same token.
    assert_eq!(fields[4].1, "ref-src");
    let serve = async {
        let attach = control.expect("ATTACH_SESSION").await;
        assert_eq!(attach["payload"]["directory_ref"], "ref-src");
        let session = attach["payload"]["session_id"].as_str().unwrap().to_owned();
        control.reply(&attach, "SESSION_ATTACHED", attached(&session)).await;
        let activate = control.expect("ACTIVATE_SESSION").await;
        control.reply(&activate, "SESSION_ACTIVATED", activated(&session)).await;
        rig.data(&session, "m1").await
    };
    let ((status, console), mut data) = tokio::join!(browser.post("/sessions", &fields), serve);
    assert_eq!(status, StatusCode::SEE_OTHER);
    let (_, page) = browser.get(&format!("{console}?tool=read_file")).await;
    assert!(page.contains("connected") && page.contains("&quot;path&quot;"), "{page}");
    let call = [
        ("csrf", hidden(&page, "csrf")),
        ("tool", "read_file".to_owned()),
        ("arguments", r#"{"path": "x"}"#.to_owned()),
    ];
    let serve = async {
        let read = data.expect("FILE_READ").await;
        let contents =
            json!({ "content": "PGI+", "encoding": "base64", "size_bytes": 3, "truncated": false });
        data.reply(&read, "FILE_CONTENTS", contents).await;
    };
    let path = format!("{console}/call");
    let ((_, page), ()) = tokio::join!(browser.post(&path, &call), serve);
    assert!(page.contains("<pre>&lt;b&gt;</pre>"), "{page}");
    fields[0].1 = "forged".to_owned();
    assert_eq!(browser.post("/sessions", &fields).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_changed_connection_clears_the_folder_shown() {
    let rig = Rig::start().await;
    let browser = Browser::signed_in(&rig).await;
    let (mut control, _) = rig.machine("m1").await;
    let start = "/machines/m1/folders";
    let ((_, page), ()) = tokio::join!(browser.get(start), lists(&mut control, None, &["src"]));
    let open = link(&page, "src");
    let (_anew, _) = rig.machine("m1").await;
    let (status, page) = browser.get(&open).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(page.contains("nothing was chosen") && !page.contains("Start a chat session"), "{page}");
    assert_eq!(link(&page, "Start again"), start);
}

#[tokio::test]
async fn a_picture_is_shown_after_the_person_approved() {
    let rig = Rig::start().await;
    let browser = Browser::signed_in(&rig).await;
    let mut greeting = crate::common::hello("m1");
    greeting["capabilities"] = json!(["files", "directory_browse", "computer_use"]);
    greeting["computer_use_features_coarse"] = json!(["screenshot"]);
    let mut control = rig.dial("/ws/local-executor").await;
    let ack = control.greet(greeting.clone()).await;
    let (id, _plain) = rig.session(&mut control, "m1", &ack).await;
    greeting["allowed_root"] = json!(ROOT);
    let mut data = rig.dial(&format!("/ws/local-executor/{id}")).await;
    data.greet(greeting).await;
    let console = format!("/console/{id}");
    let (_, page) = browser.get(&console).await;
    assert!(page.contains("undecided"));
    let mut fields: Vec<(&str, String)> =
        ["csrf", "machine", "coarse", "fine"].iter().map(|name| (*name, hidden(&page, name))).collect();
    fields.push(("approved", "yes".to_owned()));
    let (status, _) = browser.post(&format!("{console}/consent"), &fields).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    let call = [
        ("csrf", fields[0].1.clone()),
        ("tool", "local_pc_screenshot".to_owned()),
        ("arguments", "{}".to_owned()),
    ];
    let serve = async {
        let request = data.expect("SCREENSHOT_REQUEST").await;
        let picture = json!({
            "image_base64": "/9j/", "mime_type": "image/jpeg", "width": 2, "height": 1, "monitor": 0, "region": null,
            "display_scale": 1.0, "logical_size": [2, 1], "meta": { "origin": [0, 0], "display_id": "d" },
        });
        data.reply(&request, "SCREENSHOT_RESPONSE", picture).await;
    };
    let path = format!("{console}/call");
    let ((_, page), ()) = tokio::join!(browser.post(&path, &call), serve);
    assert!(page.contains(r#"<img src="data:image/jpeg;base64,/9j/""#), "{page}");
}
