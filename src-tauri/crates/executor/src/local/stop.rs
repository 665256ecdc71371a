//! The way of `stop` past everything: a thread that waits for nothing but the word, started before there is work.

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

/// The trigger returns, or the executor says that it has finished: whichever way it reports, it is known by then. The
/// kill switch itself has 250 ms.
const REPORT_PATIENCE: Duration = Duration::from_secs(2);

/// Throws the kill switch on a thread of its own. Made beforehand: when the machine is out of threads, it is there.
pub(super) struct Stop {
    throw: mpsc::Sender<oneshot::Sender<()>>,
    /// How long the last kill took, by the executor's own report.
    killed: watch::Receiver<Option<u64>>,
}

/// What is known of a kill when the patience is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thrown {
    /// The executor says that nothing is left, and how long that took.
    Finished(u64),
    /// The trigger has returned.
    Returned,
    /// Neither: it was thrown, and that is all.
    Pending,
}

impl Stop {
    pub(super) fn start(
        trigger: Arc<dyn Fn() + Send + Sync>,
        killed: watch::Receiver<Option<u64>>,
    ) -> io::Result<Self> {
        let (throw, thrown) = mpsc::channel::<oneshot::Sender<()>>();
        thread::Builder::new().name("kill-switch".into()).spawn(move || {
            for returned in thrown {
                trigger();
                // Whoever asked may have gone.
                let _ = returned.send(());
            }
        })?;
        Ok(Self { throw, killed })
    }

    /// Throws it, and waits a little for word of its end.
    pub(super) async fn throw(&self) -> Thrown {
        let mut killed = self.killed.clone();
        killed.mark_unchanged();
        let (returned, has_returned) = oneshot::channel();
        // The thread ends only when this sender is dropped.
        let _ = self.throw.send(returned);
        let report = async {
            let reported = async {
                match killed.changed().await {
                    Ok(()) => *killed.borrow_and_update(),
                    Err(_) => std::future::pending().await,
                }
            };
            tokio::pin!(reported);
            tokio::select! {
                took = &mut reported => took,
                _ = has_returned => {
                    // Its report, where there is one, comes right behind.
                    timeout(Duration::from_millis(200), reported).await.ok().flatten()
                }
            }
        };
        match timeout(REPORT_PATIENCE, report).await {
            Ok(Some(took_ms)) => Thrown::Finished(took_ms),
            Ok(None) => Thrown::Returned,
            Err(_) => Thrown::Pending,
        }
    }
}
