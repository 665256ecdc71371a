//! What every handler shares.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::attempts::Attempts;
use crate::options::{Client, PlatformOptions};
use crate::relay::{LocalPresence, Presence, Whose};
use crate::sessions::SessionLocks;
use crate::store::Store;

/// Shared state; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) options: PlatformOptions,
    /// As browsers and machines see it.
    pub(crate) url: Url,
    pub(crate) store: Store,
    /// Which machines are connected, and the way to them.
    pub(crate) presence: Arc<dyn Presence>,
    /// The same, as the sockets of this process fill it.
    pub(crate) sockets: Arc<LocalPresence>,
    pub(crate) locks: SessionLocks,
    /// One edit of a session's files at a time.
    pub(crate) edits: SessionLocks,
    pub(crate) attempts: Attempts,
    /// Passwords hashed at once: each takes 19 MiB, and anybody may ask for one.
    pub(crate) hashing: Semaphore,
    /// Sockets and session changes that must end before the process does.
    pub(crate) tasks: TaskTracker,
    pub(crate) stopping: CancellationToken,
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    pub(crate) fn new(options: PlatformOptions, url: Url, store: Store) -> Self {
        let sockets = Arc::new(LocalPresence::default());
        Self(Arc::new(Shared {
            options,
            url,
            store,
            presence: sockets.clone(),
            sockets,
            locks: SessionLocks::default(),
            edits: SessionLocks::default(),
            attempts: Attempts::default(),
            hashing: Semaphore::new(4),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }))
    }

    pub(crate) fn client(&self, id: &str) -> Option<&Client> {
        self.options.clients.iter().find(|client| client.id == id)
    }

    /// Ends the connections that lived on a token which is revoked now.
    pub(crate) fn revoke_connections(&self, whose: &Whose) {
        self.presence.revoke(whose);
    }
}
