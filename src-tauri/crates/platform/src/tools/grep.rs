//! `grep`: a regular expression over files, bounded in size and time.

use std::num::NonZeroU64;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use protocol::FileListEntry;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use super::files::read_bytes;
use super::search::{Pattern, existing, list, shown};
use super::{Call, ToolError, ToolResult, arguments};

/// Files above this are skipped: what people search is smaller.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// All of a call, so that an agent is not kept waiting by a huge tree.
const TIME: Duration = Duration::from_secs(30);
/// Compiled size of an expression; above it is no search any more.
const MAX_REGEX_BYTES: usize = 1 << 20;
/// Files read at once; the machine's own limit holds as well.
const AT_ONCE: usize = 4;
const DEFAULT_MATCHES: usize = 200;
const MAX_MATCHES: usize = 2000;
/// Characters of a line that are shown.
const MAX_LINE: usize = 400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grep {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    case_insensitive: bool,
    #[serde(default)]
    include_hidden: bool,
    max_matches: Option<usize>,
}

struct Hit {
    line: usize,
    text: String,
}

pub(super) async fn grep(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let grep: Grep = arguments(args)?;
    let regex = RegexBuilder::new(&grep.pattern)
        .case_insensitive(grep.case_insensitive)
        .size_limit(MAX_REGEX_BYTES)
        .build()
        .map_err(|error| ToolError::arguments(format!("pattern: {error}")))?;
    let most = grep.max_matches.unwrap_or(DEFAULT_MATCHES).clamp(1, MAX_MATCHES);
    let deadline = Instant::now() + TIME;
    let (files, mut truncated) = candidates(call, &grep).await?;
    let root = &call.binding.allowed_root;
    let (mut matches, mut searched, mut skipped) = (Vec::new(), 0, 0);
    let mut results = stream::iter(files)
        .map(|path| {
            let regex = regex.clone();
            async move {
                let hits = search(call, &path, regex, most).await;
                (path, hits)
            }
        })
        .buffered(AT_ONCE);
    loop {
        match timeout_at(deadline, results.next()).await {
            Ok(None) => break,
            Ok(Some((path, Ok(Some(hits))))) => {
                searched += 1;
                let path = shown(root, &path);
                let shown =
                    hits.into_iter().map(|hit| json!({ "path": path, "line": hit.line, "text": hit.text }));
                matches.extend(shown);
            }
            Ok(Some((_, Ok(None)))) => skipped += 1,
            Ok(Some((_, Err(error)))) if is_about_the_file(&error) => skipped += 1,
            Ok(Some((_, Err(error)))) => return Err(error),
            Err(_) => {
                truncated = true;
                break;
            }
        }
        if matches.len() > most {
            matches.truncate(most);
            truncated = true;
            break;
        }
    }
    Ok(json!({
        "matches": matches, "files_searched": searched, "files_skipped": skipped, "truncated": truncated,
    }))
}

/// A file that went away or may not be read is skipped; a machine that went away ends the search.
fn is_about_the_file(error: &ToolError) -> bool {
    error.code.starts_with("PATH_") || matches!(error.code.as_str(), "FILE_TOO_LARGE" | "INTERNAL_ERROR")
}

/// The files to search, and whether there are more.
async fn candidates(call: &Call<'_>, grep: &Grep) -> Result<(Vec<String>, bool), ToolError> {
    let base = match &grep.path {
        None => call.binding.allowed_root.clone(),
        Some(path) => {
            let stat = existing(call, path).await?;
            if stat.is_file == Some(true) {
                return Ok((vec![stat.path], false));
            }
            stat.path
        }
    };
    let found = match &grep.glob {
        None => list(call, base, None, true, grep.include_hidden).await?,
        // A bare name pattern is meant for every folder, as other greps have it.
        Some(glob) => {
            let glob = if glob.contains('/') { glob.clone() } else { format!("**/{glob}") };
            let found = Pattern::parse(&glob)?.list(call, &base, grep.include_hidden).await?;
            found.unwrap_or_default()
        }
    };
    let small = |entry: &FileListEntry| entry.is_file && entry.size_bytes <= MAX_FILE_BYTES;
    Ok((found.entries.into_iter().filter(small).map(|entry| entry.path).collect(), found.truncated))
}

/// The matching lines of a file; `None` when it is binary.
async fn search(
    call: &Call<'_>,
    path: &str,
    regex: Regex,
    most: usize,
) -> Result<Option<Vec<Hit>>, ToolError> {
    let bytes = read_bytes(call, path, 0, NonZeroU64::new(MAX_FILE_BYTES)).await?.bytes;
    let found = tokio::task::spawn_blocking(move || lines(&bytes, &regex, most)).await;
    found.map_err(|error| ToolError::new("INTERNAL_ERROR", error.to_string()))
}

fn lines(bytes: &[u8], regex: &Regex, most: usize) -> Option<Vec<Hit>> {
    if bytes.contains(&0) {
        return None;
    }
    let text = String::from_utf8_lossy(bytes);
    let hits = text.lines().enumerate().filter(|(_, line)| regex.is_match(line)).take(most + 1);
    let shorten = |line: &str| match line.char_indices().nth(MAX_LINE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    };
    Some(hits.map(|(index, line)| Hit { line: index + 1, text: shorten(line) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_from_one_and_binary_files_are_left_out() {
        let regex = Regex::new("b+").unwrap();
        let hits = lines("a\r\nabb\n".as_bytes(), &regex, 10).unwrap();
        assert_eq!((hits.len(), hits[0].line, &*hits[0].text), (1, 2, "abb"));
        assert!(lines(b"bb\0", &regex, 10).is_none());
        assert_eq!(
            lines(&b"b\n".repeat(9), &regex, 3).unwrap().len(),
            4,
            "one more tells that there are more"
        );
    }
}
