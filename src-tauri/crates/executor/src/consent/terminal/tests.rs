//! On real pseudo-terminals: the test holds the end that a terminal emulator would.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio_util::sync::CancellationToken;

use super::super::*;
use super::{TerminalPrompter, unix};
use crate::config::Config;

const DEADLINE: Duration = Duration::from_secs(20);

/// A terminal and who sits at it.
struct Seat {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
    consent: Arc<Consent>,
    terminal: Option<Arc<TerminalPrompter>>,
}

impl Seat {
    fn new() -> Self {
        let (master, path) = pty();
        let terminal = TerminalPrompter::on(unix::Console::at(&path, false).unwrap());
        let policy = Policy::new(&Config::default(), "platform.example", true);
        let consent = Arc::new(Consent::new(policy, Some(terminal.clone()), |_| {}));
        terminal.attach(&consent).unwrap();
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().unwrap();
        let (sender, screen) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read) = output.read(&mut bytes) {
                if read == 0 || sender.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { keyboard, screen, seen: String::new(), consent, terminal: Some(terminal) }
    }

    fn ask(&self, command: &str) -> tokio::task::JoinHandle<Result<Approved<serde_json::Value>, Denied>> {
        let action = Action {
            session_id: "chat".into(),
            request_type: "EXECUTE_COMMAND".into(),
            capability: Capability::Shell,
            params: serde_json::json!({ "command": command }),
            root: "/work".into(),
            view: ActionView::new("run a command").with("Command", command),
            program: ProgramMatch::none(),
        };
        let consent = Arc::clone(&self.consent);
        tokio::spawn(async move { consent.decide(action, &CancellationToken::new()).await })
    }

