//! Consent as its callers see it, on a clock that the tests move.

mod asking;
mod attacks;
mod rules;
mod state;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::config::Config;

/// What a prompter was told.
#[derive(Debug, PartialEq)]
enum Seen {
    Show(Box<Prompt>),
    Withdraw(PromptId, End),
}

/// A prompter that reports to the test.
struct Screen {
    seen: Mutex<mpsc::Sender<Seen>>,
    available: AtomicBool,
}

impl Prompter for Screen {
    fn show(&self, prompt: &Prompt) {
        let _ = self.seen.lock().unwrap().send(Seen::Show(Box::new(prompt.clone())));
    }

    fn withdraw(&self, id: &PromptId, end: End) {
        let _ = self.seen.lock().unwrap().send(Seen::Withdraw(*id, end));
    }

    fn available(&self) -> bool {
        self.available.load(Ordering::SeqCst)
    }
}

struct Rig {
    consent: Arc<Consent>,
    screen: Arc<Screen>,
    seen: Arc<Mutex<mpsc::Receiver<Seen>>>,
    events: Arc<Mutex<Vec<ConsentEvent>>>,
}

type Decided = JoinHandle<Result<Approved<Value>, Denied>>;

impl Rig {
    fn new() -> Self {
        Self::with("")
    }

    fn with(config: &str) -> Self {
        let (sender, receiver) = mpsc::channel();
        let screen = Arc::new(Screen { seen: Mutex::new(sender), available: AtomicBool::new(true) });
        let events = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&events);
        let consent = Consent::new(policy(config), Some(screen.clone() as Arc<dyn Prompter>), move |event| {
            log.lock().unwrap().push(event);
        });
        Self { consent: Arc::new(consent), screen, seen: Arc::new(Mutex::new(receiver)), events }
    }

    fn ask(&self, action: Action<Value>) -> Decided {
        self.ask_until(action, CancellationToken::new())
    }

    fn ask_until(&self, action: Action<Value>, cancel: CancellationToken) -> Decided {
        let consent = Arc::clone(&self.consent);
        tokio::spawn(async move { consent.decide(action, &cancel).await })
    }

    /// Waits for the prompter, on a blocking thread: the test's clock stands still meanwhile.
    async fn seen(&self) -> Seen {
        let seen = Arc::clone(&self.seen);
        let next = move || seen.lock().unwrap().recv_timeout(Duration::from_secs(20));
        tokio::task::spawn_blocking(next).await.unwrap().expect("the prompter was told nothing")
    }

    async fn shown(&self) -> Prompt {
        match self.seen().await {
            Seen::Show(prompt) => *prompt,
            Seen::Withdraw(id, end) => panic!("{id} withdrawn, {end:?}"),
        }
    }

    async fn withdrawn(&self) -> (PromptId, End) {
        match self.seen().await {
            Seen::Withdraw(id, end) => (id, end),
            Seen::Show(prompt) => panic!("shown {prompt:?}"),
        }
    }

    /// Reads the shown prompt for a second, then answers.
    async fn answer(&self, prompt: &Prompt, answer: Answer) {
        tokio::time::advance(Duration::from_secs(1)).await;
        self.consent.answer(&prompt.id, answer).unwrap();
        assert_eq!(self.withdrawn().await, (prompt.id, End::Answered(answer)));
    }

    /// Waits until so many requests wait for answers.
    async fn waiting(&self, requests: usize) {
        while self.consent.open_prompts().iter().map(|view| view.requests).sum::<usize>() != requests {
            tokio::task::yield_now().await;
        }
    }
}

fn policy(config: &str) -> Policy {
    Policy::new(&settings(config), "platform.example", false)
}

fn settings(config: &str) -> Config {
    toml::from_str(config).unwrap()
}

fn payload(command: &str) -> Value {
    json!({ "command": command })
}

fn root() -> PathBuf {
    PathBuf::from(if cfg!(windows) { r"C:\work" } else { "/work" })
}

fn action(session: &str, capability: Capability, command: &str) -> Action<Value> {
    Action {
        session_id: session.into(),
        request_type: "EXECUTE_COMMAND".into(),
        capability,
        params: payload(command),
        root: root(),
        view: ActionView::new("Run a command").with("Command", command),
        program: ProgramMatch::none(),
    }
}

fn shell(session: &str, command: &str) -> Action<Value> {
    action(session, Capability::Shell, command)
}
