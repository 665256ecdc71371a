//! What is kept of a command's output: UTF-8 text, both streams within one budget.

use std::str;

/// The end of `stderr` when something was dropped.
pub const TRUNCATION_MARK: &str = "[command output truncated]";

/// Which of the two pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Collects both streams as they come, first come first kept, and stops at the budget. Never holds more than
/// the budget.
#[derive(Debug)]
pub(crate) struct Transcript {
    limit: usize,
    room: usize,
    full: bool,
    stdout: LossyText,
    stderr: LossyText,
}

impl Transcript {
    pub(crate) fn new(limit: usize) -> Transcript {
        Transcript {
            limit,
            room: limit,
            full: false,
            stdout: LossyText::default(),
            stderr: LossyText::default(),
        }
    }

    /// Takes what was read next from `stream`, cut anywhere.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        if self.full || bytes.is_empty() {
            return;
        }
        let text = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        self.full = !text.push(bytes, &mut self.room);
    }

    /// Nothing more will be kept: what still comes may be thrown away unread.
    #[cfg(unix)]
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Both texts, and whether something was dropped.
    pub(crate) fn finish(mut self) -> (String, String, bool) {
        for text in [&mut self.stdout, &mut self.stderr] {
            if !self.full {
                self.full = !text.finish(&mut self.room);
            }
        }
        let (mut stdout, mut stderr) = (self.stdout.text, self.stderr.text);
        if self.full {
            mark_truncated(self.limit, &mut stdout, &mut stderr);
        }
        (stdout, stderr, self.full)
    }
}

/// Puts the mark at the end of `stderr`, and takes the room for it from the longer text: a short error
/// message survives a flood on the other stream. A budget smaller than the mark holds the start of the mark.
fn mark_truncated(limit: usize, stdout: &mut String, stderr: &mut String) {
    if limit <= TRUNCATION_MARK.len() {
        stdout.clear();
        stderr.clear();
        stderr.push_str(&TRUNCATION_MARK[..limit]);
        return;
    }
    let budget = limit - TRUNCATION_MARK.len();
    let own_line = |stderr: &str| !stderr.is_empty() && !stderr.ends_with('\n');
    loop {
        let newline = usize::from(own_line(stderr));
        let over = (stdout.len() + stderr.len() + newline).saturating_sub(budget);
        if over == 0 {
            break;
        }
        let longer = if stdout.len() >= stderr.len() { &mut *stdout } else { &mut *stderr };
        let cut = floor_char_boundary(longer, longer.len().saturating_sub(over));
        longer.truncate(cut);
    }
    if own_line(stderr) {
        stderr.push('\n');
    }
    stderr.push_str(TRUNCATION_MARK);
}

fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Decodes UTF-8 that comes in pieces; each invalid sequence becomes U+FFFD, exactly as in
/// [`String::from_utf8_lossy`] of the whole.
#[derive(Debug, Default)]
struct LossyText {
    text: String,
    /// The first bytes of a character whose rest has not come yet.
    begun: Vec<u8>,
}

impl LossyText {
    /// False when not all of it fitted into `room`; nothing more can be taken then.
    fn push(&mut self, mut bytes: &[u8], room: &mut usize) -> bool {
        while let (false, Some((next, rest))) = (self.begun.is_empty(), bytes.split_first()) {
            self.begun.push(*next);
            match str::from_utf8(&self.begun) {
                Ok(whole) => {
                    let fits = append(&mut self.text, whole, room);
                    self.begun.clear();
                    bytes = rest;
                    if !fits {
                        return false;
                    }
                }
                Err(error) if error.error_len().is_none() => bytes = rest,
                // The character begun was cut off; `next` starts something new.
                Err(_) => {
                    self.begun.clear();
                    if !append(&mut self.text, REPLACEMENT, room) {
                        return false;
                    }
                }
            }
        }
        for chunk in bytes.utf8_chunks() {
            if !append(&mut self.text, chunk.valid(), room) {
                return false;
            }
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            // Only at the very end can a sequence be unfinished rather than wrong.
            if str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none())
                && ends_with(bytes, invalid)
            {
                self.begun.extend_from_slice(invalid);
            } else if !append(&mut self.text, REPLACEMENT, room) {
                return false;
            }
        }
        true
    }

    /// No more comes: a character that was only begun is invalid.
    fn finish(&mut self, room: &mut usize) -> bool {
        let unfinished = !self.begun.is_empty();
        self.begun.clear();
        !unfinished || append(&mut self.text, REPLACEMENT, room)
    }
}

