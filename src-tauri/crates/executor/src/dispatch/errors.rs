//! From what a capability says to what the wire says. Every error of a capability crate gets its code here and nowhere else.

use exec::ExecError;
use jail::JailError;
use protocol::{ErrorCode, ErrorPayload};

/// The wire's answer to a refused or failed file operation.
pub(crate) fn from_jail(error: &JailError) -> ErrorPayload {
    let code = match error {
        JailError::OutsideRoot { .. } => ErrorCode::PathOutsideAllowedRoot,
        JailError::InvalidChars { .. } => ErrorCode::PathInvalidChars,
        JailError::ReservedName { .. } => ErrorCode::PathReservedName,
        JailError::NotFound { .. } | JailError::NotADirectory { .. } => ErrorCode::PathNotFound,
        JailError::Exists { .. } => ErrorCode::PathExists,
        JailError::NotEmpty { .. } => ErrorCode::PathNotEmpty,
        JailError::TooLarge { .. } => ErrorCode::FileTooLarge,
        JailError::RootGone | JailError::RootRefused(_) => ErrorCode::DirectoryUnavailable,
        JailError::NotAFile { .. }
        | JailError::IntoItself { .. }
        | JailError::TooManyLinks { .. }
        | JailError::NoTrash { .. }
        | JailError::OwnerNotKept { .. }
        | JailError::BadGlob { .. }
        | JailError::KeepsChanging { .. }
        | JailError::Cancelled
        | JailError::Io { .. } => ErrorCode::InternalError,
    };
    let payload = ErrorPayload::new(code, error.to_string());
    match error {
        JailError::TooLarge { limit, attempted, op, .. } => payload
            .with("max_file_size_bytes", *limit)
            .with("attempted_bytes", *attempted)
            .with("op", op.to_string()),
        JailError::NotAFile { kind, .. } => payload.with("kind", kind.to_string()),
        JailError::BadGlob { .. } => payload.with("field", "glob"),
        _ => payload,
    }
}

/// The wire's answer to a command that did not start.
pub(crate) fn from_exec(error: &ExecError) -> ErrorPayload {
    let payload = |code| ErrorPayload::new(code, error.to_string());
    match error {
        ExecError::ShellNotAvailable { requested } => {
            payload(ErrorCode::ShellNotAvailable).with("requested_shell", requested.name())
        }
        ExecError::ProgramNotFound { program } | ExecError::ProgramNotExecutable { program } => {
            payload(ErrorCode::ShellNotAvailable).with("program", program.as_str())
        }
        ExecError::CwdUnavailable { .. } => payload(ErrorCode::PathNotFound),
        ExecError::TooMany { limit, .. } => payload(ErrorCode::ShimOverloaded).with("max_processes", *limit),
        ExecError::BadSpec(_) | ExecError::Stopped | ExecError::NotSupervisable | ExecError::Io(_) => {
            payload(ErrorCode::InternalError)
        }
    }
}

/// Whether the error is an attempt to leave the jail, which the log names apart.
pub(crate) fn is_jail_violation(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::PathOutsideAllowedRoot | ErrorCode::PathInvalidChars | ErrorCode::PathReservedName
    )
}

/// A capability that is off here or was not granted.
pub(crate) fn not_granted(required: protocol::Capability, granted: &[protocol::Capability]) -> ErrorPayload {
    let mut names: Vec<&str> = granted.iter().map(|c| c.as_str()).collect();
    names.sort_unstable();
    ErrorPayload::new(
        ErrorCode::CapabilityNotGranted,
        format!("'{required}' is not granted on this connection: the person switches it on in Deskhand's settings, and the platform must grant it"),
    )
    .with("required_capability", required.as_str())
    .with("granted_capabilities", names)
}

/// The person paused everything, or this chat was paused after denials.
pub(crate) fn paused(why: &str) -> ErrorPayload {
    ErrorPayload::new(ErrorCode::ShimOverloaded, why).with("reason", "paused")
}

/// The chat was paused after denials.
pub(crate) fn chat_paused() -> ErrorPayload {
    paused(
        "this chat was paused after several requests in a row were declined; the person resumes it in Deskhand or with 'deskhand resume'",
    )
}

/// A payload that does not fit its request.
pub(crate) fn bad_payload(error: protocol::PayloadError) -> ErrorPayload {
    ErrorPayload::new(ErrorCode::InternalError, error.to_string()).with("field", error.field)
}

/// Over a rate.
pub(crate) fn too_often(what: &str, retry_after_seconds: u64) -> ErrorPayload {
    ErrorPayload::new(
        ErrorCode::ShimOverloaded,
        format!("too many {what} in the last minute; try again in {retry_after_seconds} s"),
    )
    .with("retry_after_seconds", retry_after_seconds)
}
