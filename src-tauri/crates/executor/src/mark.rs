//! The mark of an installation's commands.

use std::path::Path;

use sha2::{Digest, Sha256};

/// Of the state folder, so that each start of one installation has the same and another one has another. What the
/// commands of an earlier start have left behind is known by it.
pub(crate) fn mark(state_dir: &Path) -> exec::Mark {
    // A folder that cannot be looked up is not there yet, and has left nothing.
    let path = std::fs::canonicalize(state_dir).unwrap_or_else(|_| state_dir.to_owned());
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    exec::Mark(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_mark_whatever_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state");
        std::fs::create_dir(&folder).unwrap();
        assert_eq!(mark(&folder), mark(&folder.join("..").join("state")));
        assert_ne!(mark(&folder), mark(dir.path()));
    }
}
