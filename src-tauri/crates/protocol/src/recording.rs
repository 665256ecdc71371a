//! Payloads of workflow recording.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Whether the platform follows along or gets the recording afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordingMode {
    /// Steps are streamed.
    Copilot,
    /// Steps are kept here until fetched.
    Demonstration,
}

/// `REQUEST_RECORDING_CONSENT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecordingConsent {
    /// How it is used.
    pub mode: RecordingMode,
    /// Of `extract_then_cloud local_vlm screenshots_to_cloud`.
    pub interpretation_route: String,
    /// Of `floor browser desktop_ax`.
    pub channels: Vec<String>,
}

/// `RECORDING_CONSENT_RESULT`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingConsentResult {
    /// What the person said.
    pub approved: bool,
    /// As asked.
    pub mode: RecordingMode,
    /// The effective one.
    pub interpretation_route: String,
    /// Single use.
    #[serde(default)]
    pub consent_token: Option<String>,
    /// When the token dies, seconds since the epoch.
    #[serde(default)]
    pub expires_at: Option<f64>,
}

/// `START_RECORDING`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRecording {
    /// As consented.
    pub mode: RecordingMode,
    /// As consented.
    pub interpretation_route: String,
    /// As consented.
    pub channels: Vec<String>,
    /// From the consent.
    #[serde(default)]
    pub consent_token: Option<String>,
}

/// `RECORDING_STARTED`, `STOP_RECORDING` and `RECORDING_FETCH`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingRef {
    /// `rec_<uuid>`.
    pub recording_id: String,
}

/// `RECORDING_STEP`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingStep {
    /// The recording.
    pub recording_id: String,
    /// The step, after hygiene.
    pub step: Map<String, Value>,
}

/// How many steps know their element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrichmentCoverage {
    /// Through the browser.
    pub dom: u64,
    /// Through accessibility.
    pub ax: u64,
    /// Not at all.
    pub none: u64,
}

/// `RECORDING_SUMMARY`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingSummary {
    /// The recording.
    pub recording_id: String,
    /// Steps in it.
    pub step_count: u64,
    /// How many know their element.
    pub enrichment_coverage: EnrichmentCoverage,
    /// How long it ran.
    pub duration_seconds: f64,
}

/// `RECORDING_DATA`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingData {
    /// The whole recording.
    pub recording: Map<String, Value>,
}

/// `APPLY_RECORDING_REVIEW`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyRecordingReview {
    /// The recording.
    pub recording_id: String,
    /// Steps to remove.
    #[serde(default)]
    pub removed_step_seqs: Vec<u64>,
    /// Steps to hide the value of.
    #[serde(default)]
    pub redacted_step_seqs: Vec<u64>,
}

/// `RECORDING_REVIEW_APPLIED`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingReviewApplied {
    /// The recording.
    pub recording_id: String,
    /// Steps left.
    pub step_count: u64,
}
