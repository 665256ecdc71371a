//! One file, replaced whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::VaultError;

/// Replaces `path` (mode 0600): a temporary file beside it, synced, renamed, and the folder synced. Whatever fails,
/// the old content stays. The caller holds the vault's lock, so the temporary name is ours.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), VaultError> {
    let temporary = path.with_extension("new");
    let written = write_new(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if let Err(source) = written {
        // Best effort: the next write removes a leftover anyway.
        let _ = fs::remove_file(&temporary);
        return Err(VaultError::io(path, source));
    }
    sync_folder_of(path)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(unix)]
fn sync_folder_of(path: &Path) -> Result<(), VaultError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| VaultError::io(folder, e))
}

/// Windows has no handle to sync a folder by; NTFS journals the rename.
#[cfg(windows)]
fn sync_folder_of(_: &Path) -> Result<(), VaultError> {
    Ok(())
}

/// Reads a regular file of at most `limit` bytes; `None` when there is none.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, VaultError> {
    let failed = |e| VaultError::io(path, e);
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
        // A FIFO would hang the open.
        Ok(meta) if !meta.is_file() => {
            return Err(VaultError::damaged(path.display().to_string(), "not a file"));
        }
        Ok(_) => {}
    }
    let mut content = Vec::new();
    File::open(path).map_err(failed)?.take(limit + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > limit {
        return Err(VaultError::damaged(path.display().to_string(), format!("over {limit} bytes")));
    }
    Ok(Some(content))
}

/// Makes the state folder, for its owner alone.
pub(crate) fn make_folder(path: &Path) -> Result<(), VaultError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|e| VaultError::io(path, e))
}
