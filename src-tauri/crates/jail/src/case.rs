//! Whether a directory takes `README` and `readme` for one name. Asked of what is in it; nothing is written.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};

use crate::sys::Dir;

/// Names looked at before the file system itself is asked.
const SAMPLE: usize = 256;

/// Names tried in the other case.
const TRIES: usize = 8;

pub(crate) fn folds(dir: &Dir) -> bool {
    let mut names = HashSet::new();
    let scanned = dir.scan(&mut |entry| {
        names.insert(entry.name.to_owned());
        names.len() < SAMPLE
    });
    if scanned.is_ok() {
        let tries = names.iter().filter_map(|name| Some((name, swapped(name)?))).take(TRIES);
        for (name, other) in tries {
            if names.contains(&other) {
                return false;
            }
            match (dir.stat(name), dir.stat(&other)) {
                // Two names of one file, when both were made; else one name.
                (Ok(one), Ok(two)) if one.identity == two.identity && one.links == 1 => return true,
                (Ok(_), Err(_)) => return false,
                _ => {}
            }
        }
    }
    dir.folds_by_nature()
}

/// The name in the other case, when it has letters.
fn swapped(name: &OsStr) -> Option<OsString> {
    let name = name.to_str()?;
    let other: String = name
        .chars()
        .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
        .collect();
    (other != name).then(|| other.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_for_case_rules_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("README"), "x").unwrap();
        let before = std::fs::metadata(folder.path()).unwrap().modified().unwrap();
        let dir = Dir::open_root(folder.path()).unwrap();
        let upper_is_lower = folder.path().join("readme").exists();
        assert_eq!(folds(&dir), upper_is_lower);
        assert_eq!(std::fs::metadata(folder.path()).unwrap().modified().unwrap(), before);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
