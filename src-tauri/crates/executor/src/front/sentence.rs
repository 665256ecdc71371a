//! A record of the audit log in a person's words.

use serde_json::Value;

use super::view::Kind;
use crate::consent::{quoted, visible_line};

/// Longer details are cut: a row is one line.
const MAX_DETAIL: usize = 200;

/// What an operation is about.
pub(super) fn kind(op: &str) -> Kind {
    match op {
        "FILE_READ" | "FILE_LIST" | "FILE_STAT" | "DIRECTORY_LIST" => Kind::Read,
        "FILE_WRITE" | "FILE_DELETE" | "FILE_MOVE" => Kind::Write,
        "EXECUTE_COMMAND" | "COMMAND_STARTED" => Kind::Shell,
        "SCREENSHOT_REQUEST" | "WINDOW_LIST_REQUEST" | "APP_LIST_REQUEST" | "DISPLAY_INFO_REQUEST" => {
            Kind::Screen
        }
        "INPUT_ACTION" | "WINDOW_FOCUS" | "APP_LAUNCH" => Kind::Input,
        "CLIPBOARD_READ" | "CLIPBOARD_WRITE" => Kind::Clipboard,
        "SHIM_START"
        | "SHIM_STOP"
        | "WS_CONNECTED"
        | "WS_DISCONNECTED"
        | "TOKEN_REFRESHED"
        | "SESSION_REVOKED"
        | "ATTACH_SESSION"
        | "ACTIVATE_SESSION"
        | "RESTORE_SESSION"
        | "DETACH_SESSION"
        | "IDLE_SESSION_DETACH"
        | "SESSION_ALLOWED_ROOT_SET"
        | "KILL_SWITCH"
        | "PAUSED"
        | "RESUMED" => Kind::Connection,
        "SETTINGS_CHANGED" | "CONFIG_RELOADED" => Kind::Settings,
        recording if recording.starts_with("RECORDING_") => Kind::Record,
        _ => Kind::Other, // operations are the log's: an older or newer version may have written others
    }
}

/// What happened. `details` is the record's.
pub(super) fn sentence(op: &str, details: &Value) -> String {
    let text = |key: &str| detail(&details[key]);
    let path = || text("path");
    let size = |key: &str| details[key].as_u64().map_or_else(String::new, |n| format!(" ({})", bytes(n)));
    match op {
        "FILE_READ" => format!("Read {}{}", path(), size("size_bytes_returned")),
        "FILE_WRITE" => format!("Wrote {}{}", path(), size("size_bytes_written")),
        "FILE_STAT" => format!("Looked at {}", path()),
        "FILE_LIST" => format!("Listed {}", path()),
        "FILE_DELETE" => format!("Deleted {}", path()),
        "FILE_MOVE" => format!("Moved {} to {}", text("src"), text("dst")),
        "DIRECTORY_LIST" if details["path"].is_string() => format!("The platform looked into {}", path()),
        "DIRECTORY_LIST" => "The platform looked at the shared folders".to_owned(),
        "EXECUTE_COMMAND" => format!("Ran {}", command(details)),
        "COMMAND_STARTED" => format!("Started {}", command(details)),
        "CONSENT" => consent(details),
        "JAIL_VIOLATION" => format!("Tried to reach {}, outside its folder", path()),
        "SHIM_START" => "Deskhand started".to_owned(),
        "SHIM_STOP" => "Deskhand ended".to_owned(),
        "WS_CONNECTED" => "Connected to the platform".to_owned(),
        "WS_DISCONNECTED" => format!("Disconnected: {}", text("reason")),
        "TOKEN_REFRESHED" => "Renewed the sign-in".to_owned(),
        "SESSION_REVOKED" => "The platform ended a chat's access".to_owned(),
        "ATTACH_SESSION" => "A chat asked for a folder".to_owned(),
        "ACTIVATE_SESSION" => format!("A chat started to work in {}", text("allowed_root")),
        "RESTORE_SESSION" => format!("A chat went on in {}", text("allowed_root")),
        "DETACH_SESSION" => "A chat let go of its folder".to_owned(),
        "IDLE_SESSION_DETACH" => "An idle chat was ended".to_owned(),
        "SESSION_ALLOWED_ROOT_SET" => format!("A chat was given {}", text("allowed_root")),
        "KILL_SWITCH" => "Everything was stopped".to_owned(),
        "PAUSED" => "Paused".to_owned(),
        "RESUMED" => "Resumed".to_owned(),
        "CONFIG_RELOADED" | "SETTINGS_CHANGED" => format!("Settings changed: {}", list(&details["keys"])),
        "LOG_ROTATED" => "A new log file was begun".to_owned(),
        "LOG_REPAIRED" => "A half-written line of the log was set aside".to_owned(),
        other => words(other),
    }
}

