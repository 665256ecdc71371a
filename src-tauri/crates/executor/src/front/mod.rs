//! The commands behind the app's pages, and the state that the tray and the windows show.
//!
//! [`Front::call`] is the one way in: a command's name and its arguments as JSON, its answer as JSON. The app's windows
//! call it through Tauri, the development server over HTTP, tests directly, and so all three run the same code. Each command
//! belongs to one window: the main window cannot answer a prompt, and a prompt's window can do nothing else.
//!
//! What needs the desktop (dialogs, the browser, keys) is behind [`Native`].

mod activity;
mod call;
mod log;
mod native;
mod preferences;
mod prompts;
mod sentence;
mod settings;
mod sign_in;
mod snapshot;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use vault::Vault;

use crate::Executor;
use crate::events::{Command, ConnectionState, Event};

pub use call::{COMMANDS, Window};
pub use native::Native;
pub use preferences::{Appearance, Preferences, USUAL_SHORTCUT};
pub use view::*;

use activity::Activity;
use preferences::Store;
use sign_in::Door;

/// Changes that a slow window may fall behind; it then fetches everything, which is what it does anyway.
const CHANGES_KEPT: usize = 256;

/// Something to fetch again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// [`Snapshot`].
    State,
    /// Records were added to the log.
    Activity,
    /// A prompt opened, moved up, was touched or closed.
    Prompt,
}

/// The pages' side of an executor. Cheap to clone.
#[derive(Clone)]
pub struct Front {
    shared: Arc<Shared>,
}

struct Shared {
    executor: Executor,
    vault: Vault,
    native: Arc<dyn Native>,
    preferences: Store,
    /// The address came from a flag, so the file has no say in it.
    platform_from_flag: bool,
    activity: Activity,
    door: Door,
    changes: broadcast::Sender<Change>,
    /// What each chat does, by request.
    doing: Mutex<HashMap<String, Vec<(String, &'static str)>>>,
    /// Ends the wait of a pause that ends by itself.
    pause: Mutex<CancellationToken>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs what blocks where it may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| format!("it failed in the middle: {error}"))
}

impl Front {
    /// Must be called within a Tokio runtime, on a thread that may block: it looks into the vault.
    pub fn start(
        executor: Executor,
        vault: Vault,
        native: Arc<dyn Native>,
        platform_from_flag: bool,
    ) -> Self {
        let dirs = &executor.machine().dirs;
        let signed_in = vault.tokens().is_ok_and(|tokens| tokens.is_some());
        let (changes, _) = broadcast::channel(CHANGES_KEPT);
        let front = Self {
            shared: Arc::new(Shared {
                preferences: Store::open(&dirs.state),
                activity: Activity::new(&dirs.logs),
                door: Door::new(signed_in),
                executor,
                vault,
                native,
                platform_from_flag,
                changes,
                doing: Mutex::default(),
                pause: Mutex::default(),
            }),
        };
        tokio::spawn(watch(front.clone()));
        front
    }

    /// What changes from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    /// The app's own settings.
    #[must_use]
    pub fn preferences(&self) -> Preferences {
        self.shared.preferences.get()
    }

    /// The executor behind.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.shared.executor
    }

    /// No window shows the log any more.
    pub fn forget_activity(&self) {
        self.shared.activity.forget();
    }

    /// Says that something outside has changed what [`Snapshot`] shows: the tray came, the keys were taken.
    pub fn changed(&self) {
        self.tell(Change::State);
    }

    fn tell(&self, change: Change) {
        // Nobody may be looking.
        let _ = self.shared.changes.send(change);
    }

    async fn command(&self, command: Command) -> Result<(), String> {
        self.shared.executor.command(command).await.map_err(|error| error.0)
    }

    /// Refuses everything; after `minutes` it goes on by itself, unless somebody paused or resumed meanwhile.
    async fn pause(&self, minutes: Option<u32>) -> Result<(), String> {
        self.command(Command::Pause).await?;
        let end = CancellationToken::new();
        std::mem::replace(&mut *lock(&self.shared.pause), end.clone()).cancel();
        if let Some(minutes) = minutes {
            let front = self.clone();
            tokio::spawn(async move {
                let wait = tokio::time::sleep(std::time::Duration::from_secs(u64::from(minutes) * 60));
                tokio::select! {
                    () = end.cancelled() => {}
                    () = wait => {
                        if let Err(error) = front.command(Command::Resume { session_id: None }).await {
                            tracing::warn!("the pause does not end: {error}");
                        }
                    }
                }
            });
        }
        Ok(())
    }

    async fn resume(&self, session_id: Option<String>) -> Result<(), String> {
        if session_id.is_none() {
            lock(&self.shared.pause).cancel();
        }
        self.command(Command::Resume { session_id }).await
    }
}

/// Turns the executor's events into what windows have to fetch again.
async fn watch(front: Front) {
    let mut events = front.shared.executor.subscribe();
    loop {
        match events.recv().await {
            Ok(event) => front.note(&event),
            // What was lost may be the end of a request: nothing is known of what chats do.
            Err(broadcast::error::RecvError::Lagged(_)) => {
                lock(&front.shared.doing).clear();
                front.tell(Change::State);
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

impl Front {
    fn note(&self, event: &Event) {
        let mut doing = lock(&self.shared.doing);
        match event {
            Event::RequestStarted { session_id: Some(session), request_id, op } => {
                doing.entry(session.clone()).or_default().push((request_id.clone(), sentence::doing(op)));
            }
            Event::RequestFinished { session_id: Some(session), request_id, .. } => {
                if let Some(requests) = doing.get_mut(session) {
                    requests.retain(|(id, _)| id != request_id);
                }
            }
            Event::SessionClosed { session_id, .. } => {
                doing.remove(session_id);
            }
            Event::Connection { state: ConnectionState::SignedOut { .. } } => self.shared.door.signed_out(),
            Event::Connection { .. }
            | Event::RequestStarted { session_id: None, .. }
            | Event::RequestFinished { session_id: None, .. }
            | Event::SessionOpened { .. }
            | Event::PromptOpened { .. }
            | Event::PromptClosed { .. }
            | Event::RefusedByRule { .. }
            | Event::SessionPaused { .. }
            | Event::Paused { .. }
            | Event::Killed { .. }
            | Event::Warning { .. } => {}
        }
        drop(doing);
        self.tell(Change::State);
        match event {
            Event::PromptOpened { .. } => self.tell(Change::Prompt),
            Event::PromptClosed { .. } => {
                self.tell(Change::Prompt);
                self.tell(Change::Activity);
            }
            Event::RequestStarted { .. } | Event::RefusedByRule { .. } | Event::Warning { .. } => {}
            Event::RequestFinished { .. }
            | Event::Connection { .. }
            | Event::SessionOpened { .. }
            | Event::SessionClosed { .. }
            | Event::SessionPaused { .. }
            | Event::Paused { .. }
            | Event::Killed { .. } => self.tell(Change::Activity),
        }
    }
}
