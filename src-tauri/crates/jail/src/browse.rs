//! Folders to choose a root from.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::sys::Dir;
use crate::types::Kind;

/// A folder that could be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Base name.
    pub name: String,
    /// The listed path with the name.
    pub path: PathBuf,
}

/// The directories in `path` that we can list, change and enter, and whether there was more than `scan_limit` to look
/// through. No links or junctions, no names that are not UTF-8 or have control characters. Sorted by case-folded name.
pub fn list_directories(path: &Path, scan_limit: usize) -> io::Result<(Vec<DirEntry>, bool)> {
    let dir = Dir::open_root(path)?;
    let mut names: Vec<(OsString, Option<Kind>)> = Vec::new();
    let (mut seen, mut truncated) = (0, false);
    dir.scan(&mut |entry| {
        truncated = seen == scan_limit;
        seen += 1;
        if !truncated {
            names.push((entry.name.to_owned(), entry.kind));
        }
        !truncated
    })?;
    let mut folders: Vec<(String, DirEntry)> = Vec::new();
    for (name, kind) in names {
        let Some(text) = name.to_str().filter(|text| !text.contains(char::is_control)) else { continue };
        if kind.is_none_or(|kind| kind == Kind::Directory) && dir.is_usable_dir(&name) {
            folders.push((text.to_lowercase(), DirEntry { name: text.to_owned(), path: path.join(&name) }));
        }
    }
    folders.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.name.cmp(&b.1.name)));
    Ok((folders.into_iter().map(|(_, entry)| entry).collect(), truncated))
}
