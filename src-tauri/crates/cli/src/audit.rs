//! `deskhand audit`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use audit::{Anchor, AuditError, AuditKey, AuditLog, Identity, Options, Report};
use executor::AnchorError;
use executor::events::Command;
use executor::local::{Client, ClientError};
use vault::Vault;
use zeroize::Zeroizing;

use crate::args::Audit;
use crate::context::{Context, block_on};
use crate::failure::{Code, Failure, Outcome, failed};
use crate::output;
use crate::records;

/// The vault's name for the key. Asking for it by name does not make one.
const KEY: &str = "audit-key";

pub(crate) fn audit(context: &Context, command: Audit) -> Outcome {
    let dir = &context.dirs.logs;
    match command {
        Audit::Tail { lines, json } => tail(&audit::log_path(dir), lines, json),
        Audit::Show { seq, file: Some(file) } => {
            check_given(&file)?;
            show(&file, seq)?.map_or_else(|| Err(no_record(&file, seq, "")), output::line)
        }
        Audit::Show { seq, file: None } => show_current(dir, seq),
        Audit::Verify { file, last } => judge(&verify(context, file.as_deref(), last.as_deref())?),
        Audit::VerifyAll => {
            let Secrets { key, anchor, .. } = Secrets::with_anchor(context)?;
            judge(&audit::verify_all(dir, &key, anchor.as_ref()))
        }
        Audit::Rotate => rotate(context),
        Audit::Prune { older_than } => prune(context, older_than),
        Audit::Export { file } => {
            check_free(&file)?;
            audit::export(dir, &Secrets::new(context)?.key, &file).map_err(log_failed)?;
            output::line(file.display())
        }
        Audit::Key { show: _ } => {
            let key = key_bytes(&context.vault()?)?;
            let hex: Zeroizing<String> =
                Zeroizing::new(key.iter().map(|byte| format!("{byte:02x}")).collect());
            output::line(&*hex)
        }
    }
}

fn tail(log: &Path, lines: usize, as_json: bool) -> Outcome {
    if !log.exists() {
        output::note(format_args!("deskhand: there is no log yet ({})", log.display()));
        return Ok(());
    }
    let show =
        |line: &String| if as_json { output::line(line) } else { output::line(records::in_short(line)) };
    audit::tail(log, lines).map_err(log_failed)?.iter().try_for_each(show)
}

fn show(log: &Path, seq: u64) -> Outcome<Option<String>> {
    audit::show(log, seq).map_err(log_failed)
}

/// The file that is being written. Numbers begin anew with each file, so where it does not have one the closed files are
/// named.
fn show_current(dir: &Path, seq: u64) -> Outcome {
    let log = audit::log_path(dir);
    let record = if log.exists() { show(&log, seq)? } else { None };
    let Some(record) = record else {
        let closed: Vec<_> =
            audit::log_files(dir).map_err(log_failed)?.into_iter().filter(|file| *file != log).collect();
        return Err(no_record(&log, seq, &closed_files_to_show(&closed, seq)));
    };
    output::line(record)
}

fn closed_files_to_show(closed: &[PathBuf], seq: u64) -> String {
    let Some(last) = closed.last() else { return String::new() };
    let names: Vec<_> = closed.iter().map(|file| format!("\n  {}", file.display())).collect();
    format!(
        "; there are closed files, each with numbers of its own:{}\nto look into one: deskhand audit show {seq} --file {}",
        names.concat(),
        last.display()
    )
}

fn no_record(log: &Path, seq: u64, more: &str) -> Failure {
    Failure::new(Code::Failed, format!("{} has no record {seq}{more}", log.display()))
}

/// A file that was named is there and can be read; else it is the command line that is wrong, not the log.
fn check_given(file: &Path) -> Outcome {
    let unusable = |why: &dyn std::fmt::Display| {
        Err(Failure::new(Code::Usage, format!("{} cannot be read: {why}; name a log file", file.display())))
    };
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::new(Code::Usage, format!("there is no file {}", file.display())))
        }
        Err(error) => unusable(&error),
        Ok(found) if !found.is_file() => unusable(&"it is not a file"),
        Ok(_) => match std::fs::File::open(file) {
            Ok(_) => Ok(()),
            Err(error) => unusable(&error),
        },
    }
}

/// An export is written over nothing.
fn check_free(file: &Path) -> Outcome {
    if file.symlink_metadata().is_err() {
        return Ok(());
    }
    let message = format!("{} exists already: choose another name, or remove it first", file.display());
    Err(Failure::new(Code::Setup, message))
}

fn verify(context: &Context, file: Option<&Path>, last: Option<&str>) -> Outcome<Report> {
    let last = last.map(hmac).transpose()?;
    let Some(file) = file else {
        let Secrets { key, anchor, .. } = Secrets::with_anchor(context)?;
        return Ok(audit::verify_current(&context.dirs.logs, &key, anchor.as_ref(), last.as_deref()));
    };
    check_given(file)?;
    let key = Secrets::new(context)?.key;
    let is_export = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
    match (is_export, last) {
        (true, None) => Ok(audit::verify_export(file, &key)),
        (true, Some(_)) => Err(Failure::new(Code::Usage, "--last goes with a log file, not with an export")),
        (false, None) => Ok(audit::verify_file(file, &key)),
        (false, Some(last)) => Ok(audit::verify_file_against(file, &key, &last)),
    }
}

