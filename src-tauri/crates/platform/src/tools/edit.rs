//! `edit_file`: replace a text that stands there once.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::files::{read_bytes, write_bytes};
use super::{Call, ToolError, ToolResult, arguments};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// Reads, replaces, checks that the file is still what was read, writes. The wire has no conditional write, so a change
/// of somebody else's between the last two steps is lost; edits through this platform wait for each other.
pub(super) async fn edit(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let edit: Edit = arguments(args)?;
    if edit.old_string.is_empty() || edit.old_string == edit.new_string {
        return Err(ToolError::arguments("old_string must not be empty, and must differ from new_string"));
    }
    let _alone = call.app.edits.lock(&call.session.id).await;
    let before = read_whole(call, &edit.path).await?;
    let text = String::from_utf8(before)
        .map_err(|_| ToolError::new("NOT_TEXT", "the file is not UTF-8 text; use write_file with base64"))?;
    let (after, replacements) = replace(&text, &edit)?;
    if read_whole(call, &edit.path).await? != text.as_bytes() {
        let why = "the file changed while it was being edited; nothing was written: read it again";
        return Err(ToolError::new("EDIT_CONFLICT", why));
    }
    let size = after.len();
    write_bytes(call, edit.path, after.into_bytes(), false).await?;
    Ok(json!({ "replacements": replacements, "size_bytes": size }))
}

async fn read_whole(call: &Call<'_>, path: &str) -> Result<Vec<u8>, ToolError> {
    let read = read_bytes(call, path, 0, None).await?;
    if read.truncated { Err(ToolError::too_large()) } else { Ok(read.bytes) }
}

fn replace(text: &str, edit: &Edit) -> Result<(String, usize), ToolError> {
    let count = text.matches(&edit.old_string).count();
    match count {
        0 if text.contains("\r\n") && edit.old_string.contains('\n') && !edit.old_string.contains('\r') => {
            let why = "old_string is not in the file; its lines end with \\r\\n, so old_string's must too";
            Err(ToolError::new("NO_MATCH", why))
        }
        0 => Err(ToolError::new("NO_MATCH", "old_string is not in the file; read it again")),
        1 => Ok((text.replacen(&edit.old_string, &edit.new_string, 1), 1)),
        _ if edit.replace_all => Ok((text.replace(&edit.old_string, &edit.new_string), count)),
        _ => Err(ToolError::new(
            "NOT_UNIQUE",
            format!(
                "old_string stands there {count} times; give more of its surroundings, or set replace_all"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(text: &str, old: &str, new: &str, replace_all: bool) -> Result<(String, usize), String> {
        let edit =
            Edit { path: String::new(), old_string: old.to_owned(), new_string: new.to_owned(), replace_all };
        replace(text, &edit).map_err(|error| error.code)
    }

    #[test]
    fn only_a_unique_text_is_replaced_unless_all_are_asked_for() {
        assert_eq!(attempt("a b", "b", "c", false), Ok(("a c".to_owned(), 1)));
        assert_eq!(attempt("b b", "b", "c", false), Err("NOT_UNIQUE".to_owned()));
        assert_eq!(attempt("b b", "b", "c", true), Ok(("c c".to_owned(), 2)));
        assert_eq!(attempt("a", "b", "c", true), Err("NO_MATCH".to_owned()));
        assert!(replace_hint().contains("\\r\\n"));
    }

    fn replace_hint() -> String {
        let edit = Edit {
            path: String::new(),
            old_string: "a\nb".to_owned(),
            new_string: "x".to_owned(),
            replace_all: false,
        };
        replace("a\r\nb", &edit).unwrap_err().message
    }
}
