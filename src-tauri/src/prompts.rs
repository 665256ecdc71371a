//! The consent prompt's window: small, above all others, on the screen where the pointer is, and never with the focus that
//! the person is typing into.

use executor::consent::{Answer, End, Prompt, PromptId, Prompter};
use executor::front::Front;
use serde_json::Value;
use tauri::{AppHandle, Manager, PhysicalPosition, WebviewUrl, WebviewWindow, WebviewWindowBuilder};
use tracing::error;

use crate::presence::Presence;
use crate::windows;

/// Its label, which its permissions name.
pub(crate) const PROMPT: &str = "prompt";

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 460.0;

/// Shows prompts in a window.
pub(crate) struct WindowPrompter {
    app: AppHandle,
    presence: Presence,
}

impl WindowPrompter {
    pub(crate) fn new(app: &AppHandle, presence: Presence) -> Self {
        Self { app: app.clone(), presence }
    }
}

impl Prompter for WindowPrompter {
    fn show(&self, _prompt: &Prompt) {
        // The window fetches it: what it shows is what the consent step has, and not a copy that came by another way.
        windows::on_main_thread(&self.app, |app| match app.get_webview_window(PROMPT) {
            Some(window) => {
                windows::tell(app, PROMPT, "prompt", Value::Null);
                place(app, &window);
            }
            None => open(app),
        });
    }

    fn withdraw(&self, _id: &PromptId, _end: End) {
        windows::on_main_thread(&self.app, |app| {
            let Some(window) = app.get_webview_window(PROMPT) else { return };
            let open = app
                .try_state::<Front>()
                .is_some_and(|front| !front.executor().consent().open_prompts().is_empty());
            if open {
                windows::tell(app, PROMPT, "prompt", Value::Null);
            } else if let Err(error) = window.destroy() {
                error!(%error, "a prompt's window cannot be closed");
            }
        });
    }

    fn available(&self) -> bool {
        self.presence.is_somebody_there()
    }
}

/// Brings it to the front, with the focus: the person asked for it.
pub(crate) fn bring_to_front(app: &AppHandle) {
    windows::on_main_thread(app, |app| {
        if let Some(window) = app.get_webview_window(PROMPT)
            && let Err(error) = window.show().and_then(|()| window.set_focus())
        {
            error!(%error, "the prompt cannot be brought to the front");
        }
    });
}

/// Answers the prompt that is shown with no. Its window goes when the consent step has taken that.
pub(crate) fn deny_shown(app: &AppHandle) {
    let Some(front) = app.try_state::<Front>() else { return };
    let consent = front.executor().consent();
    if let Some(first) = consent.open_prompts().first() {
        // Not open any more is fine: then it is on its way out.
        let _ = consent.answer(&first.prompt.id, Answer::Deny);
    }
}

fn open(app: &AppHandle) {
    let built = WebviewWindowBuilder::new(app, PROMPT, WebviewUrl::App("prompt.html".into()))
        .title("Deskhand asks")
        .inner_size(WIDTH, HEIGHT)
        .min_inner_size(WIDTH, 320.0)
        .always_on_top(true)
        .focused(false)
        .skip_taskbar(false)
        .minimizable(false)
        .maximizable(false)
        .theme(windows::theme(app))
        .disable_drag_drop_handler()
        .on_navigation(windows::is_ours)
        .build();
    match built {
        Ok(window) => place(app, &window),
        // It runs out, as denied.
        Err(error) => error!(%error, "a prompt cannot be shown"),
    }
}

/// In the upper middle of the screen where the pointer is.
fn place(app: &AppHandle, window: &WebviewWindow) {
    let placed = (|| {
        let pointer = app.cursor_position()?;
        let Some(screen) = app.monitor_from_point(pointer.x, pointer.y)? else { return Ok(()) };
        let size = window.outer_size()?;
        let area = screen.work_area();
        let free = |whole: u32, part: u32| i32::try_from(whole.saturating_sub(part)).unwrap_or(0);
        let x = area.position.x + free(area.size.width, size.width) / 2;
        let y = area.position.y + free(area.size.height, size.height) / 4;
        window.set_position(PhysicalPosition::new(x, y))
    })();
    if let Err(error) = placed {
        tracing::debug!(%error, "the prompt is where the desktop put it");
    }
}