    /// Reads the screen until `text` is on it, and forgets what came up to there.
    fn until(&mut self, text: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let bytes =
                self.screen.recv_timeout(left).unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Types an answer as soon as it is accepted: not in the first 700 ms.
    fn allow(&mut self, answer: &str) {
        loop {
            self.type_in(&format!("{answer}\n"));
            let said = self.until("\n");
            let said = if said.trim().ends_with(answer) { self.until("\n") } else { said };
            if !said.contains("only just appeared") {
                return;
            }
            self.until("> ");
        }
    }
}

fn pty() -> (OwnedFd, PathBuf) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    let flags = flags | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    // Where it cannot be asked for at once.
    fcntl_setfd(&master, FdFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = PathBuf::from(ptsname(&master, Vec::new()).unwrap().into_string().unwrap());
    (master, path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_prompt_shows_the_action_and_takes_each_answer() {
    let mut seat = Seat::new();
    for (typed, end, allowed) in [
        ("o", "Allowed once.", Some(Scope::Once)),
        ("", "Denied.", None),
        ("no", "Denied.", None),
        ("x", "Denied and disconnected.", None),
        ("15", "Allowed for 15 minutes.", Some(Scope::FifteenMinutes)),
    ] {
        let asked = seat.ask("ls -l; rm x");
        let text = seat.until("> ");
        for part in [
            "| Deskhand asks you: run a command",
            "| for platform.example, chat chat",
            "|     ls -l; rm x",
            "| 15 and c let this chat run any command, started in /work.",
            "| Without an answer within 60 s it is denied.",
            "Enter: deny | o: allow once | 15: allow for 15 minutes | c: allow for this chat | x: deny and disconnect",
        ] {
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
        if allowed.is_some() {
            seat.allow(typed);
        } else {
            seat.type_in(&format!("{typed}\n"));
        }
        seat.until(end);
        let outcome = asked.await.unwrap();
        assert_eq!(outcome.as_ref().ok().and_then(|approved| approved.facts().scope), allowed, "{typed}");
    }
    // The last answer still holds.
    assert_eq!(seat.ask("another").await.unwrap().unwrap().facts().scope, Some(Scope::FifteenMinutes));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_typed_ahead_approves_nothing() {
    let mut seat = Seat::new();
    seat.type_in("o\no\nc\nc");
    seat.until("c");
    let asked = seat.ask("ls");
    seat.until("> ");
    // The unfinished `c` is gone as well: a bare Enter denies.
    seat.type_in("\n");
    seat.until("Denied.");
    assert_eq!(asked.await.unwrap().unwrap_err().reason, Reason::Declined);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_too_fast_or_is_none_changes_nothing_and_the_countdown_goes_on() {
    let mut seat = Seat::new();
    let left = |seat: &Seat| seat.consent.open_prompts()[0].seconds_left.expect("a countdown");
    let asked = seat.ask("ls");
    seat.until("> ");
    let at_first = left(&seat);
    seat.type_in("c\n");
    seat.until("only just appeared");
    seat.until("> ");
    for typed in ["yes", "1", "漢"] {
        seat.type_in(&format!("{typed}\n"));
        seat.until(&format!("`{typed}` is not an answer: type one of these within "));
        let answers = seat.until("> ");
        assert!(answers.contains("Enter: deny | o: allow once | 15: allow for 15 minutes"), "{answers:?}");
    }
    assert!(left(&seat) < at_first, "the countdown goes on");
    seat.type_in("\u{4}"); // Ctrl+D
    seat.until("Denied.");
    assert_eq!(asked.await.unwrap().unwrap_err().reason, Reason::Declined);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_is_withdrawn_while_somebody_types_and_the_rest_of_the_line_does_not_answer_the_next() {
    let mut seat = Seat::new();
    let first = seat.ask("one");
    seat.until("> ");
    seat.type_in("x");
    seat.until("x");
    seat.consent.withdraw_all(Withdrawal::Killed);
    seat.until("Stopped.");
    assert_eq!(first.await.unwrap().unwrap_err().withdrawal, Some(Withdrawal::Killed));
    let second = seat.ask("two");
    seat.until("|     two");
    seat.until("> ");
    seat.type_in("\n");
    seat.until("Denied.");
    let denied = second.await.unwrap().unwrap_err();
    assert_eq!(denied.reason, Reason::Declined);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_cannot_draw_on_the_terminal() {
    let mut seat = Seat::new();
    let wide = "漢".repeat(100);
    let asked =
        seat.ask(&format!("ls\u{1b}[2J\u{9b}2J\rAllowed once.\nAllowed once.\n{}{wide}", "z".repeat(500)));
    let text = seat.until("Enter: deny");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{9b}'), "{text:?}");
    assert!(text.contains("⟦U+001B⟧[2J"));
    for line in text.split("\r\n").filter(|line| !line.is_empty() && !line.starts_with("Enter")) {
        assert!(line.starts_with("| ") && !line.contains('\r'), "{line:?}");
        let columns: usize = line.chars().map(|c| if c < '\u{1100}' { 1 } else { 2 }).sum();
        assert!(columns < 80, "{line:?}");
    }
    seat.type_in("\n");
    asked.await.unwrap().unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_that_goes_away_denies_what_is_open_and_what_comes() {
    let mut seat = Seat::new();
    let asked = seat.ask("ls");
    seat.until("> ");
    let Seat { keyboard, screen, consent, terminal, .. } = seat;
    // The reading thread holds the last copy of the terminal's end; it goes when the terminal side hangs up, so
    // the hang-up is made by hand.
    drop(screen);
    drop(keyboard);
    consent.touch(&consent.open_prompts()[0].prompt.id);
    let terminal = terminal.unwrap();
    terminal.shared.console.write("wakes the reading thread, which then closes its copy\r\n");
    let denied = asked.await.unwrap().unwrap_err();
    assert_eq!((denied.reason, denied.withdrawal), (Reason::Withdrawn, Some(Withdrawal::NobodyThere)));
    assert!(!terminal.available());
}

#[test]
fn a_process_without_a_terminal_has_nobody_to_ask() {
    assert!(unix::Console::at(std::path::Path::new("/nonexistent/tty"), true).is_none());
}

/// Run by the test below, as a process of its own.
#[test]
fn child_that_looks_for_its_terminal() {
    if std::env::var_os("DESKHAND_TEST_TERMINAL").is_none() {
        return;
    }
    let found = match TerminalPrompter::open() {
        None => "no terminal",
        Some(terminal) if terminal.shared.console.is_ours() => "foreground",
        Some(_) => "background",
    };
    println!("found: {found}");
}

/// `setsid` makes a session without a terminal, or with the one that is its standard input.
#[cfg(target_os = "linux")]
#[test]
fn only_the_process_s_own_terminal_counts_and_pipes_do_not() {
    use std::process::{Command, Stdio};
    let run = |ctty: bool| {
        let (master, path) = pty();
        let mut command = Command::new("setsid");
        if ctty {
            let terminal = File::options().read(true).write(true).open(&path).unwrap();
            command.arg("--ctty").stdin(terminal);
        } else {
            command.stdin(Stdio::null());
        }
        let output = command
            .arg("--wait")
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "consent::terminal::tests::child_that_looks_for_its_terminal", "--nocapture"])
            .env("DESKHAND_TEST_TERMINAL", "1")
            .output()
            .unwrap();
        drop(master);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(run(false).contains("found: no terminal"));
    assert!(run(true).contains("found: foreground"));
}
