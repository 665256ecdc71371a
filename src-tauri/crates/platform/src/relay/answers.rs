//! What an answer must hold beyond its shape. A machine may be faulty or worse: nothing of it is passed on unchecked.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use protocol::{
    Ack, AppListResponse, ClipboardFormat, ClipboardReadResponse, CommandResult, CursorPositionResponse,
    DirectoryEntry, DirectoryListResponse, DisplayInfoResponse, Encoding, FileContents, FileListResponse,
    FileStatResponse, PermissionsCheckResponse, ScreenshotResponse, SessionActivated, SessionAttached,
    WindowListResponse,
};

/// Longest reference, cursor or browse id; ours have 32 characters.
const MAX_REF: usize = 256;
/// Longest path of any system, in bytes.
const MAX_PATH: usize = 4 * 32767;
/// Longest grant: its claims hold one path.
const MAX_GRANT: usize = 256 * 1024;
/// Folders on a page (wire: 200).
const MAX_FOLDERS: usize = 200;
/// Entries of a list (wire: 10 000).
const MAX_ENTRIES: usize = 10_000;

/// An answer that knows what it must hold.
pub(crate) trait Checked {
    /// What is wrong with it. The text names fields, never their values.
    fn check(&self) -> Result<(), &'static str>;
}

fn ensure(good: bool, problem: &'static str) -> Result<(), &'static str> {
    if good { Ok(()) } else { Err(problem) }
}

fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive = bytes.len() >= 3 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && bytes[2] == b'\\';
    path.len() <= MAX_PATH && (path.starts_with('/') || path.starts_with("\\\\") || drive)
}

fn is_ref(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_REF && text.bytes().all(|b| b.is_ascii_graphic())
}

fn is_time(seconds: f64) -> bool {
    seconds.is_finite()
}

impl Checked for Ack {
    fn check(&self) -> Result<(), &'static str> {
        ensure(self.ok, "ok")
    }
}

fn folder(entry: &DirectoryEntry) -> bool {
    let printable = |text: &str| !text.chars().any(char::is_control);
    is_ref(&entry.directory_ref)
        && is_absolute(&entry.path)
        && printable(&entry.path)
        && !entry.name.is_empty()
        && printable(&entry.name)
}

impl Checked for DirectoryListResponse {
    fn check(&self) -> Result<(), &'static str> {
        ensure(is_ref(&self.browse_id), "browse_id")?;
        ensure(self.current.as_ref().is_none_or(folder), "current")?;
        ensure(self.parent_ref.as_deref().is_none_or(is_ref), "parent_ref")?;
        ensure(self.entries.len() <= MAX_FOLDERS && self.entries.iter().all(folder), "entries")?;
        ensure(self.next_cursor.as_deref().is_none_or(is_ref), "next_cursor")?;
        ensure(is_time(self.expires_at), "expires_at")
    }
}

fn is_fingerprint(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_grant(text: &str) -> bool {
    let parts: Vec<_> = text.split('.').collect();
    let base64url = |part: &&str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    text.len() <= MAX_GRANT && parts.len() == 3 && parts[0] == "v1" && parts[1..].iter().all(base64url)
}

impl Checked for SessionAttached {
    fn check(&self) -> Result<(), &'static str> {
        ensure(is_absolute(&self.allowed_root), "allowed_root")?;
        ensure(is_fingerprint(&self.fingerprint), "fingerprint")?;
        ensure(self.revision >= 1 && i64::try_from(self.revision).is_ok(), "revision")?;
        ensure(is_grant(&self.root_grant), "root_grant")
    }
}

impl Checked for SessionActivated {
    fn check(&self) -> Result<(), &'static str> {
        ensure(is_absolute(&self.allowed_root), "allowed_root")?;
        ensure(is_fingerprint(&self.fingerprint), "fingerprint")?;
        ensure(self.revision >= 1, "revision")
    }
}

