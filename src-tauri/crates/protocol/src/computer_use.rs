//! Payloads of computer use. Coordinates are physical pixels of the virtual desktop, from its top left.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::payload::null_is_default;

/// A rectangle `[x1, y1, x2, y2]`.
pub type Region = [i32; 4];

/// A point `[x, y]`.
pub type Point = [i32; 2];

/// How a picture is encoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// Lossy.
    #[default]
    Jpeg,
    /// Lossless.
    Png,
}

/// `SCREENSHOT_REQUEST`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenshotRequest {
    /// 0 is the primary display, −1 all of them.
    #[serde(default, deserialize_with = "null_is_default")]
    pub monitor: i32,
    /// Of JPEG, 1 to 100.
    #[serde(default = "default_quality")]
    pub quality: u8,
    /// Crops the picture.
    #[serde(default)]
    pub region: Option<Region>,
    /// One window only.
    #[serde(default)]
    pub window_id: Option<String>,
    /// Encoding.
    #[serde(default, deserialize_with = "null_is_default")]
    pub format: ImageFormat,
    /// Draw the pointer in.
    #[serde(default = "yes")]
    pub include_cursor: bool,
}

fn default_quality() -> u8 {
    75
}

fn yes() -> bool {
    true
}

/// Where a picture comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenshotMeta {
    /// Top left of the crop.
    pub origin: Point,
    /// The operating system's name of the display.
    pub display_id: String,
}

/// `SCREENSHOT_RESPONSE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScreenshotResponse {
    /// The picture.
    pub image_base64: String,
    /// `image/jpeg` or `image/png`.
    pub mime_type: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// As asked.
    pub monitor: i32,
    /// What was cropped to, after clipping.
    pub region: Option<Region>,
    /// Physical per logical pixel.
    pub display_scale: f64,
    /// Logical size of the display.
    pub logical_size: [u32; 2],
    /// Where it comes from.
    pub meta: ScreenshotMeta,
}

/// `INPUT_ACTION`. Which fields an action needs is checked before anything is sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InputAction {
    /// `left_click right_click middle_click double_click triple_click mouse_move mouse_down mouse_up drag type key
    /// hold_key scroll wait`.
    pub action: String,
    /// Clicks, move, down, up; optional for scroll.
    #[serde(default)]
    pub coordinate: Option<Point>,
    /// `left middle right`.
    #[serde(default)]
    pub button: Option<String>,
    /// Of `shift ctrl alt super`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub modifiers: Vec<String>,
    /// To type.
    #[serde(default)]
    pub text: Option<String>,
    /// Through the clipboard.
    #[serde(default, deserialize_with = "null_is_default")]
    pub paste: bool,
    /// Put the clipboard back afterwards.
    #[serde(default, deserialize_with = "null_is_default")]
    pub preserve_clipboard: bool,
    /// `ctrl+shift+s`.
    #[serde(default)]
    pub key: Option<String>,
    /// At most 5000.
    #[serde(default)]
    pub duration_ms: Option<u32>,
    /// Notches.
    #[serde(default, alias = "clicks")]
    pub scroll_amount: Option<u32>,
    /// `up down left right`.
    #[serde(default, alias = "direction")]
    pub scroll_direction: Option<String>,
    /// Press, through each point, release.
    #[serde(default)]
    pub path: Option<Vec<Point>>,
}

/// `CURSOR_POSITION_RESPONSE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorPositionResponse {
    /// Physical pixels.
    pub x: i32,
    /// Physical pixels.
    pub y: i32,
    /// The display it is on.
    pub monitor: i32,
}

/// One display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Monitor {
    /// 0 is the primary.
    pub index: i32,
    /// Whether it is the primary.
    pub primary: bool,
    /// Pixels.
    pub physical_size: [u32; 2],
    /// Points.
    pub logical_size: [u32; 2],
    /// Physical per logical pixel.
    pub scale: f64,
    /// Top left on the virtual desktop.
    pub origin: Point,
}

