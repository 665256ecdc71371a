//! A platform's token endpoints, as small as HTTP allows, that can misbehave.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use url::Url;

pub(super) type Form = BTreeMap<String, String>;

#[derive(Clone)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) form: Form,
}

pub(super) enum Answer {
    Json(u16, Value),
    /// The whole response.
    Raw(Vec<u8>),
    /// The connection is held open and nothing is said.
    Silence,
    /// The connection is closed.
    Hangup,
    /// Once the test adds a permit.
    After(Arc<Semaphore>, Box<Answer>),
}

/// The usual good answer.
pub(super) fn tokens(access: &str, refresh: Option<&str>) -> Answer {
    let mut body =
        json!({"access_token": access, "token_type": "Bearer", "expires_in": 3600, "scope": "USE_TOOLS"});
    if let Some(refresh) = refresh {
        body["refresh_token"] = refresh.into();
    }
    Answer::Json(200, body)
}

/// A name and an answer.
pub(super) type Fault = (&'static str, fn() -> Answer);

/// What a platform may do wrong with a request for tokens, by name.
pub(super) fn faults() -> Vec<Fault> {
    vec![
        ("500", || Answer::Json(500, json!({"detail": "boom"}))),
        ("429", || Answer::Json(429, json!({}))),
        ("garbage", || Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"access_".to_vec())),
        ("no HTTP", || Answer::Raw(b"hello\r\n\r\n".to_vec())),
        ("cut off", || Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{".to_vec())),
        ("hangup", || Answer::Hangup),
        ("huge", || {
            let body = vec![b' '; 10 << 20];
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            Answer::Raw([head.into_bytes(), body].concat())
        }),
        ("elsewhere", || {
            Answer::Raw(b"HTTP/1.1 307 Go\r\nLocation: /stolen\r\nContent-Length: 0\r\n\r\n".to_vec())
        }),
        ("no token", || Answer::Json(200, json!({"token_type": "Bearer"}))),
        ("null token", || Answer::Json(200, json!({"access_token": null}))),
        ("empty token", || tokens("", Some("r"))),
        ("token with a header in it", || tokens("a\r\nX: y", Some("r"))),
        ("other type", || Answer::Json(200, json!({"access_token": "a", "token_type": "mac"}))),
        ("negative life", || Answer::Json(200, json!({"access_token": "a", "expires_in": -1}))),
    ]
}

pub(super) struct Platform {
    pub(super) base: Url,
    requests: Arc<Mutex<Vec<Request>>>,
    count: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Platform {
    pub(super) async fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (counted, count) = watch::channel(0);
        let (answer, seen) = (Arc::new(answer), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            let counted = Arc::new(counted);
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, seen, counted) = (Arc::clone(&answer), Arc::clone(&seen), Arc::clone(&counted));
                tokio::spawn(async move {
                    let mut stream = stream;
                    let Some(request) = read(&mut stream).await else { return };
                    seen.lock().unwrap().push(request.clone());
                    counted.send_modify(|count| *count += 1);
                    respond(&mut stream, answer(&request)).await;
                });
            }
        });
        Self { base, requests, count, task }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(super) async fn wait_for_requests(&self, wanted: usize) {
        self.count.clone().wait_for(|count| *count >= wanted).await.unwrap();
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap().to_lowercase();
    assert!(head.contains("content-type: application/x-www-form-urlencoded"), "{head}");
    let length: usize = head.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    while bytes.len() < head_end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let form = url::form_urlencoded::parse(&bytes[head_end..]).into_owned().collect();
    let path = head.strip_prefix("post ").expect("a POST").split(' ').next()?.to_owned();
    Some(Request { path, form })
}

async fn respond(stream: &mut TcpStream, mut answer: Answer) {
    while let Answer::After(gate, then) = answer {
        gate.acquire().await.unwrap().forget();
        answer = *then;
    }
    let bytes = match answer {
        Answer::Json(status, body) => {
            let body = body.to_string();
            format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
        }
        Answer::Raw(bytes) => bytes,
        Answer::Hangup | Answer::After(..) => return,
        Answer::Silence => {
            // Until the other side gives up.
            let _ = stream.read_u8().await;
            return;
        }
    };
    // A client that had enough hangs up in the middle.
    let _ = stream.write_all(&bytes).await;
}
