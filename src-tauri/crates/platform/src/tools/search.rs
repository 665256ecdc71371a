//! `glob`, and the listing that `grep` shares.

use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use protocol::{FileList, FileListEntry, FileListResponse, FileStat, FileStatResponse, MessageType};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::paths::{below, join};
use super::{Call, ToolError, ToolResult, arguments};

/// Entries of one listing; the wire's most.
const MAX_ENTRIES: u64 = 10_000;
/// Matches returned unless asked for fewer.
const MAX_MATCHES: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Glob {
    pattern: String,
    path: Option<String>,
    #[serde(default)]
    include_hidden: bool,
    limit: Option<usize>,
}

pub(super) async fn glob(call: &Call<'_>, args: Map<String, Value>) -> ToolResult {
    let Glob { pattern, path, include_hidden, limit } = arguments(args)?;
    let pattern = Pattern::parse(&pattern)?;
    let limit = limit.unwrap_or(MAX_MATCHES).clamp(1, MAX_MATCHES);
    let base = match path {
        None => call.binding.allowed_root.clone(),
        Some(path) => existing(call, &path).await?.path,
    };
    let Some(found) = pattern.list(call, &base, include_hidden).await? else {
        return Ok(json!({ "matches": [], "truncated": false }));
    };
    let root = &call.binding.allowed_root;
    let show = |entry: &FileListEntry| {
        json!({
            "path": shown(root, &entry.path),
            "is_dir": entry.is_dir,
            "size_bytes": entry.size_bytes,
            "mtime": entry.mtime,
        })
    };
    let matches: Vec<_> = found.entries.iter().take(limit).map(show).collect();
    let truncated = found.truncated || found.entries.len() > matches.len();
    Ok(json!({ "matches": matches, "truncated": truncated }))
}

/// As an agent may use it in its next call: relative to the session's folder.
pub(super) fn shown(root: &str, path: &str) -> String {
    match below(root, path) {
        Some(relative) if relative.is_empty() => ".".to_owned(),
        Some(relative) => relative,
        None => super::paths::base_name(path).to_owned(),
    }
}

/// A path that is there.
pub(super) async fn existing(call: &Call<'_>, path: &str) -> Result<FileStatResponse, ToolError> {
    let request = FileStat { path: path.to_owned(), follow_symlinks: true };
    let stat: FileStatResponse = call.request(MessageType::FileStat, &request, Duration::ZERO).await?;
    if stat.exists { Ok(stat) } else { Err(ToolError::new("PATH_NOT_FOUND", "there is nothing at 'path'")) }
}

/// Everything below a folder, or the files of one name pattern.
pub(super) async fn list(
    call: &Call<'_>,
    path: String,
    name: Option<String>,
    recursive: bool,
    include_hidden: bool,
) -> Result<FileListResponse, ToolError> {
    let request = FileList { path, glob: name, recursive, include_hidden, max_entries: MAX_ENTRIES };
    call.request(MessageType::FileList, &request, Duration::ZERO).await
}

/// A path pattern, split so that the machine lists as little as it can: the folders it names outright, then the rest.
pub(super) struct Pattern {
    /// `src/lib` of `src/lib/**/*.rs`.
    folder: String,
    matcher: GlobMatcher,
    /// The pattern of the last part, which the machine can apply itself.
    name: Option<String>,
    recursive: bool,
}

impl Pattern {
    pub(super) fn parse(pattern: &str) -> Result<Self, ToolError> {
        let bad = |why: &str| ToolError::arguments(format!("pattern: {why}"));
        let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let drive = pattern.as_bytes().get(1) == Some(&b':');
        if pattern.starts_with('/') || pattern.starts_with('~') || drive || parts.contains(&"..") {
            return Err(bad("give it relative to 'path', without '..'"));
        }
        let is_plain = |part: &&&str| !part.contains(['*', '?', '[', '{', '}', '\\']);
        let Some((last, folders)) = parts.split_last() else { return Err(bad("it is empty")) };
        let plain = folders.iter().take_while(is_plain).count();
        // `{a/b,c}` holds a slash: then the parts are none.
        let divides = parts.iter().all(|part| part.matches('{').count() == part.matches('}').count());
        let plain = if divides { plain } else { 0 };
        let rest = parts[plain..].join("/");
        let matcher = GlobBuilder::new(&rest)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| bad(&error.to_string()))?
            .compile_matcher();
        Ok(Self {
            folder: parts[..plain].join("/"),
            matcher,
            name: (divides && *last != "**").then(|| (*last).to_owned()),
            recursive: parts.len() - plain > 1 || *last == "**" || !divides,
        })
    }

    /// The entries that match; `None` when the folder it names is not there.
    pub(super) async fn list(
        &self,
        call: &Call<'_>,
        base: &str,
        include_hidden: bool,
    ) -> Result<Option<FileListResponse>, ToolError> {
        let mut folder = base.to_owned();
        if !self.folder.is_empty() {
            let request = FileStat { path: join(base, &self.folder), follow_symlinks: true };
            let stat: FileStatResponse =
                call.request(MessageType::FileStat, &request, Duration::ZERO).await?;
            if stat.is_dir != Some(true) {
                return Ok(None);
            }
            folder = stat.path;
        }
        let mut found = list(call, folder.clone(), self.name.clone(), self.recursive, include_hidden).await?;
        found.entries.retain(|entry| {
            below(&folder, &entry.path).is_some_and(|relative| self.matcher.is_match(&relative))
        });
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(pattern: &str) -> (String, Option<String>, bool) {
        let parsed = Pattern::parse(pattern).unwrap();
        (parsed.folder, parsed.name, parsed.recursive)
    }

    #[test]
    fn the_machine_lists_as_little_as_it_can() {
        let named =
            |folder: &str, name: &str, recursive| (folder.to_owned(), Some(name.to_owned()), recursive);
        assert_eq!(parsed("*.rs"), named("", "*.rs", false));
        assert_eq!(parsed("src/lib/**/*.rs"), named("src/lib", "*.rs", true));
        assert_eq!(parsed("a/b.txt"), named("a", "b.txt", false));
        assert_eq!(parsed("a/*/b"), named("a", "b", true));
        assert_eq!(parsed("src/**"), ("src".to_owned(), None, true));
        assert_eq!(parsed("{a/b,c}"), (String::new(), None, true));
    }

    #[test]
    fn stars_stop_at_folders_and_double_stars_do_not() {
        let matches = |pattern: &str, path: &str| Pattern::parse(pattern).unwrap().matcher.is_match(path);
        assert!(matches("**/*.rs", "a/b/c.rs") && matches("**/*.rs", "c.rs"));
        assert!(!matches("*.rs", "a/c.rs") && matches("{a/b,c}", "a/b"));
    }

    #[test]
    fn patterns_that_lead_elsewhere_are_refused() {
        for bad in ["/etc/*", "../*", "a/../../b", "~/x", "C:/x", "", "a/["] {
            assert!(Pattern::parse(bad).is_err(), "{bad}");
        }
    }
}
