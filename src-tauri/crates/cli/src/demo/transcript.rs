//! What is printed: one line for each step with who does it and how long it took, and what came of it below.

use std::fmt::Display;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::failure::{Code, Outcome, failed};

/// Columns of the step's text; longer ones push the time to the right.
const WIDTH: usize = 74;

/// Lines of one answer that are shown.
const MOST_LINES: usize = 16;

/// Who does something.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who {
    Platform,
    Person,
    Machine,
    Agent,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Person => "person",
            Self::Machine => "machine",
            Self::Agent => "agent",
        }
    }
}

/// The demo's output, and its clock.
pub(super) struct Transcript {
    began: Instant,
}

impl Transcript {
    pub(super) fn new() -> Self {
        Self { began: Instant::now() }
    }

    /// The heading of the steps that follow.
    pub(super) fn chapter(&self, title: &str) -> Outcome {
        print(format_args!("\n{title}\n"))
    }

    /// Does a step, and prints it with the time it took.
    pub(super) async fn step<T>(
        &self,
        who: Who,
        what: impl Display,
        doing: impl Future<Output = Outcome<T>>,
    ) -> Outcome<T> {
        let started = Instant::now();
        let done = doing.await;
        match &done {
            Ok(_) => self.told(who, what, started.elapsed())?,
            Err(_) => self.told(who, format_args!("{what}  FAILED"), started.elapsed())?,
        }
        done
    }

    /// Prints a step that was done.
    pub(super) fn told(&self, who: Who, what: impl Display, took: Duration) -> Outcome {
        let (who, what, took) = (who.name(), what.to_string(), took.as_millis());
        print(format_args!("  {who:<9} {what:<WIDTH$} {took:>6} ms"))
    }

    /// What came of the step above.
    pub(super) fn detail(&self, text: impl Display) -> Outcome {
        let text = text.to_string();
        let lines: Vec<_> = text.lines().collect();
        for line in lines.iter().take(MOST_LINES) {
            print(format_args!("            | {line}"))?;
        }
        match lines.len().saturating_sub(MOST_LINES) {
            0 => Ok(()),
            more => print(format_args!("            | … {more} more lines")),
        }
    }

    /// A line for the person who watches.
    pub(super) fn note(&self, text: impl Display) -> Outcome {
        print(format_args!("  {text}"))
    }

    /// The last line.
    pub(super) fn end(&self, kept: bool) -> Outcome {
        let seconds = self.began.elapsed().as_secs_f64();
        let whole = if kept { String::new() } else { format!(" in {seconds:.1} s") };
        print(format_args!("\nDone{whole}. No process and no file was left behind."))
    }
}

/// Unlike the other commands this one has something to clear away when nobody reads any more, so it does not just exit.
fn print(text: impl Display) -> Outcome {
    writeln!(std::io::stdout().lock(), "{text}").map_err(failed(Code::Failed))
}
