//! The vault, the sign-in and the audit log.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use audit::AuditKey;
use vault::{Vault, VaultError, VaultOptions};
use zeroize::Zeroizing;

use super::Check;
use crate::config::{Dirs, Loaded};
use crate::executor::oauth_config;

/// The vault's name for the key. Read by name, because asking for the key would make one.
const AUDIT_KEY: &str = "audit-key";

pub(super) fn check(dirs: &Dirs, loaded: Option<&Loaded>, options: &VaultOptions) -> Vec<Check> {
    let opened = Vault::open(options).and_then(|vault| vault.round_trip().map(|()| vault));
    let vault = match opened {
        Ok(vault) => vault,
        Err(error) => {
            return vec![
                Check::fail(
                    "keychain",
                    error.to_string(),
                    "without it there is no sign-in and no log, and `run` does not start",
                ),
                Check::skipped("sign_in", "the keychain cannot be used"),
                Check::skipped("audit", "its key is in the keychain"),
            ];
        }
    };
    let kept = format!("secrets are kept in the {}", vault.backend().name());
    vec![Check::ok("keychain", kept), sign_in(loaded, &vault), log(&dirs.logs, &vault)]
}

fn sign_in(loaded: Option<&Loaded>, vault: &Vault) -> Check {
    const NAME: &str = "sign_in";
    const LOGIN: &str = "`deskhand login`";
    let tokens = match vault.tokens() {
        Ok(Some(tokens)) => tokens,
        Ok(None) => return Check::fail(NAME, "nobody is signed in", LOGIN),
        Err(error) => return Check::fail(NAME, error.to_string(), LOGIN),
    };
    let Some(loaded) = loaded else { return Check::skipped(NAME, "the configuration cannot be read") };
    let wanted = match oauth_config(&loaded.config, &loaded.platform) {
        Ok(wanted) => wanted,
        Err(error) => return Check::fail(NAME, error.to_string(), "correct platform_url"),
    };
    if tokens.platform != wanted.platform() {
        let (stored, wanted) = (&tokens.platform, wanted.platform());
        let detail = format!("signed in to {stored}, and the platform is {wanted}");
        let advice = format!(
            "to use {stored}: `--platform-url {stored}`, or `platform_url = \"{stored}\"` in config.toml; to use {wanted}: {LOGIN}"
        );
        return Check::fail(NAME, detail, advice);
    }
    let left = tokens.expires_at - now();
    match (left > 0.0, tokens.refresh_token.is_some()) {
        (_, true) => Check::ok(NAME, "signed in; it renews itself"),
        (true, false) => {
            let detail = format!("signed in for {} more minutes; it cannot be renewed", (left / 60.0).ceil());
            Check::warn(NAME, detail, LOGIN)
        }
        (false, false) => Check::fail(NAME, "the sign-in has ended and cannot be renewed", LOGIN),
    }
}

pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

fn log(dir: &Path, vault: &Vault) -> Check {
    const NAME: &str = "audit";
    let files = match audit::log_files(dir) {
        Ok(files) => files,
        Err(error) => {
            return Check::fail(NAME, error.to_string(), "give this user the right to read the log");
        }
    };
    let key = match audit_key(vault) {
        Ok(key) => key,
        Err(error) => {
            return Check::fail(
                NAME,
                error.to_string(),
                "without the key the log cannot be verified or written",
            );
        }
    };
    let Some(key) = key else {
        return if files.is_empty() {
            Check::ok(NAME, "no log yet; the first `run` begins it")
        } else {
            let detail = format!("there is a log in {} and no key for it in this keychain", dir.display());
            Check::fail(NAME, detail, "bring the key back, or move the old log away")
        };
    };
    let live = audit::log_path(dir);
    if files.contains(&live)
        && let Err(error) = OpenOptions::new().append(true).open(&live)
        && !is_being_written(&error)
    {
        let detail = format!("{} cannot be written: {error}", live.display());
        return Check::fail(NAME, detail, "nothing runs unaudited: give this user the right to write it");
    }
    let anchor = match crate::audit_anchor(vault) {
        Ok(anchor) => anchor,
        Err(error) => {
            return Check::fail(
                NAME,
                error.to_string(),
                "`deskhand audit verify-all`, and see who writes to the keychain",
            );
        }
    };
    let report = audit::verify_all(dir, &AuditKey::new(*key), anchor.as_ref());
    match report.problems.first() {
        None => {
            Check::ok(NAME, format!("{} records in {} files verify", report.records(), report.files.len()))
        }
        Some(problem) => {
            let more = report.problems.len() - 1;
            let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
            let advice = "somebody, or a fault of the disk, changed the log: keep a copy, see `deskhand audit verify-all`";
            Check::fail(NAME, format!("{problem}{more}"), advice)
        }
    }
}

/// On Windows the executor has its log open so that nobody else can: ERROR_SHARING_VIOLATION.
fn is_being_written(error: &std::io::Error) -> bool {
    cfg!(windows) && error.raw_os_error() == Some(32)
}

fn audit_key(vault: &Vault) -> Result<Option<Zeroizing<[u8; 32]>>, VaultError> {
    let Some(secret) = vault.load(AUDIT_KEY)? else { return Ok(None) };
    let key = secret.expose_secret().try_into().map_err(|_| VaultError::Damaged {
        what: "the audit key".to_owned(),
        detail: "not 32 bytes".to_owned(),
    })?;
    Ok(Some(Zeroizing::new(key)))
}
