//! Paths of a machine, which may be of another system than ours; so they are text here.

/// The last part of a path of any system.
pub(crate) fn base_name(path: &str) -> &str {
    let trimmed = path.trim_end_matches(['/', '\\']);
    trimmed.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

fn is_windows(path: &str) -> bool {
    path.starts_with("\\\\") || path.as_bytes().get(1) == Some(&b':')
}

/// `path` below `base`, with forward slashes; `None` when it is not below it. The base itself is the empty text.
pub(crate) fn below(base: &str, path: &str) -> Option<String> {
    let windows = is_windows(base);
    let separator = |c: char| c == '/' || (windows && c == '\\');
    let base = base.trim_end_matches(separator);
    let rest = path.strip_prefix(base)?;
    if !rest.is_empty() && !rest.starts_with(separator) {
        return None;
    }
    let rest = rest.trim_start_matches(separator);
    Some(if windows { rest.replace('\\', "/") } else { rest.to_owned() })
}

/// A path below `base`; `relative` has forward slashes.
pub(crate) fn join(base: &str, relative: &str) -> String {
    if relative.is_empty() {
        return base.to_owned();
    }
    if is_windows(base) {
        return format!("{}\\{}", base.trim_end_matches(['/', '\\']), relative.replace('/', "\\"));
    }
    format!("{}/{relative}", base.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_a_base_are_relative() {
        assert_eq!(below("/r", "/r/a/b").as_deref(), Some("a/b"));
        assert_eq!(below("/", "/a").as_deref(), Some("a"));
        assert_eq!(below("/r", "/r").as_deref(), Some(""));
        assert_eq!(below("/r", "/root/a"), None);
        assert_eq!(below(r"C:\r", r"C:\r\a\b").as_deref(), Some("a/b"));
        assert_eq!(below("/r", r"/r/a\b").as_deref(), Some(r"a\b"), "a backslash is a letter there");
        assert_eq!(join(r"C:\r", "a/b"), r"C:\r\a\b");
        assert_eq!(join("/", "a"), "/a");
    }
}
