//! A platform on a free port, a client of its routes, and machines that dial it over real sockets.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{SinkExt as _, StreamExt as _};
use platform::{DEFAULT_CLIENT_ID, Platform, PlatformOptions};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Longer than anything here takes; a test that hangs says where.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) const ROOT: &str = "/home/ann/work";

pub(crate) struct Rig {
    pub(crate) platform: Platform,
    pub(crate) http: reqwest::Client,
    pub(crate) access: String,
    pub(crate) refresh: String,
}

/// A client without redirects and with cookies, as a browser that a test can watch.
pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .cookie_store(true)
        .no_proxy()
        .build()
        .unwrap()
}

impl Rig {
    pub(crate) async fn start() -> Rig {
        Rig::with(|_| {}).await
    }

    /// A platform with the user `ann`, who has tokens.
    pub(crate) async fn with(tune: impl FnOnce(&mut PlatformOptions)) -> Rig {
        let mut options = PlatformOptions::default();
        tune(&mut options);
        let platform = Platform::start(options).await.unwrap();
        platform.add_user("ann", "correct horse").await.unwrap();
        let tokens = platform.issue_tokens("ann", DEFAULT_CLIENT_ID).await.unwrap();
        let (access, refresh) = (tokens.access_token, tokens.refresh_token);
        Rig { platform, http: client(), access, refresh }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        self.platform.url().join(path).unwrap().into()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.at(path)).bearer_auth(&self.access)
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        answer(self.request(Method::POST, path).json(&body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (StatusCode, Value) {
        answer(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn tool(&self, session: &str, name: &str, arguments: Value) -> Value {
        let (status, answer) =
            self.post(&format!("/api/copilot/sessions/{session}/tools/{name}"), arguments).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer
    }

    /// Dials with a token; `Err` is the HTTP status of a refused upgrade.
    pub(crate) async fn dial_with(&self, token: &str, path: &str) -> Result<Conn, StatusCode> {
        let mut url = self.platform.url().join(path).unwrap();
        url.set_scheme("ws").unwrap();
        let mut request = url.as_str().into_client_request().unwrap();
        if !token.is_empty() {
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        match timeout(SOON, connect_async(request)).await.unwrap() {
            Ok((socket, response)) => {
                assert!(response.headers().get("sec-websocket-extensions").is_none(), "no compression");
                Ok(Conn { socket })
            }
            Err(WsError::Http(response)) => Err(StatusCode::from_u16(response.status().as_u16()).unwrap()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn dial(&self, path: &str) -> Conn {
        self.dial_with(&self.access, path).await.unwrap()
    }

    /// A machine on its control connection, and what was acknowledged.
    pub(crate) async fn machine(&self, id: &str) -> (Conn, Value) {
        let mut conn = self.dial("/ws/local-executor").await;
        let ack = conn.greet(hello(id)).await;
        (conn, ack)
    }

    pub(crate) async fn data(&self, session: &str, machine: &str) -> Conn {
        let mut conn = self.dial(&format!("/ws/local-executor/{session}")).await;
        let ack = conn.greet(data_hello(machine)).await;
        assert_eq!(ack["session_id"], session);
        conn
    }

    pub(crate) fn target(&self, machine: &str, ack: &Value) -> Value {
        json!({ "execution_target": {
            "kind": "local", "machine_id": machine, "connection_id": ack["connection_id"],
            "browse_id": "browse-1", "directory_ref": "ref-1",
        }})
    }

    /// A session on a machine, made through the whole dance, and its data connection.
    pub(crate) async fn session(&self, control: &mut Conn, machine: &str, ack: &Value) -> (String, Conn) {
        let create = self.post("/api/chat/sessions", self.target(machine, ack));
        let serve = async {
            let attach = control.expect("ATTACH_SESSION").await;
            let session = attach["payload"]["session_id"].as_str().unwrap().to_owned();
            control.reply(&attach, "SESSION_ATTACHED", attached(&session)).await;
            let activate = control.expect("ACTIVATE_SESSION").await;
            assert_eq!(activate["payload"], json!({ "session_id": session, "revision": 1 }));
            control.reply(&activate, "SESSION_ACTIVATED", activated(&session)).await;
            self.data(&session, machine).await
        };
        let ((status, answer), data) = tokio::join!(create, serve);
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        (answer["id"].as_str().unwrap().to_owned(), data)
    }
}

pub(crate) async fn answer(request: RequestBuilder) -> (StatusCode, Value) {
    let response = timeout(SOON, request.send()).await.expect("an answer in time").unwrap();
    let status = response.status();
    let bytes = response.bytes().await.unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::String(text)))
}

pub(crate) fn hello(machine: &str) -> Value {
    json!({
        "shim_version": "0.1.0", "protocol_version": "1.1", "machine_id": machine, "display_name": "Ann's PC",
        "platform": "linux", "arch": "x86_64", "screen_resolution": null,
        "capabilities": ["files", "directory_browse", "shell"], "allowed_root": null,
        "local_llm_models": [], "hardware_devices": [], "computer_use_features": [],
        "computer_use_features_coarse": [], "recording_channels": [], "recording_routes": [],
    })
}

pub(crate) fn data_hello(machine: &str) -> Value {
    let mut hello = hello(machine);
    hello["allowed_root"] = json!(ROOT);
    hello["capabilities"] = json!(["files", "shell"]);
    hello
}

pub(crate) fn attached(session: &str) -> Value {
    json!({
        "session_id": session, "allowed_root": ROOT, "fingerprint": "ab".repeat(32), "revision": 1,
        "root_grant": "v1.Y2xhaW1z.c2ln",
    })
}

pub(crate) fn activated(session: &str) -> Value {
    let mut payload = attached(session);
    payload.as_object_mut().unwrap().remove("root_grant");
    payload
}

/// One socket of a machine.
pub(crate) struct Conn {
    pub(crate) socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Conn {
    pub(crate) async fn send(&mut self, frame: Value) {
        self.send_text(frame.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: String) {
        self.socket.send(Message::Text(text.into())).await.unwrap();
    }

    /// Sends HELLO and returns the acknowledgement's payload.
    pub(crate) async fn greet(&mut self, hello: Value) -> Value {
        self.send(json!({ "type": "HELLO", "id": "h1", "ts": 1.0, "version": "1.1", "payload": hello }))
            .await;
        let ack = self.expect("HELLO_ACK").await;
        assert_eq!(ack["id"], "h1");
        ack["payload"].clone()
    }

    pub(crate) async fn next(&mut self) -> Message {
        timeout(SOON, self.socket.next()).await.expect("a frame in time").expect("an open socket").unwrap()
    }

    pub(crate) async fn recv(&mut self) -> Value {
        match self.next().await {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("not a text frame: {other:?}"),
        }
    }

    pub(crate) async fn expect(&mut self, kind: &str) -> Value {
        let frame = self.recv().await;
        assert_eq!(frame["type"], kind, "{frame}");
        frame
    }

    pub(crate) async fn reply(&mut self, request: &Value, kind: &str, payload: Value) {
        self.reply_with(request, kind, payload, 4).await;
    }

    pub(crate) async fn reply_with(
        &mut self,
        request: &Value,
        kind: &str,
        payload: Value,
        pending_capacity: u32,
    ) {
        let frame = json!({
            "type": kind, "id": request["id"], "ts": 1.0, "version": "1.1",
            "pending_capacity": pending_capacity, "payload": payload,
        });
        self.send(frame).await;
    }

    pub(crate) async fn refuse(&mut self, request: &Value, code: &str, message: &str) {
        let payload = json!({ "code": code, "message": message, "fatal": false });
        self.reply(request, "ERROR", payload).await;
    }

    /// The close frame, and the types of the frames before it.
    pub(crate) async fn closed(&mut self) -> (u16, String, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            match self.next().await {
                Message::Close(Some(frame)) => return (frame.code.into(), frame.reason.to_string(), before),
                Message::Text(text) => before.push(serde_json::from_str(&text).unwrap()),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("not a close frame: {other:?}"),
            }
        }
    }
}

/// The files of a machine, by path below [`ROOT`].
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Serves file requests on a data connection while `work` goes on.
pub(crate) async fn serving<T>(conn: &mut Conn, files: &mut Files, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            message = conn.socket.next() => {
                let Message::Text(text) = message.unwrap().unwrap() else { continue };
                let request: Value = serde_json::from_str(&text).unwrap();
                let (kind, payload) = serve(files, request["type"].as_str().unwrap(), &request["payload"]);
                conn.reply(&request, kind, payload).await;
            }
        }
    }
}

fn serve(files: &mut Files, kind: &str, payload: &Value) -> (&'static str, Value) {
    let asked = payload["path"].as_str().unwrap();
    let full = if asked.starts_with('/') { asked.to_owned() } else { format!("{ROOT}/{asked}") };
    let key = full.strip_prefix(ROOT).unwrap().trim_start_matches('/').to_owned();
    let missing =
        || ("ERROR", json!({ "code": "PATH_NOT_FOUND", "message": format!("there is no '{asked}'") }));
    match kind {
        "FILE_READ" => {
            let Some(bytes) = files.get(&key) else { return missing() };
            assert_eq!(payload["format"], "bytes");
            let from = (payload["offset"].as_u64().unwrap() as usize).min(bytes.len());
            let most = payload["length"].as_u64().unwrap_or(u64::MAX) as usize;
            let to = from.saturating_add(most).min(bytes.len());
            let content = STANDARD.encode(&bytes[from..to]);
            let (size, truncated) = (to - from, to < bytes.len());
            (
                "FILE_CONTENTS",
                json!({
                    "content": content, "encoding": "base64", "size_bytes": size, "truncated": truncated,
                }),
            )
        }
        "FILE_WRITE" => {
            let content = payload["content"].as_str().unwrap();
            let bytes = match payload["encoding"].as_str().unwrap() {
                "base64" => STANDARD.decode(content).unwrap(),
                _ => content.as_bytes().to_vec(),
            };
            files.insert(key, bytes);
            ("ACK", json!({ "ok": true }))
        }
        "FILE_STAT" => {
            let is_file = files.contains_key(&key);
            let is_dir = key.is_empty() || files.keys().any(|file| file.starts_with(&format!("{key}/")));
            (
                "FILE_STAT_RESPONSE",
                json!({
                    "exists": is_file || is_dir, "is_file": is_file, "is_dir": is_dir, "path": full,
                }),
            )
        }
        "FILE_LIST" => {
            let recursive = payload["recursive"].as_bool().unwrap();
            let glob =
                payload["glob"].as_str().map(|glob| globset::Glob::new(glob).unwrap().compile_matcher());
            let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
            let below = files.iter().filter(|(file, _)| file.starts_with(&prefix));
            let entries: Vec<_> = below
                .filter(|(file, _)| recursive || !file[prefix.len()..].contains('/'))
                .map(|(file, bytes)| (file, file.rsplit('/').next().unwrap(), bytes))
                .filter(|(_, name, _)| glob.as_ref().is_none_or(|glob| glob.is_match(name)))
                .map(|(file, name, bytes)| {
                    json!({
                        "name": name, "path": format!("{ROOT}/{file}"), "is_file": true, "is_dir": false,
                        "is_symlink": false, "size_bytes": bytes.len(), "mtime": 1.5,
                    })
                })
                .collect();
            ("FILE_LIST_RESPONSE", json!({ "entries": entries, "truncated": false }))
        }
        other => panic!("{other} is not served"),
    }
}
