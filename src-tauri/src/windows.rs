//! The main window. Its webview exists only while it is open.

use executor::front::{Appearance, Change, Front};
use serde_json::Value;
use tauri::{AppHandle, Manager, Theme, WebviewUrl, WebviewWindowBuilder, WindowEvent};
use tokio::sync::broadcast::error::RecvError;
use tracing::error;

use crate::unlock::{Question, UNLOCK};

/// The main window's label, which its permissions name.
pub(crate) const MAIN: &str = "main";

/// Opens the main window, or brings it to the front. From any thread.
pub(crate) fn open_main(app: &AppHandle) {
    open_at(app, "");
}

/// The same, on one of its pages.
pub(crate) fn open_at(app: &AppHandle, page: &'static str) {
    on_main_thread(app, move |app| {
        if let Some(window) = app.get_webview_window(MAIN) {
            let shown = window.unminimize().and_then(|()| window.show()).and_then(|()| window.set_focus());
            if let Err(error) = shown {
                error!(%error, "the window cannot be brought to the front");
            }
            if !page.is_empty() {
                tell(app, MAIN, "navigate", serde_json::json!({"page": page}));
            }
            return;
        }
        let address = if page.is_empty() { "index.html".to_owned() } else { format!("index.html#/{page}") };
        let built = WebviewWindowBuilder::new(app, MAIN, WebviewUrl::App(address.into()))
            .title("Deskhand")
            .inner_size(960.0, 680.0)
            .min_inner_size(640.0, 480.0)
            .theme(theme(app))
            .disable_drag_drop_handler()
            .on_navigation(is_ours)
            .build();
        if let Err(error) = built {
            error!(%error, "the window cannot be opened");
        }
    });
}

/// What the person chose; none follows the desktop.
pub(crate) fn theme(app: &AppHandle) -> Option<Theme> {
    let front = app.try_state::<Front>()?;
    match front.preferences().appearance {
        Appearance::System => None,
        Appearance::Light => Some(Theme::Light),
        Appearance::Dark => Some(Theme::Dark),
    }
}

/// The pages are the app's own; nothing takes a window anywhere else.
pub(crate) fn is_ours(url: &url::Url) -> bool {
    url.scheme() == "tauri" || (cfg!(windows) && url.host_str() == Some("tauri.localhost"))
}

/// Runs `work` on the thread that windows belong to.
pub(crate) fn on_main_thread(app: &AppHandle, work: impl FnOnce(&AppHandle) + Send + 'static) {
    let handle = app.clone();
    if let Err(error) = app.run_on_main_thread(move || work(&handle)) {
        error!(%error, "the app is ending");
    }
}

/// Sends an event to a window, if it is there.
pub(crate) fn tell(app: &AppHandle, label: &str, event: &str, payload: Value) {
    use tauri::Emitter as _;
    if let Err(error) = app.emit_to(label, event, payload) {
        error!(%error, "a window cannot be told of a change");
    }
}

/// Tells the windows what to fetch again.
pub(crate) async fn follow(app: AppHandle, front: Front) {
    let mut changes = front.subscribe();
    loop {
        match changes.recv().await {
            Ok(Change::State) | Err(RecvError::Lagged(_)) => tell(&app, MAIN, "state", Value::Null),
            Ok(Change::Activity) => tell(&app, MAIN, "activity", Value::Null),
            Ok(Change::Prompt) => tell(&app, crate::prompts::PROMPT, "prompt", Value::Null),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Closing the main window leaves the tray. Where there is none it goes to the task bar, or nothing would be left.
pub(crate) fn on_event(app: &AppHandle, label: &str, event: &WindowEvent) {
    match event {
        WindowEvent::CloseRequested { api, .. } if label == MAIN => {
            let Some(front) = app.try_state::<Front>() else { return };
            if !front.snapshot().has_tray {
                api.prevent_close();
                if let Some(window) = app.get_webview_window(MAIN)
                    && let Err(error) = window.minimize()
                {
                    error!(%error, "the window cannot be minimised");
                }
            }
        }
        // Closing the question is an answer: no.
        WindowEvent::CloseRequested { api, .. } if label == crate::prompts::PROMPT => {
            api.prevent_close();
            crate::prompts::deny_shown(app);
        }
        WindowEvent::CloseRequested { .. } if label == UNLOCK => {
            if let Some(question) = app.try_state::<Question>() {
                question.give_up();
            }
        }
        WindowEvent::Destroyed if label == MAIN => {
            if let Some(front) = app.try_state::<Front>() {
                front.forget_activity();
            }
        }
        _ => {} // sizes and positions are the desktop's
    }
}
