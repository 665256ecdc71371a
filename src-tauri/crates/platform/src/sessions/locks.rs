//! One change at a time for each session; two sessions never wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::SessionId;
use tokio::sync::OwnedMutexGuard;

/// Locks by session. One that nobody holds takes no room.
#[derive(Default)]
pub(crate) struct SessionLocks(Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>);

impl SessionLocks {
    pub(crate) async fn lock(&self, id: &SessionId) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            locks.entry(id.clone()).or_default().clone()
        };
        lock.lock_owned().await
    }
}
