//! Payloads of the control connection: folders and sessions.

use serde::{Deserialize, Serialize};

use crate::SessionId;

/// `DIRECTORY_LIST_REQUEST`. The first two are both null (start) or both set; a cursor needs both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryListRequest {
    /// The browse that the reference belongs to.
    #[serde(default)]
    pub browse_id: Option<String>,
    /// The folder to list.
    #[serde(default)]
    pub directory_ref: Option<String>,
    /// Where the page before ended.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// A folder that may be listed or attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// 24 random bytes, base64url. The only way to name a folder: the platform never sends a path.
    pub directory_ref: String,
    /// Base name.
    pub name: String,
    /// Canonical path, to show.
    pub path: String,
}

/// `DIRECTORY_LIST_RESPONSE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectoryListResponse {
    /// This browse.
    pub browse_id: String,
    /// The folder listed; null at the start.
    pub current: Option<DirectoryEntry>,
    /// Its parent, when that may be listed.
    pub parent_ref: Option<String>,
    /// At most 200, sorted by case-folded name.
    pub entries: Vec<DirectoryEntry>,
    /// Where the next page starts.
    pub next_cursor: Option<String>,
    /// More entries than one listing scans.
    pub truncated: bool,
    /// When the references die, seconds since the epoch.
    pub expires_at: f64,
}

/// `ATTACH_SESSION`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachSession {
    /// The session.
    pub session_id: SessionId,
    /// The browse that the reference belongs to; used up by this.
    pub browse_id: String,
    /// The folder.
    pub directory_ref: String,
    /// Not compared.
    #[serde(default)]
    pub expected_connection_id: Option<String>,
}

/// `SESSION_ATTACHED`, and `SESSION_RESTORED`: the binding and its grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAttached {
    /// The session.
    pub session_id: SessionId,
    /// Canonical path of its folder.
    pub allowed_root: String,
    /// Lowercase hex SHA-256 over device, inode and path.
    pub fingerprint: String,
    /// Counts the bindings of this session here, from 1.
    pub revision: u64,
    /// Opaque to the platform: lets the session be restored later.
    pub root_grant: String,
}

/// `ACTIVATE_SESSION`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivateSession {
    /// The session.
    pub session_id: SessionId,
    /// The revision that was attached.
    pub revision: u64,
}

/// `SESSION_ACTIVATED`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionActivated {
    /// The session.
    pub session_id: SessionId,
    /// Canonical path of its folder.
    pub allowed_root: String,
    /// Lowercase hex SHA-256 over device, inode and path.
    pub fingerprint: String,
    /// The revision that is active.
    pub revision: u64,
}

/// `RESTORE_SESSION`; answered by `SESSION_RESTORED`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreSession {
    /// The session.
    pub session_id: SessionId,
    /// The grant that its attachment returned.
    pub root_grant: String,
}

/// `DETACH_SESSION`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetachSession {
    /// The session.
    pub session_id: SessionId,
}
