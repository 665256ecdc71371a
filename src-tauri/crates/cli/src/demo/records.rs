//! Records of the audit log, for reading.

use serde_json::Value;

/// A record without the fields that are for machines.
pub(super) fn in_short(record: &Value) -> String {
    let about = about(&record["details"]);
    let how = match &record["result"]["error_code"] {
        Value::String(code) => code.as_str(),
        _ => "ok",
    };
    let hmac: String = record["hmac"].as_str().unwrap_or_default().chars().take(8).collect();
    format!(
        "{:>3} {hmac} {:<16} {how:<26} {}",
        record["seq"],
        record["op"].as_str().unwrap_or_default(),
        about
    )
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
    let told =
        ["path", "argv", "command"].into_iter().map(|key| &details[key]).find(|value| !value.is_null());
    match told {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}
