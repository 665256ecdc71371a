//! `read_file` and `write_file`.

use std::num::NonZeroU64;
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use protocol::{
    Ack, BASE64_CEILING_BYTES, Encoding, FileContents, FileRead, FileWrite, MessageType, ReadFormat,
    TEXT_CEILING_BYTES,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Call, ToolError, ToolResult, arguments};

/// What is read when no length is given: enough for a source file, not so much that it floods an agent's context.
const DEFAULT_READ_BYTES: u64 = 256 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    path: String,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default)]
    offset: u64,
    length: Option<NonZeroU64>,
}

/// Bytes of a file, as they are.
pub(super) struct Bytes {
    pub(super) bytes: Vec<u8>,
    /// More follow.
    pub(super) truncated: bool,
}

pub(super) async fn read_bytes(
    call: &Call<'_>,
    path: &str,
    offset: u64,
    length: Option<NonZeroU64>,
) -> Result<Bytes, ToolError> {
    let request = FileRead {
        path: path.to_owned(),
        encoding: Encoding::Base64,
        format: ReadFormat::Bytes,
        offset,
        length,
    };
    let answer: FileContents = call.request(MessageType::FileRead, &request, Duration::ZERO).await?;
    let misbehaved =
        || ToolError::new("MACHINE_MISBEHAVED", "the machine did not return the bytes asked for");
    if answer.encoding != Encoding::Base64 || length.is_some_and(|most| answer.size_bytes > most.get()) {
        return Err(misbehaved());
    }
    let bytes = STANDARD.decode(&answer.content).map_err(|_| misbehaved())?;
    Ok(Bytes { bytes, truncated: answer.truncated })
}

pub(super) async fn read(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let Read { path, encoding, offset, length } = arguments(args)?;
    let most = call.app.options.limits.max_file_size_bytes.min(BASE64_CEILING_BYTES);
    let length = length.map_or(DEFAULT_READ_BYTES, NonZeroU64::get).min(most);
    let read = read_bytes(call, &path, offset, NonZeroU64::new(length)).await?;
    let (content, taken, lossy) = match encoding {
        Encoding::Base64 => (STANDARD.encode(&read.bytes), read.bytes.len(), false),
        Encoding::Utf8 => text(&read.bytes, read.truncated),
    };
    let next = offset + taken as u64;
    Ok(json!({
        "content": content,
        "encoding": encoding,
        "size_bytes": taken,
        "truncated": read.truncated,
        "next_offset": read.truncated.then_some(next),
        "lossy": lossy,
    }))
}

/// Bytes as text, how many of them it stands for, and whether some were no UTF-8. A character that the range cut in two
/// is left to the next range.
fn text(bytes: &[u8], truncated: bool) -> (String, usize, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), bytes.len(), false),
        Err(error) if truncated && error.error_len().is_none() && error.valid_up_to() > 0 => {
            let whole = &bytes[..error.valid_up_to()];
            (String::from_utf8_lossy(whole).into_owned(), whole.len(), false)
        }
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), bytes.len(), true),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    content: String,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default = "yes")]
    create_parents: bool,
}

fn yes() -> bool {
    true
}

pub(super) async fn write(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let Write { path, content, encoding, create_parents } = arguments(args)?;
    let bytes = match encoding {
        Encoding::Utf8 => content.into_bytes(),
        Encoding::Base64 => {
            STANDARD.decode(&content).map_err(|_| ToolError::arguments("content is not base64"))?
        }
    };
    let _alone = call.app.edits.lock(&call.session.id).await;
    let size = bytes.len();
    write_bytes(call, path, bytes, create_parents).await?;
    Ok(json!({ "written": true, "size_bytes": size }))
}

/// Writes a whole file, as text where that is text and fits, so that the machine's owner can read it in a prompt.
pub(super) async fn write_bytes(
    call: &Call<'_>,
    path: String,
    bytes: Vec<u8>,
    create_parents: bool,
) -> Result<(), ToolError> {
    if bytes.len() as u64 > BASE64_CEILING_BYTES {
        return Err(ToolError::too_large());
    }
    let as_text = if bytes.len() as u64 <= TEXT_CEILING_BYTES {
        String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)
    } else {
        Err(bytes)
    };
    let (content, encoding) = match as_text {
        Ok(text) => (text, Encoding::Utf8),
        Err(bytes) => (STANDARD.encode(bytes), Encoding::Base64),
    };
    let request = FileWrite { path, content, encoding, create_parents };
    let _: Ack = call.request(MessageType::FileWrite, &request, Duration::ZERO).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_character_is_left_to_the_next_range() {
        assert_eq!(text("aé".as_bytes(), false), ("aé".to_owned(), 3, false));
        assert_eq!(text(&"aé".as_bytes()[..2], true), ("a".to_owned(), 1, false));
        assert_eq!(text(&"aé".as_bytes()[..2], false), ("a\u{fffd}".to_owned(), 2, true), "it ends there");
        assert_eq!(text(b"a\xffb", true), ("a\u{fffd}b".to_owned(), 3, true));
    }
}