/// How it ended. `result` is the record's.
pub(super) fn outcome(result: &Value) -> (bool, String) {
    let ok = result["ok"].as_bool() == Some(true);
    let said = match (result["error_code"].as_str(), result["exit_code"].as_i64()) {
        (Some("CANCELLED"), _) => "cancelled".to_owned(),
        (Some("CONSENT_REQUIRED"), _) => "not allowed".to_owned(),
        (Some(code), _) => words(code).to_lowercase(),
        (None, Some(code)) if code != 0 => format!("ended with exit code {code}"),
        (None, _) if ok => "done".to_owned(),
        (None, _) => "failed".to_owned(),
    };
    (ok, said)
}

/// What a request does while it does it.
pub(super) fn doing(op: &str) -> &'static str {
    match kind(op) {
        Kind::Read => "Reading files",
        Kind::Write => "Changing files",
        Kind::Shell => "Running a command",
        Kind::Screen => "Looking at the screen",
        Kind::Input => "Typing or clicking",
        Kind::Clipboard => "Using the clipboard",
        Kind::Record => "Recording",
        Kind::Connection | Kind::Settings | Kind::Other => "Working",
    }
}

fn command(details: &Value) -> String {
    match (&details["command"], details["argv"].as_array()) {
        (Value::String(line), _) => cut(&visible_line(line)),
        (_, Some(argv)) => {
            let words: Vec<_> = argv.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            cut(&quoted(&words))
        }
        _ => "a command".to_owned(),
    }
}

fn consent(details: &Value) -> String {
    let what = match details["capability"].as_str() {
        Some("shell") => "Running a command",
        Some("read") => "Reading",
        Some("write") => "Changing files",
        Some("screen") => "Looking at the screen",
        Some("input") => "Typing and clicking",
        Some("clipboard") => "Using the clipboard",
        Some("recording" | "record") => "Recording",
        Some(_) | None => "An action",
    };
    let how = match (details["decision"].as_str(), details["scope"].as_str()) {
        (Some("allowed"), Some("once")) => "you allowed it once",
        (Some("allowed"), Some("15_minutes")) => "you allowed it for 15 minutes",
        (Some("allowed"), Some("chat")) => "you allowed it for this chat",
        (Some("allowed"), Some("rule")) => "a rule allowed it",
        (Some("allowed"), _) => "allowed",
        (Some("declined"), _) => "you did not allow it",
        (Some("timed_out"), _) => "nobody answered, so it was refused",
        (Some("withdrawn"), _) => "the question was taken back",
        (Some("rule"), _) => "a rule refused it",
        (Some(_) | None, _) => "decided",
    };
    format!("{what}: {how}")
}

fn detail(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() || text == "." => "the folder".to_owned(),
        Value::String(text) => cut(&visible_line(text)),
        Value::Null => "something".to_owned(),
        other => cut(&other.to_string()),
    }
}

fn list(value: &Value) -> String {
    let keys: Vec<_> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if keys.is_empty() { "none".to_owned() } else { cut(&visible_line(&keys.join(", "))) }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_DETAIL) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// `PATH_NOT_FOUND` → `Path not found`.
fn words(code: &str) -> String {
    let lower = visible_line(code).replace('_', " ").to_lowercase();
    let mut letters = lower.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn bytes(n: u64) -> String {
    match n {
        0..1_000 => format!("{n} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        _ => format!("{:.1} MB", n as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_read_as_sentences() {
        let said = |op: &str, details: Value| sentence(op, &details);
        assert_eq!(
            said("FILE_READ", json!({"path": "a/b.md", "size_bytes_returned": 1500})),
            "Read a/b.md (1.5 kB)"
        );
        assert_eq!(
            said("EXECUTE_COMMAND", json!({"argv": ["git", "commit", "-m", "a b"]})),
            "Ran git commit -m 'a b'"
        );
        assert_eq!(said("FILE_LIST", json!({"path": ""})), "Listed the folder");
        assert_eq!(
            said("CONSENT", json!({"capability": "shell", "decision": "allowed", "scope": "chat"})),
            "Running a command: you allowed it for this chat"
        );
        assert_eq!(said("SOMETHING_NEW", json!({})), "Something new");
        assert_eq!(kind("RECORDING_START"), Kind::Record);
    }

    #[test]
    fn what_comes_from_the_wire_stays_one_visible_line() {
        let path = format!("a\n\u{202e}{}", "x".repeat(10_000));
        let said = sentence("FILE_STAT", &json!({"path": path}));
        assert!(!said.contains('\n') && !said.contains('\u{202e}') && said.len() < 1_000, "{said}");
    }

    #[test]
    fn every_ending_has_words() {
        assert_eq!(
            outcome(&json!({"ok": true, "exit_code": null, "error_code": null})),
            (true, "done".into())
        );
        assert_eq!(outcome(&json!({"ok": true, "exit_code": 2})), (true, "ended with exit code 2".into()));
        assert_eq!(
            outcome(&json!({"ok": false, "error_code": "PATH_NOT_FOUND"})),
            (false, "path not found".into())
        );
    }
}
