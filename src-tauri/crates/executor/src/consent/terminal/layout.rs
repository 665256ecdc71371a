//! How a prompt looks in a terminal. Every line of it begins with our own mark, also where a long line of the
//! action is broken, so that an action cannot draw a prompt's frame or an answer.

use super::super::desk::COUNTDOWN;
use super::super::outcome::Withdrawal;
use super::super::prompt::{Answer, End, Prompt};
use super::super::text::visible_line;

const MARK: &str = "| ";

pub(super) fn prompt(prompt: &Prompt, width: usize) -> String {
    let mut text = String::from("\n");
    let mut put = |line: &str, indent: usize| {
        let room = width.saturating_sub(MARK.len() + indent + 1).max(10);
        for line in line.split('\n') {
            for piece in pieces(&line.replace('\t', "    "), room) {
                text.push_str(&format!("{MARK}{:indent$}{piece}\n", ""));
            }
        }
    };
    put(&format!("Deskhand asks you: {}", prompt.title), 0);
    put(&format!("for {}, chat {}", prompt.host, prompt.session_id), 0);
    for line in &prompt.lines {
        put(&format!("{}:", line.label), 0);
        put(&line.text, 4);
    }
    if prompt.left_out > 0 {
        put(&format!("{} characters of this are not shown.", prompt.left_out), 0);
    }
    if prompt.offers.contains(&Answer::AllowChat) {
        put(&format!("15 and c let this chat {}.", prompt.covers), 0);
    }
    put(&format!("Without an answer within {} s it is denied.", COUNTDOWN.as_secs()), 0);
    text.push_str(&choices(prompt));
    text
}

/// What is said to a line that is no answer, before the choices.
pub(super) fn no_answer(line: &str, seconds_left: Option<f64>) -> String {
    let within = seconds_left.map_or_else(String::new, |seconds| format!(" within {seconds:.0} s"));
    format!("`{}` is not an answer: type one of these{within}.", visible_line(line.trim()))
}

pub(super) fn choices(prompt: &Prompt) -> String {
    let name = |answer: &Answer| match answer {
        Answer::Deny => "Enter: deny",
        Answer::AllowOnce => "o: allow once",
        Answer::Allow15Minutes => "15: allow for 15 minutes",
        Answer::AllowChat => "c: allow for this chat",
        Answer::DenyAndDisconnect => "x: deny and disconnect",
    };
    let choices: Vec<_> = prompt.offers.iter().map(name).collect();
    format!("{}\n> ", choices.join(" | "))
}

pub(super) fn end(end: End) -> &'static str {
    match end {
        End::Answered(Answer::AllowOnce) => "Allowed once.",
        End::Answered(Answer::Allow15Minutes) => "Allowed for 15 minutes.",
        End::Answered(Answer::AllowChat) => "Allowed for this chat.",
        End::Answered(Answer::Deny) => "Denied.",
        End::Answered(Answer::DenyAndDisconnect) => "Denied and disconnected.",
        End::Covered => "Allowed by your last answer.",
        End::TimedOut => "Denied: no answer in time.",
        End::Rule => "Decided by your settings.",
        End::Withdrawn(Withdrawal::Killed) => "Stopped.",
        End::Withdrawn(Withdrawal::Paused) => "Denied too often: this chat is paused until you resume it.",
        End::Withdrawn(
            Withdrawal::Cancelled
            | Withdrawal::SessionEnded
            | Withdrawal::NobodyThere
            | Withdrawal::QueueFull,
        ) => "Taken back: nobody waits for an answer any more.",
    }
}

/// Breaks a line into pieces of at most `room` columns. Wide characters count two; one too many leaves a column
/// free, one too few would break the frame.
fn pieces(line: &str, room: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for character in line.chars() {
        let columns = if character < '\u{1100}' { 1 } else { 2 };
        if used + columns > room {
            pieces.push(String::new());
            used = 0;
        }
        if let Some(last) = pieces.last_mut() {
            last.push(character);
        }
        used += columns;
    }
    pieces
}