fn hmac(text: &str) -> Outcome<String> {
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Failure::new(Code::Usage, "--last takes the 64 hexadecimal digits of a record's hmac"))
}

/// The record that is remembered beside the key.
fn anchor(vault: &Vault) -> Outcome<Option<Anchor>> {
    executor::audit_anchor(vault).map_err(|error| {
        let code = match error {
            AnchorError::Damaged(_) => Code::Data,
            AnchorError::Vault(_) | AnchorError::Audit(_) => Code::Setup,
        };
        Failure::new(code, error)
    })
}

fn judge(report: &Report) -> Outcome {
    output::line(report)?;
    if report.is_ok() { Ok(()) } else { Err(Failure::silent(Code::Data)) }
}

/// Has the process that writes the log carry out a command; false when none runs.
fn told(context: &Context, command: Command) -> Outcome<bool> {
    let answer = block_on(async {
        Ok(async { Client::connect(&context.dirs.state).await?.command(command).await }.await)
    })?;
    match answer {
        Ok(_) => Ok(true),
        Err(ClientError::NotRunning) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn rotate(context: &Context) -> Outcome {
    if told(context, Command::RotateLog)? {
        return output::line("a new file was begun");
    }
    let Secrets { key, anchor, .. } = Secrets::with_anchor(context)?;
    let closed = open(context, key, anchor)?.rotate().map_err(log_failed)?;
    output::line(closed.display())
}

/// Says which files are gone.
fn prune(context: &Context, older_than: Duration) -> Outcome {
    let before = closed_files(&context.dirs.logs);
    if !told(context, Command::PruneLog { older_than_seconds: older_than.as_secs() })? {
        let Secrets { vault, key, anchor } = Secrets::with_anchor(context)?;
        let log = open(context, key, anchor)?;
        // One of the files may hold the record that is remembered so far.
        executor::keep_audit_anchor(&vault, &log).map_err(failed(Code::Setup))?;
        log.prune(older_than).map_err(log_failed)?;
        log.sync().map_err(log_failed)?;
    }
    let left = closed_files(&context.dirs.logs);
    let mut gone = before.difference(&left).peekable();
    if gone.peek().is_none() {
        output::note("nothing to delete: no file was closed longer ago than that");
    }
    gone.try_for_each(|file| output::line(file.display()))
}

/// Closed files and half lines put away.
fn closed_files(dir: &Path) -> BTreeSet<PathBuf> {
    let entries = dir.read_dir().into_iter().flatten().flatten();
    let is_closed = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("audit.log.");
    entries.filter(|entry| is_closed(&entry.file_name())).map(|entry| entry.path()).collect()
}

/// Takes the log for this process.
fn open(context: &Context, key: AuditKey, anchor: Option<Anchor>) -> Outcome<AuditLog> {
    let machine_id = executor::machine_id(&context.dirs.state).map_err(failed(Code::Setup))?;
    let identity =
        Identity { machine_id: machine_id.to_string(), shim_version: env!("CARGO_PKG_VERSION").to_owned() };
    let options = Options { anchor, ..Options::default() };
    AuditLog::open(&context.dirs.logs, key, identity, options).map_err(log_failed)
}

/// What the vault knows of the log.
struct Secrets {
    vault: Vault,
    key: AuditKey,
    anchor: Option<Anchor>,
}

impl Secrets {
    fn new(context: &Context) -> Outcome<Self> {
        let vault = context.vault()?;
        let key = AuditKey::new(*key_bytes(&vault)?);
        Ok(Self { vault, key, anchor: None })
    }

    fn with_anchor(context: &Context) -> Outcome<Self> {
        let mut secrets = Self::new(context)?;
        secrets.anchor = anchor(&secrets.vault)?;
        Ok(secrets)
    }
}

fn key_bytes(vault: &Vault) -> Outcome<Zeroizing<[u8; 32]>> {
    let kept = vault.load(KEY).map_err(failed(Code::Setup))?;
    let Some(kept) = kept else {
        let message = "there is no audit key yet: the first `deskhand run` makes it";
        return Err(Failure::new(Code::Setup, message));
    };
    kept.expose_secret()
        .try_into()
        .map(Zeroizing::new)
        .map_err(|_| Failure::new(Code::Setup, "the audit key in the keychain is damaged (not 32 bytes)"))
}

fn log_failed(error: AuditError) -> Failure {
    match error {
        AuditError::Busy { .. } => Failure::new(
            Code::Unavailable,
            format!("{error}: end it first (Ctrl-C at `deskhand run`, or `deskhand service uninstall`)"),
        ),
        AuditError::Empty { .. } => Failure::new(Code::Failed, error),
        other => Failure::new(Code::Setup, other),
    }
}
