//! A platform that says exactly what a test tells it to. It shares the `protocol` crate with the executor and nothing else,
//! and mostly writes its frames by hand.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use protocol::{Frame, MessageType};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};

use crate::rig::PATIENCE;

/// Listens for executors.
pub struct Scripted {
    listener: TcpListener,
    /// Its address for `platform_url`.
    pub url: String,
}

/// One upgraded connection.
pub struct Peer {
    socket: WebSocketStream<TcpStream>,
    /// The path it was opened on.
    pub path: String,
    /// Its `Authorization` header.
    pub authorization: String,
    next_id: u64,
}

/// What an executor sent.
#[derive(Debug, Clone)]
pub struct Received {
    /// The message type.
    pub kind: String,
    /// The envelope id.
    pub id: String,
    /// Free slots.
    pub pending_capacity: Option<u32>,
    /// The payload.
    pub payload: Value,
}

/// What ended a connection, as the platform sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With a close frame.
    Closed(u16, String),
    /// Without one.
    Cut,
}

impl Scripted {
    /// Listens on a free port of the loopback.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        Self { listener, url }
    }

    async fn tcp(&self) -> TcpStream {
        let (stream, _) = within(self.listener.accept()).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        stream
    }

    /// The next connection, upgraded.
    ///
    /// # Panics
    ///
    /// When none comes.
    #[expect(clippy::result_large_err, reason = "the callback's type is the library's")]
    pub async fn accept(&self) -> Peer {
        let stream = self.tcp().await;
        let (mut path, mut authorization) = (String::new(), String::new());
        let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
            path = request.uri().path().to_owned();
            let header = request.headers().get("authorization");
            authorization = header.and_then(|h| h.to_str().ok()).unwrap_or_default().to_owned();
            Ok(response)
        };
        let config =
            WebSocketConfig::default().max_message_size(Some(64 << 20)).max_frame_size(Some(64 << 20));
        let upgraded = tokio_tungstenite::accept_hdr_async_with_config(stream, look, Some(config));
        let socket = within(upgraded).await.expect("an upgrade");
        Peer { socket, path, authorization, next_id: 0 }
    }

    /// Answers the next upgrade with an HTTP status instead. Returns its `Authorization` header.
    ///
    /// # Panics
    ///
    /// When none comes.
    #[expect(clippy::result_large_err, reason = "the callback's type is the library's")]
    pub async fn refuse(&self, status: u16) -> String {
        let stream = self.tcp().await;
        let mut authorization = String::new();
        let refuse = |request: &Request, _: Response| -> Result<Response, ErrorResponse> {
            let header = request.headers().get("authorization");
            authorization = header.and_then(|h| h.to_str().ok()).unwrap_or_default().to_owned();
            let mut response = ErrorResponse::new(None);
            *response.status_mut() = StatusCode::from_u16(status).expect("a status");
            Err(response)
        };
        drop(within(tokio_tungstenite::accept_hdr_async(stream, refuse)).await);
        authorization
    }

    /// Answers one HTTP request with a JSON body. Returns the request's text.
    ///
    /// # Panics
    ///
    /// When none comes.
    pub async fn http(&self, status: u16, body: &Value) -> String {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = self.tcp().await;
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let n = within(stream.read(&mut buffer)).await.expect("a request");
            request.extend_from_slice(&buffer[..n]);
            let text = String::from_utf8_lossy(&request);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head
                    .lines()
                    .find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
                if n == 0 || body.len() >= length.unwrap_or(0) {
                    break;
                }
            }
        }
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await.expect("an answer");
        String::from_utf8_lossy(&request).into_owned()
    }

    /// A control connection after a good handshake.
    pub async fn control(&self) -> Peer {
        let mut peer = self.accept().await;
        peer.welcome(json!({})).await;
        peer
    }

    /// A control connection, and the data connection of a session attached to the executor's first root.
    pub async fn session(&self, id: &str) -> (Peer, Peer) {
        let mut control = self.control().await;
        let data = self.open(&mut control, id).await;
        (control, data)
    }

    /// Attaches and activates a session on the first root; its data connection.
    ///
    /// # Panics
    ///
    /// When the executor refuses.
    pub async fn open(&self, control: &mut Peer, id: &str) -> Peer {
        let attached = control.attach(id).await;
        assert_eq!(attached.kind, "SESSION_ATTACHED", "{attached:?}");
        let revision = attached.payload["revision"].clone();
        control.send("ACTIVATE_SESSION", json!({"session_id": id, "revision": revision})).await;
        assert_eq!(control.answer().await.kind, "SESSION_ACTIVATED");
        let mut data = self.accept().await;
        data.welcome(json!({"session_id": id})).await;
        data
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("the executor did nothing for too long")
}

