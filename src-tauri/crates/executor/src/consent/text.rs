//! Foreign text for a person's eyes: nothing in it may be invisible, change the order of what is read, or push
//! the rest out of sight.

/// Longest text that one line of a prompt shows, in characters; of what is longer the beginning and the end.
pub(crate) const MAX_TEXT: usize = 16_000;
/// So much of [`MAX_TEXT`] is the end.
const TAIL: usize = 4_000;
/// Longest run of spaces, and of empty lines, that is shown as it is.
const MAX_SPACES: usize = 40;
const MAX_EMPTY_LINES: usize = 3;

/// `text` with every invisible, reordering or controlling character written out as `⟦U+202E⟧`, and long runs of
/// blanks as `⟦400 spaces⟧`. Line breaks and tabs stay, as `\n` and `\t`.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let mut run = 1;
        if matches!(character, ' ' | '\t' | '\n') {
            while rest.next_if_eq(&character).is_some() {
                run += 1;
            }
        }
        match character {
            ' ' | '\t' if run > MAX_SPACES => {
                shown.push_str(&format!("⟦{run} {}⟧", if character == ' ' { "spaces" } else { "tabs" }));
            }
            '\n' if run > MAX_EMPTY_LINES + 1 => shown.push_str(&format!("\n⟦{} empty lines⟧\n", run - 1)),
            ' ' | '\t' | '\n' => shown.extend(std::iter::repeat_n(character, run)),
            hidden if is_hidden(hidden) => shown.push_str(&format!("⟦U+{:04X}⟧", u32::from(hidden))),
            plain => shown.push(plain),
        }
    }
    shown
}

/// Like [`visible`], on one line: for titles and names.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "⟦U+000A⟧").replace('\t', " ")
}

/// At most `limit` characters of `text` made visible, and how many were left out. The beginning and the end are
/// kept, since an attacker who can choose only the length would otherwise choose what is not seen.
pub(crate) fn shortened(text: &str, limit: usize) -> (String, usize) {
    let length = text.chars().count();
    if length <= limit {
        return (visible(text), 0);
    }
    let tail = TAIL.min(limit / 4);
    let left_out = length - limit;
    let at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    let (head, end) = (&text[..at(limit - tail)], &text[at(length - tail)..]);
    let gap = format!("\n⟦{left_out} characters not shown⟧\n");
    (format!("{}{gap}{}", visible(head), visible(end)), left_out)
}

/// An argument list as one line in which each argument can be told from its neighbours: quoted where a shell
/// would need quotes.
pub fn quoted(argv: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:,+@%^~".contains(c);
    let quote = |argument: &String| {
        if !argument.is_empty() && argument.chars().all(plain) {
            return argument.clone();
        }
        format!("'{}'", argument.replace('\'', r"'\''"))
    };
    argv.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Controls, formats, blanks that are not the space bar's, and code points without a meaning of their own.
/// Ranges from Unicode 16's `Default_Ignorable_Code_Point`, `White_Space`, `Bidi_Control`, `Cc`, `Co`, `Cn` (non-characters).
fn is_hidden(character: char) -> bool {
    matches!(u32::from(character),
        0x00..=0x08 | 0x0B..=0x1F | 0x7F..=0xA0 | 0xAD
        | 0x034F | 0x061C | 0x115F..=0x1160 | 0x1680 | 0x17B4..=0x17B5 | 0x180B..=0x180F
        | 0x2000..=0x200F | 0x2028..=0x202F | 0x205F..=0x206F | 0x2800
        | 0x3000 | 0x3164 | 0xE000..=0xF8FF | 0xFDD0..=0xFDEF
        | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0xFFFE..=0xFFFF
        | 0x1BCA0..=0x1BCA3 | 0x1D159 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF | 0xF0000..)
        || u32::from(character) & 0xFFFE == 0xFFFE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_of_any_script_stays_as_it_is() {
        let text = "git log --oneline | head -3\n\techo 'é ß 漢字 שלום مرحبا हिन्दी 😀'";
        assert_eq!(visible(text), text);
    }

    #[test]
    fn invisible_and_reordering_characters_are_written_out() {
        assert_eq!(visible("a\u{202e}b\u{200b}c\u{2066}d"), "a⟦U+202E⟧b⟦U+200B⟧c⟦U+2066⟧d");
        assert_eq!(visible("\u{1b}[2Jx\r\u{7}\u{9b}"), "⟦U+001B⟧[2Jx⟦U+000D⟧⟦U+0007⟧⟦U+009B⟧");
        assert_eq!(visible("\u{feff}\u{e0041}\u{3164}\u{a0}"), "⟦U+FEFF⟧⟦U+E0041⟧⟦U+3164⟧⟦U+00A0⟧");
        assert_eq!(visible_line("a\nb"), "a⟦U+000A⟧b");
    }

    #[test]
    fn blanks_cannot_push_the_rest_out_of_sight() {
        assert_eq!(visible(&format!("ls{}; rm -rf ~", " ".repeat(400))), "ls⟦400 spaces⟧; rm -rf ~");
        assert_eq!(visible(&format!("ls{}rm", "\n".repeat(500))), "ls\n⟦499 empty lines⟧\nrm");
        assert_eq!(visible("a\n\nb    c"), "a\n\nb    c");
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end_and_says_how_much_is_missing() {
        let text = format!("start{}end", "ä".repeat(1_000_000));
        let (shown, left_out) = shortened(&text, MAX_TEXT);
        assert_eq!(left_out, 1_000_008 - MAX_TEXT);
        assert!(shown.starts_with("start") && shown.ends_with("end"));
        assert!(shown.contains(&format!("⟦{left_out} characters not shown⟧")));
        assert_eq!(shortened("short", MAX_TEXT), ("short".into(), 0));
    }

    #[test]
    fn arguments_can_be_told_apart() {
        let argv = ["echo", "a b", "", "it's", "x;y", "--flag=1"].map(String::from);
        assert_eq!(quoted(&argv), r"echo 'a b' '' 'it'\''s' 'x;y' --flag=1");
    }

    proptest::proptest! {
        #[test]
        fn nothing_hidden_is_left(text in proptest::collection::vec(proptest::char::any(), 0..200)) {
            let text: String = text.into_iter().collect();
            let shown = visible(&text);
            proptest::prop_assert!(!shown.chars().any(is_hidden), "{:?}", shown);
            proptest::prop_assert!(!visible_line(&text).contains('\n'));
        }
    }
}
