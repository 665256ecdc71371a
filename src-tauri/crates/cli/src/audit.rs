//! `deskhand audit`

use std::path::Path;
use std::time::Duration;

use audit::{AuditError, AuditKey, AuditLog, Identity, Options, Report};
use executor::events::Command;
use executor::local::{Client, ClientError};
use zeroize::Zeroizing;

use crate::args::Audit;
use crate::context::{Context, block_on};
use crate::failure::{Code, Failure, Outcome, failed};
use crate::output;

/// The vault's name for the key. Asking for it by name does not make one.
const KEY: &str = "audit-key";

pub(crate) fn audit(context: &Context, command: Audit) -> Outcome {
    let dir = &context.dirs.logs;
    match command {
        Audit::Tail { lines } => tail(&audit::log_path(dir), lines),
        Audit::Show { seq, file } => show(&file.unwrap_or_else(|| audit::log_path(dir)), seq),
        Audit::Verify { file, last } => {
            let file = file.unwrap_or_else(|| audit::log_path(dir));
            judge(&verify(context, &file, last.as_deref())?)
        }
        Audit::VerifyAll => judge(&audit::verify_all(dir, &key(context)?)),
        Audit::Rotate => rotate(context),
        Audit::Prune { older_than } => prune(context, older_than),
        Audit::Export { file } => {
            audit::export(dir, &key(context)?, &file).map_err(log_failed)?;
            output::line(file.display())
        }
        Audit::Key { show: _ } => {
            let key = key_bytes(context)?;
            let hex: Zeroizing<String> =
                Zeroizing::new(key.iter().map(|byte| format!("{byte:02x}")).collect());
            output::line(&*hex)
        }
    }
}

fn tail(log: &Path, lines: usize) -> Outcome {
    if !log.exists() {
        output::note(format_args!("deskhand: there is no log yet ({})", log.display()));
        return Ok(());
    }
    audit::tail(log, lines).map_err(log_failed)?.iter().try_for_each(output::line)
}

fn show(log: &Path, seq: u64) -> Outcome {
    match audit::show(log, seq).map_err(log_failed)? {
        Some(record) => output::line(record),
        None => Err(Failure::new(Code::Failed, format!("{} has no record {seq}", log.display()))),
    }
}

fn verify(context: &Context, file: &Path, last: Option<&str>) -> Outcome<Report> {
    let key = key(context)?;
    let is_export = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
    match (is_export, last) {
        (true, None) => Ok(audit::verify_export(file, &key)),
        (true, Some(_)) => Err(Failure::new(Code::Usage, "--last goes with a log file, not with an export")),
        (false, None) => Ok(audit::verify_file(file, &key)),
        (false, Some(hmac)) if hmac.len() == 64 && hmac.bytes().all(|b| b.is_ascii_hexdigit()) => {
            Ok(audit::verify_file_against(file, &key, &hmac.to_ascii_lowercase()))
        }
        (false, Some(_)) => {
            Err(Failure::new(Code::Usage, "--last takes the 64 hexadecimal digits of a record's hmac"))
        }
    }
}

fn judge(report: &Report) -> Outcome {
    output::line(report)?;
    if report.is_ok() { Ok(()) } else { Err(Failure::silent(Code::Data)) }
}

/// By the process that writes the log, if one runs.
fn rotate(context: &Context) -> Outcome {
    let told = block_on(async {
        Ok(async { Client::connect(&context.dirs.state).await?.command(Command::RotateLog).await }.await)
    })?;
    match told {
        Ok(_) => output::line("a new file was begun"),
        Err(ClientError::NotRunning) => {
            let closed = open(context)?.rotate().map_err(log_failed)?;
            output::line(closed.display())
        }
        Err(error) => Err(error.into()),
    }
}

fn prune(context: &Context, older_than: Duration) -> Outcome {
    let log = open(context)?;
    let gone = log.prune(older_than).map_err(log_failed)?;
    log.sync().map_err(log_failed)?;
    gone.iter().try_for_each(|file| output::line(file.display()))
}

/// Takes the log for this process.
fn open(context: &Context) -> Outcome<AuditLog> {
    let key = key(context)?;
    let machine_id = executor::machine_id(&context.dirs.state).map_err(failed(Code::Setup))?;
    let identity =
        Identity { machine_id: machine_id.to_string(), shim_version: env!("CARGO_PKG_VERSION").to_owned() };
    AuditLog::open(&context.dirs.logs, key, identity, Options::default()).map_err(log_failed)
}

fn key(context: &Context) -> Outcome<AuditKey> {
    key_bytes(context).map(|bytes| AuditKey::new(*bytes))
}

fn key_bytes(context: &Context) -> Outcome<Zeroizing<[u8; 32]>> {
    let kept = context.vault()?.load(KEY).map_err(failed(Code::Setup))?;
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
