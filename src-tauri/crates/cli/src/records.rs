//! Records of the audit log, in columns for reading.

use executor::consent::visible_line;
use serde_json::Value;

/// Characters of what a record is about that are shown; `audit show` has all of it.
const LONGEST: usize = 120;

/// A line of the log without the fields that are for machines: number, beginning of its hmac, operation, how it went,
/// what it was about. A line that is no record is shown as it is. Fit for a terminal.
pub(crate) fn in_short(line: &str) -> String {
    let record = match serde_json::from_str(line) {
        Ok(record @ Value::Object(_)) => record,
        Ok(_) | Err(_) => return shortened(line),
    };
    let how = record["result"]["error_code"].as_str().unwrap_or("ok");
    let hmac: String = text(&record["hmac"]).chars().take(8).collect();
    let line = format!(
        "{:>3} {hmac:<8} {:<16} {how:<26} {}",
        record["seq"].to_string(),
        text(&record["op"]),
        shortened(&about(&record["details"]))
    );
    visible_line(line.trim_end())
}

/// What a person wants to know of a record's details.
fn about(details: &Value) -> String {
    if let (Some(capability), Some(decision)) = (details["capability"].as_str(), details["decision"].as_str())
    {
        return match decision {
            "allowed" => format!("{capability}: allowed"),
            reason => format!("{capability}: denied ({reason})"),
        };
    }
    let told = ["path", "argv", "command", "reason", "allowed_root", "keys"];
    match told.into_iter().map(|key| &details[key]).find(|value| !value.is_null()) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn shortened(text: &str) -> String {
    let text = visible_line(text);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_one_line_of_columns() {
        let record = json!({
            "seq": 28, "hmac": "f43d5ef6aa", "op": "EXECUTE_COMMAND", "details": {"command": "sh test.sh; rm -rf .."},
            "result": {"ok": false, "error_code": "CONSENT_REQUIRED"},
        });
        assert_eq!(
            in_short(&record.to_string()),
            " 28 f43d5ef6 EXECUTE_COMMAND  CONSENT_REQUIRED           sh test.sh; rm -rf .."
        );
        let record = json!({
            "seq": 29, "hmac": "da11118eaa", "op": "CONSENT", "details": {"capability": "shell", "decision": "rule"},
            "result": {"ok": true, "error_code": null},
        });
        assert_eq!(
            in_short(&record.to_string()),
            " 29 da11118e CONSENT          ok                         shell: denied (rule)"
        );
        let record = json!({"seq": 1, "hmac": "0123456789", "op": "SHIM_START", "details": {}, "result": {}});
        assert_eq!(in_short(&record.to_string()), "  1 01234567 SHIM_START       ok");
    }

    #[test]
    fn what_an_agent_wrote_neither_steers_the_terminal_nor_fills_it() {
        let record = json!({"seq": 1, "op": "FILE_READ", "details": {"path": format!("a\n\u{1b}[2J{}", "x".repeat(500))}});
        let line = in_short(&record.to_string());
        assert!(!line.contains(['\n', '\u{1b}']) && line.ends_with('…'), "{line:?}");
        assert!(line.chars().count() < 200, "{line}");
        assert_eq!(in_short("half a rec\u{1b}"), "half a rec⟦U+001B⟧");
    }
}
