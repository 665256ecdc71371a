// Included by `build.rs`, which makes a permission of each, and by `commands.rs`, which has one function for each.
const MAIN: [&str; 27] = [
    "snapshot",
    "connect",
    "disconnect",
    "pause",
    "resume",
    "stop",
    "disconnect_chat",
    "sign_in",
    "sign_in_reopen",
    "sign_in_cancel",
    "sign_out",
    "activity_summary",
    "activity_rows",
    "activity_verify",
    "activity_export",
    "folders",
    "folder_add",
    "folder_remove",
    "folder_make_default",
    "settings",
    "setting_set",
    "rule_remove",
    "permissions",
    "permission_open",
    "about",
    "first_run_done",
    "show_prompt",
];
const PROMPT: [&str; 5] = ["prompt", "prompt_seen", "prompt_touch", "prompt_answer", "prompt_focus"];
#[allow(dead_code, reason = "of no interest to one of the two")]
const UNLOCK: [&str; 2] = ["unlock_state", "unlock_with"];
