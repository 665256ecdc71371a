//! Computer use: each tool is one request, and each part with a feature of its own is refused without it.

use std::time::Duration;

use protocol::{
    Ack, AppLaunch, AppListRequest, AppListResponse, ClipboardRead, ClipboardReadResponse, ClipboardWrite,
    InputAction, MessageType, Point, ScreenshotRequest, ScreenshotResponse, WindowFocus, WindowListRequest,
    WindowListResponse,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Call, ToolError, ToolResult, arguments};
use crate::relay::Checked;

async fn ask<A>(call: &Call<'_>, kind: MessageType, payload: &impl Serialize, extra: Duration) -> ToolResult
where
    A: DeserializeOwned + Serialize + Checked,
{
    let answer: A = call.request(kind, payload, extra).await?;
    serde_json::to_value(answer).map_err(|error| ToolError::new("INTERNAL_ERROR", error.to_string()))
}

async fn input(call: &Call<'_>, action: InputAction) -> ToolResult {
    if !action.modifiers.is_empty() {
        call.needs("input.click.modifiers")?;
    }
    let held = Duration::from_millis(action.duration_ms.unwrap_or(0).into());
    ask::<Ack>(call, MessageType::InputAction, &action, held).await
}

pub(super) async fn screenshot(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let request: ScreenshotRequest = arguments(args)?;
    if request.region.is_some() && request.window_id.is_some() {
        return Err(ToolError::arguments("give region or window_id, not both"));
    }
    if request.region.is_some() {
        call.needs("screenshot.region")?;
    }
    if request.window_id.is_some() {
        call.needs("screenshot.window")?;
    }
    ask::<ScreenshotResponse>(call, MessageType::ScreenshotRequest, &request, Duration::ZERO).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Click {
    x: i32,
    y: i32,
    #[serde(default)]
    button: Button,
    #[serde(default = "one")]
    clicks: u8,
    #[serde(default)]
    modifiers: Vec<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Button {
    #[default]
    Left,
    Middle,
    Right,
}

fn one() -> u8 {
    1
}

pub(super) async fn click(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let Click { x, y, button, clicks, modifiers } = arguments(args)?;
    let action = match (button, clicks) {
        (Button::Left, 1) => "left_click",
        (Button::Left, 2) => "double_click",
        (Button::Left, 3) => "triple_click",
        (Button::Middle, 1) => "middle_click",
        (Button::Right, 1) => "right_click",
        (Button::Left | Button::Middle | Button::Right, _) => {
            let known = "clicks is 1 to 3 with the left button, else 1";
            return Err(ToolError::arguments(known));
        }
    };
    let action = action.to_owned();
    input(call, InputAction { action, coordinate: Some([x, y]), modifiers, ..InputAction::default() }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Type {
    text: String,
    #[serde(default)]
    paste: bool,
    #[serde(default)]
    preserve_clipboard: bool,
}

pub(super) async fn type_text(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let Type { text, paste, preserve_clipboard } = arguments(args)?;
    let action = "type".to_owned();
    let text = Some(text);
    input(call, InputAction { action, text, paste, preserve_clipboard, ..InputAction::default() }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    key: String,
    hold_ms: Option<u32>,
}

pub(super) async fn key(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let Key { key, hold_ms } = arguments(args)?;
    if hold_ms.is_some() {
        call.needs("input.key.hold")?;
    }
    let action = if hold_ms.is_some() { "hold_key" } else { "key" }.to_owned();
    input(call, InputAction { action, key: Some(key), duration_ms: hold_ms, ..InputAction::default() }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scroll {
    direction: String,
    #[serde(default = "three")]
    amount: u32,
    x: Option<i32>,
    y: Option<i32>,
    #[serde(default)]
    modifiers: Vec<String>,
}

fn three() -> u32 {
    3
}

pub(super) async fn scroll(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let Scroll { direction, amount, x, y, modifiers } = arguments(args)?;
    let coordinate = match (x, y) {
        (Some(x), Some(y)) => Some([x, y]),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(ToolError::arguments("give x and y together, or neither"));
        }
    };
    let action = InputAction {
        action: "scroll".to_owned(),
        coordinate,
        modifiers,
        scroll_amount: Some(amount),
        scroll_direction: Some(direction),
        ..InputAction::default()
    };
    input(call, action).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Drag {
    path: Vec<Point>,
    button: Option<String>,
    #[serde(default)]
    modifiers: Vec<String>,
}

pub(super) async fn drag(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let Drag { path, button, modifiers } = arguments(args)?;
    if path.len() < 2 {
        return Err(ToolError::arguments("path needs two points or more"));
    }
    if button.is_some() {
        call.needs("input.click.button")?;
    }
    let action = "drag".to_owned();
    input(call, InputAction { action, path: Some(path), button, modifiers, ..InputAction::default() }).await
}

pub(super) async fn list_windows(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let request: WindowListRequest = arguments(args)?;
    ask::<WindowListResponse>(call, MessageType::WindowListRequest, &request, Duration::ZERO).await
}

pub(super) async fn focus_window(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let request: WindowFocus = arguments(args)?;
    ask::<Ack>(call, MessageType::WindowFocus, &request, Duration::ZERO).await
}

pub(super) async fn list_apps(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let request: AppListRequest = arguments(args)?;
    ask::<AppListResponse>(call, MessageType::AppListRequest, &request, Duration::ZERO).await
}

pub(super) async fn launch_app(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let request: AppLaunch = arguments(args)?;
    if request.bundle_id.is_some() == request.executable_path.is_some() {
        return Err(ToolError::arguments("give exactly one of bundle_id and executable_path"));
    }
    ask::<Ack>(call, MessageType::AppLaunch, &request, Duration::ZERO).await
}

pub(super) async fn clipboard_read(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let request: ClipboardRead = arguments(args)?;
    ask::<ClipboardReadResponse>(call, MessageType::ClipboardRead, &request, Duration::ZERO).await
}

pub(super) async fn clipboard_write(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let request: ClipboardWrite = arguments(args)?;
    ask::<Ack>(call, MessageType::ClipboardWrite, &request, Duration::ZERO).await
}
