//! Looking at a log without judging it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;

use crate::error::AuditError;

/// Read backwards in pieces of this size.
const PIECE: u64 = 64 << 10;
/// No more than this is read for a tail, however many lines are wanted.
const MAX_TAIL: usize = 64 << 20;

/// The last `count` whole lines, oldest first, without newlines. Bytes that are no UTF-8 are shown as U+FFFD.
///
/// # Errors
/// [`AuditError::Io`] if the file cannot be read.
pub fn tail(path: &Path, count: usize) -> Result<Vec<String>, AuditError> {
    let text = end_of_file(path, count).map_err(AuditError::io("read", path))?;
    let whole = text.iter().rposition(|&b| b == b'\n').map_or(0, |at| at);
    let mut lines: Vec<_> = text[..whole].split(|&b| b == b'\n').rev().take(count).collect();
    if whole == 0 {
        lines.clear();
    }
    Ok(lines.into_iter().rev().map(|line| String::from_utf8_lossy(line).into_owned()).collect())
}

/// Enough of the end to hold `count` whole lines and one newline before them, or all there is.
fn end_of_file(path: &Path, count: usize) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut from = file.seek(SeekFrom::End(0))?;
    let mut pieces = Vec::new();
    let (mut newlines, mut length) = (0, 0);
    while from > 0 && newlines <= count && length < MAX_TAIL {
        let size = PIECE.min(from);
        from -= size;
        file.seek(SeekFrom::Start(from))?;
        let mut piece = vec![0; size as usize];
        file.read_exact(&mut piece)?;
        newlines += piece.iter().filter(|&&b| b == b'\n').count();
        length += piece.len();
        pieces.push(piece);
    }
    Ok(pieces.into_iter().rev().flatten().collect())
}

/// The line whose `seq` that is, if the file has it.
///
/// # Errors
/// [`AuditError::Io`] if the file cannot be read.
pub fn show(path: &Path, seq: u64) -> Result<Option<String>, AuditError> {
    #[derive(Deserialize)]
    struct Numbered {
        seq: u64,
    }
    let file = File::open(path).map_err(AuditError::io("open", path))?;
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(AuditError::io("read", path))?;
        if serde_json::from_slice::<Numbered>(&line).is_ok_and(|record| record.seq == seq) {
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
    }
    Ok(None)
}
