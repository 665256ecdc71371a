//! The table of tools.

use protocol::{Capability, Coarse};

use super::{Needs, Run, Tool, computer, edit, files, grep, schema, search, shell};

macro_rules! tools {
    (@run There $function:path) => { Run::There(|call, arguments| Box::pin($function(call, arguments))) };
    (@run Here $function:path) => { Run::Here($function) };
    ($($name:literal, $needs:expr, $schema:path, $run:ident($function:path), $description:literal;)*) => {
        /// Every tool.
        pub(crate) static TOOLS: &[Tool] = &[$(Tool {
            name: $name,
            description: $description,
            schema: $schema,
            needs: $needs,
            run: tools!(@run $run $function),
        }),*];
    };
}

tools! {
    "read_file", Needs::Capability(Capability::Files), schema::read_file, There(files::read),
        "Read a file of the person's machine, or a range of its bytes.";
    "write_file", Needs::Capability(Capability::Files), schema::write_file, There(files::write),
        "Write a whole file on the person's machine; it is replaced at once or not at all.";
    "edit_file", Needs::Capability(Capability::Files), schema::edit_file, There(edit::edit),
        "Replace a text in a file. The text must stand there once, or replace_all be set.";
    "glob", Needs::Capability(Capability::Files), schema::glob, There(search::glob),
        "Find files by a path pattern.";
    "grep", Needs::Capability(Capability::Files), schema::grep, There(grep::grep),
        "Find lines that match a regular expression. Binary files and files over 4 MiB are skipped.";
    "bash_exec", Needs::Capability(Capability::Shell), schema::bash_exec, There(shell::exec),
        "Run a command on the person's machine, in the session's folder. The person may be asked first.";
    "local_pc_screenshot", Needs::Coarse(Coarse::Screenshot), schema::screenshot, There(computer::screenshot),
        "Take a picture of the screen, a region of it, or a window.";
    "local_pc_click", Needs::Fine("input.click"), schema::click, There(computer::click),
        "Click at a point.";
    "local_pc_type", Needs::Fine("input.type"), schema::type_text, There(computer::type_text),
        "Type a text.";
    "local_pc_key", Needs::Fine("input.key"), schema::key, There(computer::key),
        "Press a key or a combination of keys.";
    "local_pc_scroll", Needs::Fine("input.scroll"), schema::scroll, There(computer::scroll),
        "Scroll at a point.";
    "local_pc_drag", Needs::Fine("input.drag.path"), schema::drag, There(computer::drag),
        "Drag along a path.";
    "local_pc_list_windows", Needs::Fine("window.list"), schema::list_windows, There(computer::list_windows),
        "List the windows, front first.";
    "local_pc_focus_window", Needs::Fine("window.focus"), schema::focus_window, There(computer::focus_window),
        "Give a window the keyboard.";
    "local_pc_list_apps", Needs::Fine("app.list"), schema::list_apps, There(computer::list_apps),
        "List the running applications.";
    "local_pc_launch_app", Needs::Fine("app.launch"), schema::launch_app, There(computer::launch_app),
        "Start an application.";
    "local_pc_clipboard_read", Needs::Fine("clipboard.read"), schema::clipboard_read, There(computer::clipboard_read),
        "Read the clipboard.";
    "local_pc_clipboard_write", Needs::Fine("clipboard.write"), schema::clipboard_write, There(computer::clipboard_write),
        "Write the clipboard.";
    "local_pc_list_machines", Needs::Nothing, schema::nothing, Here(super::list_machines),
        "List the person's connected machines.";
}

/// The tool of this name.
pub(crate) fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}
