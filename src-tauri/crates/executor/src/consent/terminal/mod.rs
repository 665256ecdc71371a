//! Prompts in the terminal that `deskhand run` was started in.
//!
//! It speaks to the terminal itself, never to standard input or output: what is piped into the program answers
//! nothing. What was typed before a prompt appeared is thrown away, so that typing ahead cannot approve; Enter
//! denies. What is no answer is called so and stops no countdown. In the background, and once the terminal is gone, nobody is there.

mod layout;
#[cfg(test)]
mod tests;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::decide::Consent;
use super::outcome::Withdrawal;
use super::prompt::{Answer, AnswerError, End, Prompt, PromptId, Prompter};
#[cfg(unix)]
use unix::Console;
#[cfg(windows)]
use windows::Console;

/// Longest line that can be an answer; more is thrown away.
const MAX_ANSWER: usize = 32;

/// What the console's wait ended with.
enum Waited {
    Input,
    Woken,
    Gone,
}

/// What was typed.
enum Typed {
    Text(String),
    Nothing,
    /// End of input on an empty line.
    End,
    Gone,
}

/// A [`Prompter`] in the terminal of this process.
pub struct TerminalPrompter {
    shared: Arc<Shared>,
}

struct Shared {
    console: Console,
    shown: Mutex<Option<Shown>>,
    consent: OnceLock<Weak<Consent>>,
    gone: AtomicBool,
    closing: AtomicBool,
}

struct Shown {
    prompt: Prompt,
    typed: String,
}

impl TerminalPrompter {
    /// None when this process has no terminal: then there is nobody to ask.
    pub fn open() -> Option<Arc<Self>> {
        Console::open().map(Self::on)
    }

    fn on(console: Console) -> Arc<Self> {
        let shared = Shared {
            console,
            shown: Mutex::new(None),
            consent: OnceLock::new(),
            gone: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        };
        Arc::new(Self { shared: Arc::new(shared) })
    }

    /// Says where answers go: the [`Consent`] that this prompter was given to. Until then it shows nothing.
    pub fn attach(&self, consent: &Arc<Consent>) -> std::io::Result<()> {
        if self.shared.consent.set(Arc::downgrade(consent)).is_err() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        std::thread::Builder::new().name("terminal-answers".into()).spawn(move || shared.listen())?;
        Ok(())
    }
}

impl Drop for TerminalPrompter {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        self.shared.console.wake();
    }
}

impl Prompter for TerminalPrompter {
    fn show(&self, prompt: &Prompt) {
        let shared = &self.shared;
        // Stopped and put into the background meanwhile: writing now could stop the whole program.
        if !shared.console.is_ours() {
            return;
        }
        {
            let mut shown = shared.shown();
            shared.console.discard_input();
            *shown = Some(Shown { prompt: prompt.clone(), typed: String::new() });
        }
        shared.console.write(&layout::prompt(prompt, shared.console.width()));
        shared.console.wake();
    }

    fn withdraw(&self, id: &PromptId, end: End) {
        let shared = &self.shared;
        let taken = shared.shown().take_if(|shown| shown.prompt.id == *id);
        if taken.is_some() && shared.console.is_ours() {
            shared.console.write(&format!("\n{}\n", layout::end(end)));
        }
    }

    fn available(&self) -> bool {
        let shared = &self.shared;
        shared.consent.get().is_some() && !shared.gone.load(Ordering::SeqCst) && shared.console.is_ours()
    }
}

impl Shared {
    fn shown(&self) -> MutexGuard<'_, Option<Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self) {
        while !self.closing.load(Ordering::SeqCst) {
            // What is typed while no prompt is shown stays where it is, for `discard_input`.
            let asked = self.shown().is_some();
            match self.console.wait(asked) {
                Waited::Woken => {}
                Waited::Input => match self.read() {
                    Ok(Some((id, line))) => self.take(&id, &line),
                    Ok(None) => {}
                    Err(Gone) => return self.lost(),
                },
                Waited::Gone => return self.lost(),
            }
        }
    }

    /// A finished line, and the prompt that was on the terminal while it was read: under the lock, so that a line
    /// meant for one prompt never answers the next.
    fn read(&self) -> Result<Option<(PromptId, String)>, Gone> {
        let mut shown = self.shown();
        let Some(shown) = shown.as_mut() else { return Ok(None) };
        let text = match self.console.read() {
            Typed::Text(text) => text,
            Typed::End => "\n".into(),
            Typed::Nothing => return Ok(None),
            Typed::Gone => return Err(Gone),
        };
        for character in text.chars() {
            match character {
                '\n' | '\r' => return Ok(Some((shown.prompt.id, std::mem::take(&mut shown.typed)))),
                '\u{8}' | '\u{7f}' => drop(shown.typed.pop()),
                _ if shown.typed.len() < MAX_ANSWER => shown.typed.push(character),
                _ => {}
            }
        }
        Ok(None)
    }

    fn take(&self, id: &PromptId, line: &str) {
        let Some(consent) = self.consent.get().and_then(Weak::upgrade) else { return };
        let said = match answer(line) {
            Some(answer) => match consent.answer(id, answer) {
                Ok(()) | Err(AnswerError::NotOpen) => return,
                Err(error) => format!("{error}."),
            },
            // It may be a stray key of nobody who reads: the countdown goes on.
            None => layout::no_answer(line, seconds_left(&consent, id)),
        };
        let choices = self.shown().as_ref().map(|shown| layout::choices(&shown.prompt)).unwrap_or_default();
        self.console.write(&format!("{said}\n{choices}"));
    }

    fn lost(&self) {
        self.gone.store(true, Ordering::SeqCst);
        *self.shown() = None;
        if let Some(consent) = self.consent.get().and_then(Weak::upgrade) {
            consent.withdraw_all(Withdrawal::NobodyThere);
        }
    }
}

/// The terminal went away.
struct Gone;

fn seconds_left(consent: &Consent, id: &PromptId) -> Option<f64> {
    consent.open_prompts().into_iter().find(|open| open.prompt.id == *id)?.seconds_left
}

/// `y` and `yes` are no answers: they come too easily.
fn answer(line: &str) -> Option<Answer> {
    match line.trim().to_ascii_lowercase().as_str() {
        "" | "d" | "n" | "no" | "deny" => Some(Answer::Deny),
        "o" | "once" => Some(Answer::AllowOnce),
        "15" => Some(Answer::Allow15Minutes),
        "c" | "chat" => Some(Answer::AllowChat),
        "x" => Some(Answer::DenyAndDisconnect),
        _ => None,
    }
}