/// `DISPLAY_INFO_RESPONSE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DisplayInfoResponse {
    /// All displays.
    pub monitors: Vec<Monitor>,
}

/// `WINDOW_LIST_REQUEST`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowListRequest {
    /// Of this application only.
    #[serde(default)]
    pub app_bundle_id: Option<String>,
    /// Minimised ones too.
    #[serde(default, deserialize_with = "null_is_default")]
    pub include_minimized: bool,
    /// Ones outside the displays too.
    #[serde(default, deserialize_with = "null_is_default")]
    pub include_offscreen: bool,
}

/// One window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// `win_<uuid>`, never reused.
    pub window_id: String,
    /// Its process.
    pub pid: u32,
    /// Its application.
    pub app_name: String,
    /// Its application's id.
    pub app_bundle_id: Option<String>,
    /// Its title.
    pub title: String,
    /// Its frame.
    pub bounds: Region,
    /// The display it is mostly on.
    pub monitor: i32,
    /// Has the keyboard.
    pub is_focused: bool,
    /// Is minimised.
    pub is_minimized: bool,
    /// Fills its display.
    pub is_fullscreen: bool,
}

/// `WINDOW_LIST_RESPONSE`, front first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowListResponse {
    /// The windows.
    pub windows: Vec<Window>,
    /// There are more.
    pub truncated: bool,
}

/// `WINDOW_FOCUS`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowFocus {
    /// From the list.
    pub window_id: String,
    /// Bring it to the front too.
    #[serde(default = "yes")]
    pub raise: bool,
}

/// `APP_LIST_REQUEST`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppListRequest {
    /// Ones without a window too.
    #[serde(default, deserialize_with = "null_is_default")]
    pub include_background: bool,
}

/// One running application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct App {
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its id.
    pub bundle_id: Option<String>,
    /// Its program.
    pub executable_path: Option<String>,
    /// Has the keyboard.
    pub is_frontmost: bool,
    /// Its windows.
    pub window_count: u32,
}

/// `APP_LIST_RESPONSE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppListResponse {
    /// The applications.
    pub apps: Vec<App>,
}

/// `APP_LAUNCH`. One of `bundle_id` and `executable_path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppLaunch {
    /// By id.
    #[serde(default)]
    pub bundle_id: Option<String>,
    /// By program.
    #[serde(default)]
    pub executable_path: Option<String>,
    /// Its arguments.
    #[serde(default, deserialize_with = "null_is_default")]
    pub args: Vec<String>,
    /// Bring it to the front.
    #[serde(default = "yes")]
    pub activate: bool,
}

/// What a clipboard holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClipboardFormat {
    /// UTF-8 text.
    #[default]
    Text,
    /// Base64 of a PNG.
    Image,
}

/// `CLIPBOARD_READ`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClipboardRead {
    /// Which of the two.
    #[serde(default, deserialize_with = "null_is_default")]
    pub format: ClipboardFormat,
}

/// `CLIPBOARD_READ_RESPONSE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClipboardReadResponse {
    /// Which of the two.
    pub format: ClipboardFormat,
    /// Text or base64.
    pub content: String,
    /// Before encoding.
    pub size_bytes: u64,
}

/// `CLIPBOARD_WRITE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClipboardWrite {
    /// Which of the two.
    #[serde(default, deserialize_with = "null_is_default")]
    pub format: ClipboardFormat,
    /// Text or base64.
    pub content: String,
}

/// `PERMISSIONS_CHECK_REQUEST`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionsCheckRequest {
    /// Of `screen_recording accessibility input_monitoring`.
    pub permissions: Vec<String>,
}

/// `PERMISSIONS_CHECK_RESPONSE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionsCheckResponse {
    /// `granted denied unknown not_applicable` by name.
    pub permissions: BTreeMap<String, String>,
}