impl Checked for FileContents {
    fn check(&self) -> Result<(), &'static str> {
        match self.encoding {
            // Replaced sequences make a text longer than its bytes, so the size cannot be compared.
            Encoding::Utf8 => Ok(()),
            Encoding::Base64 => {
                let bytes = STANDARD.decode(&self.content).map_err(|_| "content")?;
                ensure(bytes.len() as u64 == self.size_bytes, "size_bytes")
            }
        }
    }
}

impl Checked for FileStatResponse {
    fn check(&self) -> Result<(), &'static str> {
        ensure(is_absolute(&self.path), "path")?;
        ensure(!self.exists || (self.is_file.is_some() && self.is_dir.is_some()), "is_file")?;
        ensure(self.mtime.is_none_or(is_time) && self.ctime.is_none_or(is_time), "mtime")
    }
}

impl Checked for FileListResponse {
    fn check(&self) -> Result<(), &'static str> {
        let good =
            |e: &protocol::FileListEntry| !e.name.is_empty() && is_absolute(&e.path) && is_time(e.mtime);
        ensure(self.entries.len() <= MAX_ENTRIES && self.entries.iter().all(good), "entries")
    }
}

impl Checked for CommandResult {
    fn check(&self) -> Result<(), &'static str> {
        ensure(is_time(self.duration_seconds) && self.duration_seconds >= 0.0, "duration_seconds")
    }
}

impl Checked for ScreenshotResponse {
    fn check(&self) -> Result<(), &'static str> {
        ensure(self.width > 0 && self.height > 0, "width")?;
        let start: &[u8] = match self.mime_type.as_str() {
            "image/jpeg" => b"\xff\xd8\xff",
            "image/png" => b"\x89PNG\r\n\x1a\n",
            _ => return Err("mime_type"),
        };
        let bytes = STANDARD.decode(&self.image_base64).map_err(|_| "image_base64")?;
        ensure(bytes.starts_with(start), "image_base64")?;
        ensure(self.display_scale.is_finite() && self.display_scale > 0.0, "display_scale")
    }
}

impl Checked for CursorPositionResponse {
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }
}

impl Checked for DisplayInfoResponse {
    fn check(&self) -> Result<(), &'static str> {
        ensure(self.monitors.iter().all(|m| m.scale.is_finite() && m.scale > 0.0), "monitors")
    }
}

impl Checked for WindowListResponse {
    fn check(&self) -> Result<(), &'static str> {
        ensure(
            self.windows.iter().all(|w| w.window_id.starts_with("win_") && is_ref(&w.window_id)),
            "windows",
        )
    }
}

impl Checked for AppListResponse {
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }
}

impl Checked for ClipboardReadResponse {
    fn check(&self) -> Result<(), &'static str> {
        let size = match self.format {
            ClipboardFormat::Text => self.content.len(),
            ClipboardFormat::Image => STANDARD.decode(&self.content).map_err(|_| "content")?.len(),
        };
        ensure(size as u64 == self.size_bytes, "size_bytes")
    }
}

impl Checked for PermissionsCheckResponse {
    fn check(&self) -> Result<(), &'static str> {
        let known =
            |state: &String| matches!(state.as_str(), "granted" | "denied" | "unknown" | "not_applicable");
        ensure(self.permissions.values().all(known), "permissions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_has_its_three_parts() {
        assert!(is_grant("v1.eyJ9.abc-_"));
        for bad in ["", "v1", "v1..a", "v2.a.b", "v1.a.b.c", "v1.a=.b"] {
            assert!(!is_grant(bad), "{bad}");
        }
    }

    #[test]
    fn a_size_that_is_not_the_contents_is_found() {
        let mut contents = FileContents {
            content: "YWJj".to_owned(),
            encoding: Encoding::Base64,
            size_bytes: 3,
            truncated: false,
        };
        assert_eq!(contents.check(), Ok(()));
        contents.size_bytes = 4;
        assert_eq!(contents.check(), Err("size_bytes"));
        contents.content = "a b".to_owned();
        assert_eq!(contents.check(), Err("content"));
    }
}
