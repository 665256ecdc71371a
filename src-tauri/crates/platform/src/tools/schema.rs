//! JSON Schemas of the tools' arguments.

use serde_json::{Map, Value, json};

/// An object of these properties and no others; the first names are required.
fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn flag(description: &str, default: bool) -> Value {
    json!({ "type": "boolean", "description": description, "default": default })
}

fn count(description: &str, minimum: u32) -> Value {
    json!({ "type": "integer", "minimum": minimum, "description": description })
}

fn pixel(description: &str) -> Value {
    json!({ "type": "integer", "description": description })
}

fn one_of(values: &[&str], default: &str) -> Value {
    json!({ "type": "string", "enum": values, "default": default })
}

fn path() -> Value {
    text("Absolute, or relative to the session's folder")
}

fn encoding() -> Value {
    one_of(&["utf-8", "base64"], "utf-8")
}

fn modifiers() -> Value {
    json!({ "type": "array", "items": { "type": "string", "enum": ["shift", "ctrl", "alt", "super"] } })
}

pub(super) fn read_file() -> Value {
    object(
        &["path"],
        json!({
            "path": path(),
            "encoding": encoding(),
            "offset": count("First byte", 0),
            "length": count("Bytes to read; 256 KiB when not given", 1),
        }),
    )
}

pub(super) fn write_file() -> Value {
    object(
        &["path", "content"],
        json!({
            "path": path(),
            "content": text("The whole new content"),
            "encoding": encoding(),
            "create_parents": flag("Make missing folders on the way", true),
        }),
    )
}

pub(super) fn edit_file() -> Value {
    object(
        &["path", "old_string", "new_string"],
        json!({
            "path": path(),
            "old_string": text("Text to replace, exactly as it stands; it must be unique unless replace_all is set"),
            "new_string": text("Text to put there"),
            "replace_all": flag("Replace every occurrence", false),
        }),
    )
}

pub(super) fn glob() -> Value {
    object(
        &["pattern"],
        json!({
            "pattern": text("Relative to path; ** goes through folders, as in src/**/*.rs"),
            "path": text("Folder to search; the session's folder when not given"),
            "include_hidden": flag("Hidden entries too", false),
            "limit": count("At most 1000", 1),
        }),
    )
}

pub(super) fn grep() -> Value {
    object(
        &["pattern"],
        json!({
            "pattern": text("Regular expression, applied to each line"),
            "path": text("File or folder to search; the session's folder when not given"),
            "glob": text("Only files that match, as *.rs or src/**/*.rs"),
            "case_insensitive": flag("Ignore case", false),
            "include_hidden": flag("Hidden files too", false),
            "max_matches": count("200 when not given, at most 2000", 1),
        }),
    )
}

pub(super) fn bash_exec() -> Value {
    object(
        &[],
        json!({
            "command": text("A line for the shell; give this or argv"),
            "argv": { "type": "array", "items": { "type": "string" }, "description": "A program and its arguments" },
            "shell": one_of(&["auto", "bash", "sh", "zsh", "pwsh", "powershell", "cmd"], "auto"),
            "cwd": text("Folder to run in; the session's folder when not given"),
            "timeout_seconds": { "type": "number", "exclusiveMinimum": 0 },
            "env": { "type": "object", "additionalProperties": { "type": "string" } },
        }),
    )
}

pub(super) fn screenshot() -> Value {
    object(
        &[],
        json!({
            "monitor": { "type": "integer", "minimum": -1, "default": 0, "description": "0 is the primary, -1 all" },
            "quality": { "type": "integer", "minimum": 1, "maximum": 100, "default": 75 },
            "region": {
                "type": "array", "items": { "type": "integer" }, "minItems": 4, "maxItems": 4,
                "description": "[x1, y1, x2, y2] in physical pixels",
            },
            "window_id": text("From local_pc_list_windows"),
            "format": one_of(&["jpeg", "png"], "jpeg"),
            "include_cursor": flag("Draw the pointer in", true),
        }),
    )
}

pub(super) fn click() -> Value {
    object(
        &["x", "y"],
        json!({
            "x": pixel("Physical pixels of the virtual desktop"),
            "y": pixel("Physical pixels of the virtual desktop"),
            "button": one_of(&["left", "middle", "right"], "left"),
            "clicks": { "type": "integer", "minimum": 1, "maximum": 3, "default": 1 },
            "modifiers": modifiers(),
        }),
    )
}

pub(super) fn type_text() -> Value {
    object(
        &["text"],
        json!({
            "text": text("What to type, any Unicode"),
            "paste": flag("Through the clipboard, for long texts", false),
            "preserve_clipboard": flag("Put the clipboard back afterwards", false),
        }),
    )
}

pub(super) fn key() -> Value {
    object(
        &["key"],
        json!({
            "key": text("As ctrl+shift+s, enter, f5 or a"),
            "hold_ms": { "type": "integer", "minimum": 1, "maximum": 5000, "description": "Hold it down so long" },
        }),
    )
}

pub(super) fn scroll() -> Value {
    object(
        &["direction"],
        json!({
            "direction": { "type": "string", "enum": ["up", "down", "left", "right"] },
            "amount": { "type": "integer", "minimum": 1, "default": 3, "description": "Notches" },
            "x": pixel("Where; the pointer's place when not given"),
            "y": pixel("Where; the pointer's place when not given"),
            "modifiers": modifiers(),
        }),
    )
}

pub(super) fn drag() -> Value {
    object(
        &["path"],
        json!({
            "path": {
                "type": "array", "minItems": 2, "description": "Press at the first point, release at the last",
                "items": { "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 },
            },
            "button": one_of(&["left", "middle", "right"], "left"),
            "modifiers": modifiers(),
        }),
    )
}

pub(super) fn list_windows() -> Value {
    object(
        &[],
        json!({
            "app_bundle_id": text("Of this application only"),
            "include_minimized": flag("Minimised ones too", false),
            "include_offscreen": flag("Ones outside the displays too", false),
        }),
    )
}

pub(super) fn focus_window() -> Value {
    let raise = flag("Bring it to the front too", true);
    object(&["window_id"], json!({ "window_id": text("From local_pc_list_windows"), "raise": raise }))
}

pub(super) fn list_apps() -> Value {
    object(&[], json!({ "include_background": flag("Ones without a window too", false) }))
}

pub(super) fn launch_app() -> Value {
    object(
        &[],
        json!({
            "bundle_id": text("By id; give this or executable_path"),
            "executable_path": text("By program"),
            "args": { "type": "array", "items": { "type": "string" } },
            "activate": flag("Bring it to the front", true),
        }),
    )
}

pub(super) fn clipboard_read() -> Value {
    object(&[], json!({ "format": one_of(&["text", "image"], "text") }))
}

pub(super) fn clipboard_write() -> Value {
    let content = text("Text, or base64 of a PNG");
    object(&["content"], json!({ "content": content, "format": one_of(&["text", "image"], "text") }))
}

pub(super) fn nothing() -> Value {
    object(&[], Value::Object(Map::new()))
}