impl Peer {
    /// Reads HELLO and grants all that it offers. `over` replaces fields of the acknowledgement.
    ///
    /// # Panics
    ///
    /// When something else than HELLO comes.
    pub async fn welcome(&mut self, over: Value) -> Received {
        let hello = self.receive().await;
        assert_eq!(hello.kind, "HELLO");
        let mut ack = json!({
            "session_id": null, "connection_id": "c1", "protocol_version": "1.1",
            "granted_capabilities": hello.payload["capabilities"],
        });
        for (key, value) in over.as_object().into_iter().flatten() {
            ack[key] = value.clone();
        }
        self.reply("HELLO_ACK", &hello.id, ack).await;
        hello
    }

    /// Sends a frame with this id.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub async fn reply(&mut self, kind: &str, id: &str, payload: Value) {
        let frame = json!({"type": kind, "id": id, "ts": protocol::now(), "payload": payload});
        self.raw(frame.to_string()).await;
    }

    /// Sends a request and returns its id.
    pub async fn send(&mut self, kind: &str, payload: Value) -> String {
        self.next_id += 1;
        let id = format!("r{}", self.next_id);
        self.reply(kind, &id, payload).await;
        id
    }

    /// Sends a request and returns its answer.
    pub async fn request(&mut self, kind: &str, payload: Value) -> Received {
        let id = self.send(kind, payload).await;
        self.answer_to(&id).await
    }

    /// Sends a text frame as it is.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub async fn raw(&mut self, text: String) {
        within(self.socket.send(Message::text(text))).await.expect("the connection is open");
    }

    /// Sends a binary frame as it is.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub async fn raw_bytes(&mut self, bytes: Vec<u8>) {
        within(self.socket.send(Message::binary(bytes))).await.expect("the connection is open");
    }

    /// Sends a close frame.
    pub async fn close(&mut self, code: u16) {
        let frame = CloseFrame { code: code.into(), reason: "test".into() };
        drop(within(self.socket.close(Some(frame))).await);
    }

    /// The next frame of the executor, whatever it is.
    ///
    /// # Panics
    ///
    /// When the connection ends instead.
    pub async fn receive(&mut self) -> Received {
        self.next().await.expect("a frame, not the end")
    }

    /// The next frame, or what ended the connection.
    ///
    /// # Errors
    ///
    /// How the connection ended.
    ///
    /// # Panics
    ///
    /// When nothing comes, or no frame of the contract.
    pub async fn next(&mut self) -> Result<Received, Ended> {
        loop {
            match within(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => {
                    let frame = Frame::parse(text.as_bytes()).expect("the executor sends good frames");
                    let payload = serde_json::from_str(frame.payload.get()).expect("JSON");
                    return Ok(Received {
                        kind: frame.kind.into_owned(),
                        id: frame.id.into_owned(),
                        pending_capacity: frame.pending_capacity,
                        payload,
                    });
                }
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Err(Ended::Closed(frame.code.into(), frame.reason.to_string()));
                }
                Some(Ok(Message::Close(None)) | Err(_)) | None => return Err(Ended::Cut),
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            }
        }
    }

    /// The next frame that is no STATUS.
    pub async fn answer(&mut self) -> Received {
        loop {
            let received = self.receive().await;
            if received.kind != MessageType::Status.as_str() {
                return received;
            }
        }
    }

    /// The answer to a request; others that come before it are dropped.
    pub async fn answer_to(&mut self, id: &str) -> Received {
        loop {
            let received = self.receive().await;
            if received.id == id {
                return received;
            }
        }
    }

    /// What ends the connection; frames that come before it are dropped.
    pub async fn end(&mut self) -> Ended {
        loop {
            if let Err(ended) = self.next().await {
                return ended;
            }
        }
    }

    /// Whether nothing but STATUS comes for this long.
    pub async fn is_silent_for(&mut self, long: Duration) -> bool {
        tokio::time::timeout(long, self.answer()).await.is_err()
    }

    /// Starts a browse and returns `browse_id` and the reference of the first root.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub async fn browse(&mut self) -> (String, String) {
        let listing = self.request("DIRECTORY_LIST_REQUEST", json!({})).await;
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (text(&listing.payload["browse_id"]), text(&listing.payload["entries"][0]["directory_ref"]))
    }

    /// Attaches a session to the first root; the answer.
    pub async fn attach(&mut self, id: &str) -> Received {
        let (browse_id, directory_ref) = self.browse().await;
        let payload = json!({"session_id": id, "browse_id": browse_id, "directory_ref": directory_ref});
        self.request("ATTACH_SESSION", payload).await
    }

    /// Gives up the socket itself.
    #[must_use]
    pub fn into_socket(self) -> WebSocketStream<TcpStream> {
        self.socket
    }
}
