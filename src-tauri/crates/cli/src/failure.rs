//! Why a command did not do what it was asked, and the exit code that says so.

use std::fmt::Display;
use std::process::ExitCode;

use executor::local::{ClientError, InstanceError};

/// Exit codes: sysexits.h where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Anything that has no code of its own.
    Failed = 1,
    /// `EX_USAGE`: the command line or what was given on standard input.
    Usage = 64,
    /// `EX_DATAERR`: an audit log that does not verify.
    Data = 65,
    /// `EX_UNAVAILABLE`: the platform, or the process that should run, is not there.
    Unavailable = 69,
    /// `EX_NOPERM`: signing in is needed.
    SignIn = 77,
    /// `EX_CONFIG`: the configuration, a folder, a key or a permission.
    Setup = 78,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// A command that failed. The message says what to do next; it never holds a secret.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: Option<String>,
}

/// How a command ended.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: Code, message: impl Display) -> Self {
        Self { code, message: Some(message.to_string()) }
    }

    /// For commands whose result has already said everything.
    pub(crate) fn silent(code: Code) -> Self {
        Self { code, message: None }
    }

    pub(crate) fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            eprintln!("deskhand: {message}");
        }
        self.code.into()
    }
}

/// `map_err(failed(Code::…))`
pub(crate) fn failed<E: Display>(code: Code) -> impl Fn(E) -> Failure {
    move |error| Failure::new(code, error)
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = match &error {
            ClientError::NotRunning | ClientError::Silent { .. } | ClientError::Broken(_) => {
                Code::Unavailable
            }
            ClientError::Refused { code, .. } => match code {
                executor::local::Refusal::Forbidden => Code::Setup,
                executor::local::Refusal::Busy | executor::local::Refusal::NoAnswer => Code::Unavailable,
                executor::local::Refusal::BadRequest | executor::local::Refusal::Failed => Code::Failed,
            },
        };
        Self::new(code, error)
    }
}

impl From<InstanceError> for Failure {
    fn from(error: InstanceError) -> Self {
        Self::new(Code::Setup, error)
    }
}
