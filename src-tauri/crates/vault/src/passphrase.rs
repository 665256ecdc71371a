use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::atomic::{AtomicUsize, Ordering};

use secrecy::SecretString;
use zeroize::{Zeroize, Zeroizing};

use crate::VaultError;

/// The variable that carries the passphrase of the encrypted file.
pub const PASSPHRASE_VARIABLE: &str = "DESKHAND_KEYCHAIN_PASSPHRASE";
/// The variable that names a file with the passphrase.
pub const PASSPHRASE_FILE_VARIABLE: &str = "DESKHAND_KEYCHAIN_PASSPHRASE_FILE";
/// The systemd credential of that name is read too (`LoadCredential=deskhand-passphrase:…`).
const CREDENTIAL: &str = "deskhand-passphrase";
/// A longer file is not a passphrase but a mistake.
const LIMIT: u64 = 4096;

/// The passphrase from `DESKHAND_KEYCHAIN_PASSPHRASE`, else the file `DESKHAND_KEYCHAIN_PASSPHRASE_FILE` names, else
/// the systemd credential `deskhand-passphrase`; `None` when there is none of them. One newline at a file's end is not
/// part of it. The variable is overwritten in the process' memory and removed.
///
/// Call it before the first thread is started: another thread may be reading the environment.
///
/// # Errors
/// [`VaultError::PassphraseUnusable`]: empty, not UTF-8, over 4096 bytes, the file cannot be read, or (Linux, where
/// the variable is set) this program has started other threads already.
pub fn passphrase_from_env() -> Result<Option<SecretString>, VaultError> {
    if let Some(value) = take_variable()? {
        let text = value
            .into_string()
            .map_err(|other| {
                other.into_encoded_bytes().zeroize();
                unusable(format!("{PASSPHRASE_VARIABLE} is not UTF-8"))
            })
            .map(Zeroizing::new)?;
        return accept(&text, PASSPHRASE_VARIABLE).map(Some);
    }
    if let Some(path) = env::var_os(PASSPHRASE_FILE_VARIABLE).filter(|path| !path.is_empty()) {
        return read(Path::new(&path)).map(Some);
    }
    match env::var_os("CREDENTIALS_DIRECTORY").map(|dir| PathBuf::from(dir).join(CREDENTIAL)) {
        Some(path) if path.exists() => read(&path).map(Some),
        Some(_) | None => Ok(None),
    }
}

fn unusable(why: String) -> VaultError {
    VaultError::PassphraseUnusable(why)
}

fn accept(text: &str, source: &str) -> Result<SecretString, VaultError> {
    if text.is_empty() {
        return Err(unusable(format!("{source} is empty")));
    }
    Ok(SecretString::from(text))
}

#[cfg(unix)]
fn take_variable() -> Result<Option<OsString>, VaultError> {
    let Some(value) = env::var_os(PASSPHRASE_VARIABLE) else { return Ok(None) };
    if other_threads_run() {
        value.into_encoded_bytes().zeroize();
        return Err(unusable(format!(
            "{PASSPHRASE_VARIABLE} must be read before the first thread is started"
        )));
    }
    crate::environ::wipe(PASSPHRASE_VARIABLE);
    Ok(Some(value))
}

/// Linux can tell; elsewhere the caller's promise has to do.
#[cfg(unix)]
fn other_threads_run() -> bool {
    threads() > THREADS_AT_LOAD.load(Ordering::Relaxed)
}

/// Libraries and emulators may have threads of their own before `main`: WebKit's allocator has one, QEMU has one. They were
/// not started by this program and do not read its environment.
#[cfg(unix)]
static THREADS_AT_LOAD: AtomicUsize = AtomicUsize::new(1);

#[cfg(target_os = "linux")]
#[ctor::ctor(unsafe)]
fn count_threads_at_load() {
    THREADS_AT_LOAD.store(threads(), Ordering::Relaxed);
}

/// How many threads this process has; 1 where that cannot be told.
#[cfg(unix)]
fn threads() -> usize {
    if cfg!(target_os = "linux") {
        std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
    } else {
        1
    }
}

#[cfg(windows)]
fn take_variable() -> Result<Option<OsString>, VaultError> {
    let value = env::var_os(PASSPHRASE_VARIABLE);
    if value.is_some() {
        #[expect(unsafe_code, reason = "removing a variable is unsafe in Rust 2024")]
        // SAFETY: on Windows the environment is behind a lock of the OS, and other threads may use it.
        unsafe {
            env::remove_var(PASSPHRASE_VARIABLE);
        }
    }
    Ok(value)
}

fn read(path: &Path) -> Result<SecretString, VaultError> {
    let failed = |e: std::io::Error| unusable(format!("{}: {e}", path.display()));
    // Sized up front, so that reading does not move (and leave) the bytes.
    let mut bytes = Zeroizing::new(Vec::with_capacity(LIMIT as usize + 64));
    File::open(path).map_err(failed)?.take(LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LIMIT {
        return Err(unusable(format!("{} is over {LIMIT} bytes", path.display())));
    }
    let text =
        std::str::from_utf8(&bytes).map_err(|_| unusable(format!("{} is not UTF-8", path.display())))?;
    let text = text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
    accept(text, &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn of_file(content: &[u8]) -> Result<String, VaultError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passphrase");
        std::fs::write(&path, content).unwrap();
        read(&path).map(|secret| secret.expose_secret().to_owned())
    }

    #[test]
    fn one_newline_at_the_end_of_the_file_is_not_part_of_it() {
        assert_eq!(of_file(b"a b\n").unwrap(), "a b");
        assert_eq!(of_file(b"a b\r\n").unwrap(), "a b");
        assert_eq!(of_file(b" a b \n\n").unwrap(), " a b \n");
    }

    #[test]
    fn an_empty_binary_huge_or_missing_file_is_refused() {
        for content in [&b""[..], b"\n", b"\xff\xfe", &[b'x'; 5000]] {
            assert!(matches!(of_file(content), Err(VaultError::PassphraseUnusable(_))));
        }
        assert!(matches!(read(Path::new("/nonexistent/x")), Err(VaultError::PassphraseUnusable(_))));
    }
}
