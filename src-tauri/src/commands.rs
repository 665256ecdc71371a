//! The pages' commands: each is one call of [`Front::call`].
//!
//! They are functions of their own, and not one with a name, because Tauri gives permissions by function: the main window
//! has no permission for what belongs to a prompt. [`Front::call`] checks that once more.

use executor::front::{Front, Window};
use serde_json::{Value, json};
use tauri::ipc::{InvokeBody, Request};
use tauri::{AppHandle, Manager, Wry};

async fn call(app: AppHandle, window: Window, name: &str, body: InvokeBody) -> Result<Value, String> {
    let InvokeBody::Json(with) = body else { return Err("arguments are JSON".to_owned()) };
    let with = if with.is_null() { json!({}) } else { with };
    let front = app.try_state::<Front>().ok_or("Deskhand is still starting")?.inner().clone();
    front.call(window, name, with).await
}

/// A function for each command, and [`handler`] with all of them.
macro_rules! commands {
    ($($window:expr => [$($name:ident),* $(,)?];)*) => {
        $($(
            #[tauri::command]
            async fn $name(app: AppHandle, request: Request<'_>) -> Result<Value, String> {
                call(app, $window, stringify!($name), request.body().clone()).await
            }
        )*)*

        /// All of them, and those of the question for the passphrase.
        pub(crate) fn handler() -> impl Fn(tauri::ipc::Invoke<Wry>) -> bool + Send + Sync + 'static {
            tauri::generate_handler![
                $($($name,)*)*
                crate::unlock::unlock_state,
                crate::unlock::unlock_with
            ]
        }
    };
}

commands! {
    Window::Main => [
        snapshot,
        connect,
        disconnect,
        pause,
        resume,
        stop,
        disconnect_chat,
        sign_in,
        sign_in_reopen,
        sign_in_cancel,
        sign_out,
        activity_summary,
        activity_rows,
        activity_verify,
        activity_export,
        folders,
        folder_add,
        folder_remove,
        folder_make_default,
        settings,
        setting_set,
        rule_remove,
        permissions,
        permission_open,
        about,
        first_run_done,
        show_prompt,
    ];
    Window::Prompt => [
        prompt,
        prompt_seen,
        prompt_touch,
        prompt_answer,
        prompt_focus,
    ];
}

#[cfg(test)]
mod tests {
    use executor::front::{COMMANDS, Window};

    include!("command_names.rs");

    #[test]
    fn every_command_has_its_permission_in_its_own_window_and_in_no_other() {
        let of = |window: Window| {
            COMMANDS.iter().filter(|(_, whose)| *whose == window).map(|(name, _)| *name).collect::<Vec<_>>()
        };
        assert_eq!(of(Window::Main), MAIN);
        assert_eq!(of(Window::Prompt), PROMPT);
        let files = [
            (include_str!("../capabilities/main.json"), &MAIN[..]),
            (include_str!("../capabilities/prompt.json"), &PROMPT[..]),
            (include_str!("../capabilities/unlock.json"), &UNLOCK[..]),
        ];
        for (file, names) in files {
            let file: serde_json::Value = serde_json::from_str(file).unwrap();
            let given: Vec<_> =
                file["permissions"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            let mut wanted = Vec::new();
            if names != &UNLOCK[..] {
                wanted.extend(["core:event:allow-listen".to_owned(), "core:event:allow-unlisten".to_owned()]);
            }
            wanted.extend(names.iter().map(|name| format!("allow-{}", name.replace('_', "-"))));
            assert_eq!(given, wanted);
        }
    }
}
