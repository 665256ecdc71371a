//! Message types, and which requests there are.

use crate::capability::{Capability, names};

names!(
    /// Every message type of the contract.
    MessageType {
        /// Executor's greeting.
        Hello = "HELLO",
        /// Platform's answer to it.
        HelloAck = "HELLO_ACK",
        /// Platform's heartbeat.
        Ping = "PING",
        /// Answer to it.
        Pong = "PONG",
        /// Executor's load, unsolicited.
        Status = "STATUS",
        /// The session, or the machine, is no longer ours.
        SessionRevoked = "SESSION_REVOKED",
        /// A request failed.
        Error = "ERROR",
        /// A request that returns nothing succeeded.
        Ack = "ACK",
        /// List folders to choose from.
        DirectoryListRequest = "DIRECTORY_LIST_REQUEST",
        /// Answer to it.
        DirectoryListResponse = "DIRECTORY_LIST_RESPONSE",
        /// Bind a folder to a session.
        AttachSession = "ATTACH_SESSION",
        /// Answer to it.
        SessionAttached = "SESSION_ATTACHED",
        /// Open the session's data connection.
        ActivateSession = "ACTIVATE_SESSION",
        /// Answer to it.
        SessionActivated = "SESSION_ACTIVATED",
        /// Bind and open from a grant issued earlier.
        RestoreSession = "RESTORE_SESSION",
        /// Answer to it.
        SessionRestored = "SESSION_RESTORED",
        /// Close and unbind.
        DetachSession = "DETACH_SESSION",
        /// Read a file.
        FileRead = "FILE_READ",
        /// Answer to it.
        FileContents = "FILE_CONTENTS",
        /// Write a file.
        FileWrite = "FILE_WRITE",
        /// Facts about a path.
        FileStat = "FILE_STAT",
        /// Answer to it.
        FileStatResponse = "FILE_STAT_RESPONSE",
        /// List a folder.
        FileList = "FILE_LIST",
        /// Answer to it.
        FileListResponse = "FILE_LIST_RESPONSE",
        /// Delete.
        FileDelete = "FILE_DELETE",
        /// Move or rename.
        FileMove = "FILE_MOVE",
        /// Run a command.
        ExecuteCommand = "EXECUTE_COMMAND",
        /// Answer to it.
        CommandResult = "COMMAND_RESULT",
        /// Take a picture.
        ScreenshotRequest = "SCREENSHOT_REQUEST",
        /// Answer to it.
        ScreenshotResponse = "SCREENSHOT_RESPONSE",
        /// Mouse or keyboard.
        InputAction = "INPUT_ACTION",
        /// Where the pointer is.
        CursorPositionRequest = "CURSOR_POSITION_REQUEST",
        /// Answer to it.
        CursorPositionResponse = "CURSOR_POSITION_RESPONSE",
        /// Which displays there are.
        DisplayInfoRequest = "DISPLAY_INFO_REQUEST",
        /// Answer to it.
        DisplayInfoResponse = "DISPLAY_INFO_RESPONSE",
        /// Which windows there are.
        WindowListRequest = "WINDOW_LIST_REQUEST",
        /// Answer to it.
        WindowListResponse = "WINDOW_LIST_RESPONSE",
        /// Focus a window.
        WindowFocus = "WINDOW_FOCUS",
        /// Which applications run.
        AppListRequest = "APP_LIST_REQUEST",
        /// Answer to it.
        AppListResponse = "APP_LIST_RESPONSE",
        /// Start an application.
        AppLaunch = "APP_LAUNCH",
        /// Read the clipboard.
        ClipboardRead = "CLIPBOARD_READ",
        /// Answer to it.
        ClipboardReadResponse = "CLIPBOARD_READ_RESPONSE",
        /// Write the clipboard.
        ClipboardWrite = "CLIPBOARD_WRITE",
        /// What the operating system permits.
        PermissionsCheckRequest = "PERMISSIONS_CHECK_REQUEST",
        /// Answer to it.
        PermissionsCheckResponse = "PERMISSIONS_CHECK_RESPONSE",
        /// Ask for a recording.
        RequestRecordingConsent = "REQUEST_RECORDING_CONSENT",
        /// Answer to it.
        RecordingConsentResult = "RECORDING_CONSENT_RESULT",
        /// Start a recording.
        StartRecording = "START_RECORDING",
        /// Answer to it.
        RecordingStarted = "RECORDING_STARTED",
        /// One recorded step, unsolicited.
        RecordingStep = "RECORDING_STEP",
        /// Stop a recording.
        StopRecording = "STOP_RECORDING",
        /// Answer to it.
        RecordingSummary = "RECORDING_SUMMARY",
        /// Fetch a recording.
        RecordingFetch = "RECORDING_FETCH",
        /// Answer to it.
        RecordingData = "RECORDING_DATA",
        /// Remove and redact steps.
        ApplyRecordingReview = "APPLY_RECORDING_REVIEW",
        /// Answer to it.
        RecordingReviewApplied = "RECORDING_REVIEW_APPLIED",
        /// Ask the local model.
        LocalLlmCompletion = "LOCAL_LLM_COMPLETION",
        /// A piece of its answer.
        LocalLlmCompletionChunk = "LOCAL_LLM_COMPLETION_CHUNK",
        /// Its whole answer.
        LocalLlmCompletionResponse = "LOCAL_LLM_COMPLETION_RESPONSE",
    }
);