const REPLACEMENT: &str = "\u{FFFD}";

/// Whether `part`, a slice of `whole`, is its end.
fn ends_with(whole: &[u8], part: &[u8]) -> bool {
    whole.as_ptr_range().end == part.as_ptr_range().end
}

/// Appends as many whole characters as there is room for; false when some were left out, and then there is no
/// room any more.
fn append(text: &mut String, more: &str, room: &mut usize) -> bool {
    if more.len() <= *room {
        text.push_str(more);
        *room -= more.len();
        return true;
    }
    text.push_str(&more[..floor_char_boundary(more, *room)]);
    *room = 0;
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(limit: usize, pieces: &[(Stream, Vec<u8>)]) -> (String, String, bool) {
        let mut transcript = Transcript::new(limit);
        for (stream, bytes) in pieces {
            transcript.push(*stream, bytes);
        }
        transcript.finish()
    }

    fn whole(pieces: &[(Stream, Vec<u8>)], wanted: Stream) -> String {
        let bytes: Vec<u8> =
            pieces.iter().filter(|(stream, _)| *stream == wanted).flat_map(|(_, b)| b.clone()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn pieces() -> impl Strategy<Value = Vec<(Stream, Vec<u8>)>> {
        // Fragments of characters, so that the pieces join into valid, cut and overlong sequences.
        let byte = prop_oneof![
            Just(b'a'),
            Just(0xE2),
            Just(0x82),
            Just(0xAC),
            Just(0xF0),
            Just(0x9F),
            Just(0x98),
            Just(0x80),
            Just(0xC3),
            Just(0xA9),
            Just(0xFF),
            Just(b'\n'),
            any::<u8>()
        ];
        let stream = prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)];
        prop::collection::vec((stream, prop::collection::vec(byte, 0..24)), 0..24)
    }

    proptest! {
        #[test]
        fn all_of_it_is_kept_within_the_budget_as_if_decoded_whole(pieces in pieces()) {
            let (stdout, stderr) = (whole(&pieces, Stream::Stdout), whole(&pieces, Stream::Stderr));
            let exact = stdout.len() + stderr.len();
            prop_assert_eq!(collect(exact, &pieces), (stdout, stderr, false));
        }

        #[test]
        fn a_smaller_budget_is_kept_and_marked(pieces in pieces(), share in 0.0..1.0f64) {
            let (stdout, stderr) = (whole(&pieces, Stream::Stdout), whole(&pieces, Stream::Stderr));
            let exact = stdout.len() + stderr.len();
            prop_assume!(exact > 0);
            let limit = ((exact as f64) * share) as usize;
            let (out, err, truncated) = collect(limit, &pieces);
            prop_assert!(truncated);
            prop_assert!(out.len() + err.len() <= limit);
            prop_assert!(stdout.starts_with(&out));
            if limit >= TRUNCATION_MARK.len() {
                let kept = err.strip_suffix(TRUNCATION_MARK).unwrap();
                prop_assert!(stderr.starts_with(kept.strip_suffix('\n').unwrap_or(kept)));
            } else {
                prop_assert_eq!(&err, &TRUNCATION_MARK[..limit]);
            }
        }
    }

    #[test]
    fn a_flood_on_stdout_leaves_the_error_message() {
        let pieces = [(Stream::Stderr, b"no such file\n".to_vec()), (Stream::Stdout, vec![b'x'; 1000])];
        let (stdout, stderr, truncated) = collect(100, &pieces);
        assert!(truncated);
        assert_eq!(stderr, format!("no such file\n{TRUNCATION_MARK}"));
        assert_eq!(stdout.len() + stderr.len(), 100);
    }

    #[test]
    fn an_empty_budget_holds_nothing() {
        assert_eq!(collect(0, &[]), (String::new(), String::new(), false));
        assert_eq!(collect(0, &[(Stream::Stdout, vec![b'x'])]), (String::new(), String::new(), true));
    }
}
