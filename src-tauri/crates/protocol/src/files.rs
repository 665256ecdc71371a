//! Payloads of the six file requests. Sizes and offsets are bytes; times are seconds since the epoch.

use serde::{Deserialize, Serialize};

use crate::payload::null_is_default;

/// How content stands in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// As text; what is not UTF-8 is replaced.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// Base64 of the raw bytes.
    #[serde(rename = "base64")]
    Base64,
}

impl Encoding {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Base64 => "base64",
        }
    }
}

/// What a read returns: characters or bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadFormat {
    /// UTF-8 text.
    #[default]
    Text,
    /// Base64 of the raw bytes, whatever the encoding says.
    Bytes,
}

/// `FILE_READ`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRead {
    /// Absolute, relative to the session's folder, or starting with `~`.
    pub path: String,
    /// Text or base64.
    #[serde(default, deserialize_with = "null_is_default")]
    pub encoding: Encoding,
    /// `bytes` is base64 too.
    #[serde(default, deserialize_with = "null_is_default")]
    pub format: ReadFormat,
    /// First byte.
    #[serde(default, deserialize_with = "null_is_default")]
    pub offset: u64,
    /// Number of bytes, above 0; null is all that is left.
    #[serde(default)]
    pub length: Option<std::num::NonZeroU64>,
}

/// `FILE_CONTENTS`. Its content is a JSON string; who writes megabytes may have it as JSON already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileContents<C = String> {
    /// Text or base64.
    pub content: C,
    /// Which of the two.
    pub encoding: Encoding,
    /// Bytes returned, before encoding.
    pub size_bytes: u64,
    /// More bytes follow.
    pub truncated: bool,
}

/// `FILE_WRITE`; answered by `ACK`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileWrite {
    /// As in [`FileRead`].
    pub path: String,
    /// Text or base64.
    pub content: String,
    /// Which of the two.
    #[serde(default, deserialize_with = "null_is_default")]
    pub encoding: Encoding,
    /// Make missing folders on the way.
    #[serde(default, deserialize_with = "null_is_default")]
    pub create_parents: bool,
}

/// `FILE_STAT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    /// As in [`FileRead`].
    pub path: String,
    /// Whether a link's target is looked at, or the link.
    #[serde(default = "yes", deserialize_with = "null_is_yes")]
    pub follow_symlinks: bool,
}

/// `FILE_STAT_RESPONSE`. All but `exists` and `path` are null when nothing is there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FileStatResponse {
    /// Whether anything is there.
    pub exists: bool,
    /// A regular file.
    pub is_file: Option<bool>,
    /// A directory.
    pub is_dir: Option<bool>,
    /// A symbolic link (only without `follow_symlinks`).
    pub is_symlink: Option<bool>,
    /// Size.
    pub size_bytes: Option<u64>,
    /// Last change of the content.
    pub mtime: Option<f64>,
    /// Last change of the entry (Windows: creation).
    pub ctime: Option<f64>,
    /// Permission bits, as `0644`.
    pub mode: Option<String>,
    /// Owner; null on Windows.
    pub owner_uid: Option<u32>,
    /// Group; null on Windows.
    pub owner_gid: Option<u32>,
    /// Guessed from the name.
    pub mime_type: Option<String>,
    /// Canonical; of a missing one, where it would be.
    pub path: String,
}

/// `FILE_LIST`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileList {
    /// As in [`FileRead`].
    pub path: String,
    /// On the base name: `* ? [..] {a,b}`.
    #[serde(default)]
    pub glob: Option<String>,
    /// Folders below it too.
    #[serde(default, deserialize_with = "null_is_default")]
    pub recursive: bool,
    /// Hidden entries and all below hidden folders too.
    #[serde(default, deserialize_with = "null_is_default")]
    pub include_hidden: bool,
    /// At most this many; lowered to 10 000.
    #[serde(default = "thousand")]
    pub max_entries: u64,
}

/// One entry of a [`FileListResponse`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileListEntry {
    /// Base name.
    pub name: String,
    /// Absolute path.
    pub path: String,
    /// A regular file.
    pub is_file: bool,
    /// A directory.
    pub is_dir: bool,
    /// A symbolic link; listed, never followed.
    pub is_symlink: bool,
    /// Size.
    pub size_bytes: u64,
    /// Last change of the content.
    pub mtime: f64,
}

/// `FILE_LIST_RESPONSE`, ordered by path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FileListResponse {
    /// The entries.
    pub entries: Vec<FileListEntry>,
    /// There are more.
    pub truncated: bool,
}

/// `FILE_DELETE`; answered by `ACK`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDelete {
    /// As in [`FileRead`].
    pub path: String,
    /// A folder with all that is in it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub recursive: bool,
    /// Nothing there is no error.
    #[serde(default, deserialize_with = "null_is_default")]
    pub missing_ok: bool,
}

/// `FILE_MOVE`; answered by `ACK`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMove {
    /// What to move.
    pub src: String,
    /// Where to; the new path itself, not the folder it goes into.
    pub dst: String,
    /// Replace what is there.
    #[serde(default, deserialize_with = "null_is_default")]
    pub overwrite: bool,
}

fn yes() -> bool {
    true
}

fn thousand() -> u64 {
    1000
}

fn null_is_yes<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(true))
}
