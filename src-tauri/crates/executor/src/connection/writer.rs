//! The write side of an open connection.

use std::time::Duration;

use futures_util::SinkExt as _;
use futures_util::stream::SplitSink;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::{self, Bytes, Message};
use tokio_util::sync::CancellationToken;

use super::dial::Socket;
use super::line::Out;
use super::serve::QUEUED_FRAMES;

/// How long frames that go out together may take. A peer that acknowledges bytes but never reads would block for ever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(300);

type Sink = SplitSink<Socket, Message>;

/// Writes what is queued until the connection is over. Returns the sink for the close frame, unless it is broken. Frames
/// that wait together, such as an answer and the STATUS after it, go out together.
pub(super) async fn write(
    mut sink: Sink,
    mut queue: mpsc::Receiver<Out>,
    pinged: watch::Sender<Option<Instant>>,
    over: CancellationToken,
) -> Option<Sink> {
    loop {
        let first = tokio::select! {
            biased;
            () = over.cancelled() => return Some(sink),
            out = queue.recv() => match out {
                Some(out) => out,
                None => return Some(sink),
            },
        };
        let written = tokio::select! {
            () = over.cancelled() => return None, // half a frame may be on the wire: nothing may follow it
            written = timeout(WRITE_TIMEOUT, write_waiting(&mut sink, &mut queue, first)) => written,
        };
        match written {
            Ok(Ok(has_ping)) if has_ping => drop(pinged.send(Some(Instant::now()))),
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => return None,
        }
    }
}

/// Writes one frame and a few of those that wait behind it. Whether a ping was among them.
async fn write_waiting(
    sink: &mut Sink,
    queue: &mut mpsc::Receiver<Out>,
    first: Out,
) -> Result<bool, tungstenite::Error> {
    let (mut next, mut has_ping) = (first, false);
    // As many as the queue held, and no more: others go on coming, and these must not wait for them.
    for left in (0..=QUEUED_FRAMES).rev() {
        let message = match next {
            Out::Text(text) => Message::text(text),
            Out::Ping => Message::Ping(Bytes::new()),
        };
        has_ping |= message.is_ping();
        // Waits for the socket once much is buffered, so that this holds no more than a frame and a little.
        sink.feed(message).await?;
        if left == 0 {
            break;
        }
        let Ok(out) = queue.try_recv() else { break };
        next = out;
    }
    sink.flush().await?;
    Ok(has_ping)
}
