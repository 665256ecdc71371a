//! Both sides of the rows over a socket. Ours is an executor, the floor a WebSocket client that answers each frame with a
//! frame; both dial the same platform over loopback and run on a runtime like `deskhand run`'s, and the platform's side of
//! both is the same code on a thread of its own.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use executor::Executor;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use system_tests::Rig;
use system_tests::scripted::{Peer, Scripted};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// As `deskhand run` has it.
const WORKERS: usize = 2;

/// For one answer.
const PATIENCE: Duration = Duration::from_secs(60);

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?)
}

/// The platform's end of one open connection.
pub(crate) struct Platform {
    runtime: Runtime,
    socket: WebSocketStream<TcpStream>,
}

/// An executor with one session.
pub(crate) struct Ours {
    platform: Platform,
    /// Its folder.
    pub(crate) rig: Rig,
    _control: Peer,
    _executor: Executor,
    _runtime: Runtime,
}

/// A client that answers.
pub(crate) struct Floor {
    platform: Platform,
    _runtime: Runtime,
}

/// What the floor answers a frame with.
#[derive(Clone)]
pub(crate) enum Answer {
    /// The frame.
    Echo,
    /// This one.
    With(Utf8Bytes),
}

impl Ours {
    /// Starts both and opens the session.
    pub(crate) fn start() -> Result<Self> {
        let here = Builder::new_current_thread().enable_all().build()?;
        let scripted = here.block_on(Scripted::start());
        let rig = Rig::new(&scripted.url);
        let runtime = runtime()?;
        let executor = {
            let _entered = runtime.enter();
            rig.start()
        };
        let (control, data) = here.block_on(scripted.session("bench"));
        let platform = Platform { runtime: here, socket: data.into_socket() };
        Ok(Self { platform, rig, _control: control, _executor: executor, _runtime: runtime })
    }

    /// The platform's end of the session.
    pub(crate) fn platform(&mut self) -> &mut Platform {
        &mut self.platform
    }
}

impl Floor {
    /// Starts both and connects them.
    pub(crate) fn start(answer: Answer) -> Result<Self> {
        let here = Builder::new_current_thread().enable_all().build()?;
        let scripted = here.block_on(Scripted::start());
        let runtime = runtime()?;
        let address = scripted.url.clone();
        runtime.spawn(async move {
            if let Err(error) = answer_all(&address, &answer).await {
                eprintln!("the floor's side ended: {error:#}");
            }
        });
        let peer = here.block_on(scripted.accept());
        Ok(Self { platform: Platform { runtime: here, socket: peer.into_socket() }, _runtime: runtime })
    }

    /// The platform's end.
    pub(crate) fn platform(&mut self) -> &mut Platform {
        &mut self.platform
    }
}

async fn answer_all(url: &str, answer: &Answer) -> Result<()> {
    let address = url.strip_prefix("http://").context("an http address")?;
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let limits = WebSocketConfig::default()
        .max_message_size(Some(protocol::MAX_FRAME_BYTES))
        .max_frame_size(Some(protocol::MAX_FRAME_BYTES));
    let (mut socket, _) = client_async_with_config(format!("ws://{address}/"), stream, Some(limits)).await?;
    while let Some(message) = socket.next().await {
        let Ok(Message::Text(text)) = message else { return Ok(()) }; // the platform is done
        let text = match answer {
            Answer::Echo => text,
            Answer::With(text) => text.clone(),
        };
        socket.send(Message::Text(text)).await?;
    }
    Ok(())
}

/// A request with its envelope; the number makes its id.
pub(crate) fn frame(kind: &str, number: usize, payload: &Value) -> Utf8Bytes {
    json!({"type": kind, "id": format!("b{number:06}"), "ts": protocol::now(), "payload": payload})
        .to_string()
        .into()
}

impl Platform {
    /// Sends the frames, at most `at_once` of them unanswered, and gives the time until the last answer. Fails at an `ERROR`.
    pub(crate) fn drive(&mut self, frames: &[Utf8Bytes], at_once: usize) -> Result<Duration> {
        let Self { runtime, socket } = self;
        runtime.block_on(async {
            let began = Instant::now();
            let (mut sent, mut answered) = (0, 0);
            while answered < frames.len() {
                while sent < frames.len() && sent - answered < at_once {
                    socket.send(Message::Text(frames[sent].clone())).await?;
                    sent += 1;
                }
                answer(socket).await?;
                answered += 1;
            }
            Ok(began.elapsed())
        })
    }

    /// Sends one frame and gives its answer.
    pub(crate) fn ask(&mut self, frame: Utf8Bytes) -> Result<Utf8Bytes> {
        let Self { runtime, socket } = self;
        runtime.block_on(async {
            socket.send(Message::Text(frame)).await?;
            answer(socket).await
        })
    }
}

/// The next frame that is no STATUS.
async fn answer(socket: &mut WebSocketStream<TcpStream>) -> Result<Utf8Bytes> {
    loop {
        let next = tokio::time::timeout(PATIENCE, socket.next()).await.context("no answer")?;
        let Message::Text(text) = next.context("the connection ended")?? else { continue };
        if text.starts_with(r#"{"type":"STATUS""#) {
            continue;
        }
        if text.starts_with(r#"{"type":"ERROR""#) {
            bail!("answered with {text}");
        }
        return Ok(text);
    }
}