/// The connection a request is served on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// One a machine: folders and sessions.
    Control,
    /// One a session: everything else.
    Data,
}

/// What the contract fixes about a request: where it is served, what it needs, what answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The message type.
    pub kind: MessageType,
    /// The connection it is served on; `FEATURE_NOT_SUPPORTED` on the other.
    pub channel: Channel,
    /// The capability that must be granted.
    pub capability: Capability,
    /// The type of a successful answer.
    pub response: MessageType,
    /// Whether repeating it changes nothing, so that it may be sent again after a reconnect.
    pub idempotent: bool,
}

macro_rules! requests {
    ($($kind:ident $channel:ident $capability:ident $response:ident $idempotent:literal,)*) => {
        impl Request {
            /// Every request of the contract.
            pub const ALL: &[Request] = &[$(Request {
                kind: MessageType::$kind,
                channel: Channel::$channel,
                capability: Capability::$capability,
                response: MessageType::$response,
                idempotent: $idempotent,
            }),*];
        }
    };
}

requests! {
    DirectoryListRequest    Control DirectoryBrowse DirectoryListResponse      true,
    AttachSession           Control DirectoryBrowse SessionAttached            false,
    ActivateSession         Control DirectoryBrowse SessionActivated           true,
    RestoreSession          Control DirectoryBrowse SessionRestored            true,
    DetachSession           Control DirectoryBrowse Ack                        true,
    FileRead                Data    Files           FileContents               true,
    FileWrite               Data    Files           Ack                        false,
    FileStat                Data    Files           FileStatResponse           true,
    FileList                Data    Files           FileListResponse           true,
    FileDelete              Data    Files           Ack                        false,
    FileMove                Data    Files           Ack                        false,
    ExecuteCommand          Data    Shell           CommandResult              false,
    ScreenshotRequest       Data    ComputerUse     ScreenshotResponse         true,
    InputAction             Data    ComputerUse     Ack                        false,
    CursorPositionRequest   Data    ComputerUse     CursorPositionResponse     true,
    DisplayInfoRequest      Data    ComputerUse     DisplayInfoResponse        true,
    WindowListRequest       Data    ComputerUse     WindowListResponse         true,
    WindowFocus             Data    ComputerUse     Ack                        false,
    AppListRequest          Data    ComputerUse     AppListResponse            true,
    AppLaunch               Data    ComputerUse     Ack                        false,
    ClipboardRead           Data    ComputerUse     ClipboardReadResponse      true,
    ClipboardWrite          Data    ComputerUse     Ack                        false,
    PermissionsCheckRequest Data    ComputerUse     PermissionsCheckResponse   true,
    RequestRecordingConsent Data    Recording       RecordingConsentResult     false,
    StartRecording          Data    Recording       RecordingStarted           false,
    StopRecording           Data    Recording       RecordingSummary           true,
    RecordingFetch          Data    Recording       RecordingData              true,
    ApplyRecordingReview    Data    Recording       RecordingReviewApplied     true,
    LocalLlmCompletion      Data    LocalLlm        LocalLlmCompletionResponse false,
}

impl MessageType {
    /// The request of this type; `None` for answers and unsolicited messages.
    #[must_use]
    pub fn request(self) -> Option<&'static Request> {
        Request::ALL.iter().find(|request| request.kind == self)
    }
}
