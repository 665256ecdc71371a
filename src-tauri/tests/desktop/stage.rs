//! The platform, an executor's folders and a desktop with the app on it.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Value, json};
use system_tests::{Reference, Rig};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::screen::{Screen, until};

/// The prompt's title for the desktop.
pub(crate) const PROMPT: &str = "Deskhand asks";
/// The main window's.
pub(crate) const MAIN: &str = "^Deskhand$";

/// All that a test plays with.
pub(crate) struct Stage {
    pub(crate) screen: Screen,
    pub(crate) rig: Rig,
    pub(crate) platform: Arc<Reference>,
    runtime: Runtime,
}

impl Stage {
    /// A person who is signed in and has seen the first-run screens; commands are asked about.
    pub(crate) fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let platform = Arc::new(runtime.block_on(Reference::start()));
        let rig = runtime.block_on(platform.rig());
        std::fs::write(rig.dirs.state.join("app.json"), r#"{"first_run_done": true}"#).unwrap();
        Self { screen: Screen::new(), rig, platform, runtime }
    }

    /// The same, with the app in the tray, connected.
    pub(crate) fn in_tray() -> Self {
        let mut stage = Self::new();
        stage.start(&["--hidden"]);
        stage.wait(stage.platform.machine(None));
        stage
    }

    /// Starts the app; its process.
    pub(crate) fn start(&mut self, more: &[&str]) -> u32 {
        self.screen.app(&self.rig.dirs, more)
    }

    /// Waits for the platform's side.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// A session on the folder.
    pub(crate) fn session(&self) -> String {
        self.wait(self.platform.session())
    }

    /// An agent that wants to run a command; its answer comes when somebody has decided.
    pub(crate) fn command(&self, session: &str, line: &str) -> JoinHandle<Value> {
        let (platform, session, line) = (self.platform.clone(), session.to_owned(), json!({"command": line}));
        self.runtime.spawn(async move { platform.answer(&session, "bash_exec", line).await })
    }

    /// The code that the command was refused with; none when it ran.
    pub(crate) fn refusal(&self, command: JoinHandle<Value>) -> Option<String> {
        let answer = self.wait(command).unwrap();
        if answer["ok"] == true {
            return None;
        }
        Some(answer["error"]["code"].as_str().expect("a code").to_owned())
    }

    /// Whether a file is in the folder.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.rig.root.join(name).exists()
    }

    /// The prompt's window, once it is drawn.
    pub(crate) fn prompt(&self) -> String {
        self.screen.window(PROMPT)
    }

    /// Waits until no prompt is there.
    pub(crate) fn no_prompt(&self) {
        until("the prompt is gone", || !self.screen.has_window(PROMPT));
    }
}
