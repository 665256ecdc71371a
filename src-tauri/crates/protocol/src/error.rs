//! `ERROR`: the codes of the contract and their payload.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The error codes of the contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the contract.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant),*];

            /// The code as it stands on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $name,)* }
            }
        }
    };
}

codes! {
    /// The token was not accepted.
    AuthFailed = "AUTH_FAILED",
    /// The capability is off here, or the platform did not grant it.
    CapabilityNotGranted = "CAPABILITY_NOT_GRANTED",
    /// The clipboard's content may not be read.
    ClipboardConcealed = "CLIPBOARD_CONCEALED",
    /// A command ran out of time (the result of one carries `timed_out` instead).
    CommandTimeout = "COMMAND_TIMEOUT",
    /// The person, or a rule of theirs, did not allow it.
    ConsentRequired = "CONSENT_REQUIRED",
    /// A program or library that the request needs is not installed.
    DependencyMissing = "DEPENDENCY_MISSING",
    /// A browse reference that is unknown, expired or of another connection.
    DirectoryReferenceInvalid = "DIRECTORY_REFERENCE_INVALID",
    /// The folder is gone or cannot be used.
    DirectoryUnavailable = "DIRECTORY_UNAVAILABLE",
    /// The request, or this part of it, is not supported here.
    FeatureNotSupported = "FEATURE_NOT_SUPPORTED",
    /// Over a size limit.
    FileTooLarge = "FILE_TOO_LARGE",
    /// A coordinate or monitor that does not exist.
    InputOutOfBounds = "INPUT_OUT_OF_BOUNDS",
    /// Anything else; the message says what.
    InternalError = "INTERNAL_ERROR",
    /// No way to interpret a recording that the person agreed to.
    InterpretationUnavailable = "INTERPRETATION_UNAVAILABLE",
    /// The local model is answering another request.
    LocalLlmBusy = "LOCAL_LLM_BUSY",
    /// The local model's server failed.
    LocalLlmFailed = "LOCAL_LLM_FAILED",
    /// The local model's server does not have that model.
    ModelNotAvailable = "MODEL_NOT_AVAILABLE",
    /// The destination is taken.
    PathExists = "PATH_EXISTS",
    /// The path has characters, or a length, that no file may have.
    PathInvalidChars = "PATH_INVALID_CHARS",
    /// The directory is not empty.
    PathNotEmpty = "PATH_NOT_EMPTY",
    /// Nothing is there.
    PathNotFound = "PATH_NOT_FOUND",
    /// The path leads out of the session's folder.
    PathOutsideAllowedRoot = "PATH_OUTSIDE_ALLOWED_ROOT",
    /// A name that Windows reserves.
    PathReservedName = "PATH_RESERVED_NAME",
    /// The operating system's permission is not given yet.
    PermissionPending = "PERMISSION_PENDING",
    /// A recording is already running.
    RecordingAlreadyActive = "RECORDING_ALREADY_ACTIVE",
    /// A recording channel that is not available.
    RecordingChannelUnavailable = "RECORDING_CHANNEL_UNAVAILABLE",
    /// No recording of that id.
    RecordingNotFound = "RECORDING_NOT_FOUND",
    /// A review that does not fit the recording.
    RecordingReviewInvalid = "RECORDING_REVIEW_INVALID",
    /// The root grant does not hold.
    RootGrantInvalid = "ROOT_GRANT_INVALID",
    /// The session is active.
    SessionAlreadyActive = "SESSION_ALREADY_ACTIVE",
    /// The session has no folder.
    SessionNotAttached = "SESSION_NOT_ATTACHED",
    /// The session's folder has another revision.
    SessionRevisionMismatch = "SESSION_REVISION_MISMATCH",
    /// The shell or program is not installed.
    ShellNotAvailable = "SHELL_NOT_AVAILABLE",
    /// Too much at once, too often, or paused.
    ShimOverloaded = "SHIM_OVERLOADED",
    /// A processor that this product does not run on.
    UnsupportedArch = "UNSUPPORTED_ARCH",
    /// The window is gone or is another one now.
    WindowStale = "WINDOW_STALE",
}

/// Payload of `ERROR`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorPayload {
    /// What went wrong, for programs.
    pub code: ErrorCode,
    /// What went wrong and what to do next, for people and agents.
    pub message: String,
    /// Whether the connection ends with it.
    #[serde(default)]
    pub fatal: bool,
    /// Facts by code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
}

impl ErrorPayload {
    /// An error that the connection survives, without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), fatal: false, details: None }
    }

    /// The same error with one more detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }
}
