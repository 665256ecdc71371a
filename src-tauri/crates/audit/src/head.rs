//! `audit.head`: the last line known to be on disk, so that a cut tail shows.
//!
//! Written after each sync of the log and never before, so that it does not run ahead of it. It is not synced itself: a
//! power loss may leave an older one, which is as true.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::Deserialize;

use crate::error::AuditError;
use crate::key::{AuditKey, Hex, KeyedMac, hex_string, parse_hex};
use crate::names::HEAD;
use crate::os;

/// The file has always this size, so that one write replaces it.
const SIZE: usize = 192;
/// Times to read it before it counts as forged.
const ATTEMPTS: usize = 5;
/// Its HMAC has a key of its own, so that it is never taken for a record.
const LABEL: &str = "deskhand-audit-head-v1";

/// A record of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: u64,
    pub(crate) hmac: Hex,
}

/// What the file says.
pub(crate) enum OnDisk {
    Missing,
    /// It is there and not ours: changed, or of another key.
    Forged,
    Known(Head),
}

#[derive(Deserialize)]
struct Text {
    seq: u64,
    hmac: String,
    mac: String,
}

/// Reads it. The writer may be writing it this moment, so what looks forged is read again.
pub(crate) fn read(dir: &Path, key: &AuditKey) -> OnDisk {
    let mut attempts = std::iter::repeat_with(|| read_once(dir, key)).take(ATTEMPTS);
    attempts.find(|found| !matches!(found, OnDisk::Forged)).unwrap_or(OnDisk::Forged)
}

fn read_once(dir: &Path, key: &AuditKey) -> OnDisk {
    let text = match std::fs::read(dir.join(HEAD)) {
        Ok(text) if !text.is_empty() => text,
        Ok(_) => return OnDisk::Missing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return OnDisk::Missing,
        Err(_) => return OnDisk::Forged,
    };
    let parsed: Option<(Head, Hex)> = serde_json::from_slice::<Text>(&text).ok().and_then(|text| {
        let hmac = parse_hex(text.hmac.as_bytes())?;
        Some((Head { seq: text.seq, hmac }, parse_hex(text.mac.as_bytes())?))
    });
    let mac = head_mac(key);
    match parsed {
        Some((head, claimed)) if mac.matches(&[&head.seq.to_be_bytes(), &head.hmac], &claimed) => {
            OnDisk::Known(head)
        }
        _ => OnDisk::Forged,
    }
}

fn head_mac(key: &AuditKey) -> KeyedMac {
    KeyedMac::new(&key.derive(LABEL))
}

/// Writes it.
pub(crate) struct HeadFile {
    file: File,
    mac: KeyedMac,
}

impl HeadFile {
    pub(crate) fn open(dir: &Path, key: &AuditKey) -> Result<Self, AuditError> {
        let path = dir.join(HEAD);
        let file = os::open_private(&path).map_err(AuditError::io("open", &path))?;
        Ok(Self { file, mac: head_mac(key) })
    }

    pub(crate) fn write(&self, head: &Head) -> io::Result<()> {
        let mac = self.mac.hex_of(&[&head.seq.to_be_bytes(), &head.hmac]);
        let (hmac, mac) = (hex_string(&head.hmac), hex_string(&mac));
        let text = format!("{{\"hmac\":\"{hmac}\",\"mac\":\"{mac}\",\"seq\":{}}}", head.seq);
        os::write_at(&self.file, format!("{text:<width$}\n", width = SIZE - 1).as_bytes(), 0)
    }
}
