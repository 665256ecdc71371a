//! `HELLO`, `HELLO_ACK` and what follows from the two.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Capability, Coarse, MachineId, SessionId, Version, close};

/// What the executor runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// macOS.
    Darwin,
    /// Linux.
    Linux,
    /// Windows.
    Windows,
    /// Linux under Windows.
    Wsl2,
}

impl Platform {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Platform::Darwin => "darwin",
            Platform::Linux => "linux",
            Platform::Windows => "windows",
            Platform::Wsl2 => "wsl2",
        }
    }
}

/// Payload of `HELLO`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// This product's semantic version.
    pub shim_version: String,
    /// The highest protocol version it speaks.
    pub protocol_version: Version,
    /// This machine.
    pub machine_id: MachineId,
    /// What the machine picker shows, at most 128 characters.
    pub display_name: String,
    /// Operating system.
    pub platform: Platform,
    /// `x86_64` or `arm64`.
    pub arch: String,
    /// Primary display in physical pixels; null without computer use.
    pub screen_resolution: Option<[u32; 2]>,
    /// What is on and works.
    pub capabilities: Vec<Capability>,
    /// Null on control; the canonical folder on data.
    pub allowed_root: Option<String>,
    /// Models of the local server.
    pub local_llm_models: Vec<String>,
    /// Ports, devices, pins.
    pub hardware_devices: Vec<Map<String, Value>>,
    /// Fine features of computer use.
    pub computer_use_features: Vec<String>,
    /// Their coarse groups.
    pub computer_use_features_coarse: Vec<Coarse>,
    /// Of `floor browser desktop_ax`.
    pub recording_channels: Vec<String>,
    /// Of `extract_then_cloud local_vlm screenshots_to_cloud`.
    pub recording_routes: Vec<String>,
}

/// Payload of `HELLO_ACK`. Names of capabilities stay text: what was granted without being offered must be refused, also
/// when we do not know it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HelloAck {
    /// Null, absent or empty on control; the exact id on data.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Opaque; required on control.
    #[serde(default)]
    pub connection_id: Option<String>,
    /// The platform's version.
    pub protocol_version: Version,
    /// What it lets through.
    pub granted_capabilities: Vec<String>,
    /// Default 10 MiB.
    #[serde(default = "default_file_size")]
    pub max_file_size_bytes: i64,
    /// Default 30.
    #[serde(default = "default_timeout")]
    pub command_timeout_seconds: f64,
    /// Default 4.
    #[serde(default = "default_concurrent")]
    pub max_concurrent: i64,
}

fn default_file_size() -> i64 {
    10 * 1024 * 1024
}

fn default_timeout() -> f64 {
    30.0
}

fn default_concurrent() -> i64 {
    4
}

/// Limits in force; the smallest of what each side says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of one file read or written, and of one command's output.
    pub max_file_size_bytes: u64,
    /// Seconds that a command may take.
    pub command_timeout_seconds: f64,
    /// Requests at once on a connection.
    pub max_concurrent: u32,
}

impl Limits {
    /// The smaller of each.
    #[must_use]
    pub fn min(self, other: Limits) -> Limits {
        Limits {
            max_file_size_bytes: self.max_file_size_bytes.min(other.max_file_size_bytes),
            command_timeout_seconds: self.command_timeout_seconds.min(other.command_timeout_seconds),
            max_concurrent: self.max_concurrent.min(other.max_concurrent),
        }
    }
}

/// Which handshake is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection<'a> {
    /// The machine's.
    Control,
    /// A session's.
    Data(&'a SessionId),
}

/// What a handshake settled.
#[derive(Debug, Clone, PartialEq)]
pub struct Negotiated {
    /// Same major, smaller minor.
    pub version: Version,
    /// Set on control.
    pub connection_id: Option<String>,
    /// Offered and granted.
    pub capabilities: Vec<Capability>,
    /// The acknowledgement's limits, not yet narrowed by ours.
    pub limits: Limits,
}

/// An acknowledgement that breaks the contract. None of these is retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AckError {
    /// Another session than the one that was opened, or one on control.
    #[error("the platform acknowledged {}", describe_session(got.as_deref()))]
    WrongSession {
        /// What it named.
        got: Option<String>,
    },
    /// A capability that was not offered.
    #[error("the platform granted '{0}', which this machine did not offer")]
    NotOffered(String),
    /// A limit of zero, below, or not a number.
    #[error("the platform set {0} to a value that is not positive")]
    BadLimit(&'static str),
    /// Another major version, or on control one below 1.1.
    #[error("the platform speaks protocol {platform}, this machine {ours}")]
    VersionMismatch {
        /// The highest that we speak.
        ours: Version,
        /// What the platform said.
        platform: Version,
    },
    /// On control: no connection id.
    #[error("the platform gave the control connection no connection_id")]
    NoConnectionId,
    /// On control: folder browsing is not granted.
    #[error("the platform did not grant directory_browse on the control connection")]
    NoDirectoryBrowse,
}

fn describe_session(got: Option<&str>) -> String {
    got.map_or_else(
        || "no session".to_owned(),
        |id| format!("session '{}'", id.chars().take(64).collect::<String>()),
    )
}

impl AckError {
    /// The code we close with.
    #[must_use]
    pub fn close_code(&self) -> u16 {
        match self {
            AckError::WrongSession { .. } => close::FORBIDDEN,
            AckError::NotOffered(_) | AckError::BadLimit(_) => close::BAD_HELLO,
            AckError::VersionMismatch { .. } | AckError::NoConnectionId | AckError::NoDirectoryBrowse => {
                close::VERSION_MISMATCH
            }
        }
    }

    /// The close frame's reason, at most [`close::MAX_REASON_BYTES`]; JSON for a version mismatch.
    #[must_use]
    pub fn close_reason(&self) -> String {
        let text = match self {
            AckError::VersionMismatch { ours, platform } => json!({
                "error": "PROTOCOL_VERSION_MISMATCH",
                "shim_max": ours, "platform_max": platform, "hint": "update",
            })
            .to_string(),
            AckError::WrongSession { .. } => "wrong session in HELLO_ACK".to_owned(),
            AckError::NotOffered(_) => "granted a capability that was not offered".to_owned(),
            AckError::BadLimit(_) | AckError::NoConnectionId | AckError::NoDirectoryBrowse => {
                self.to_string()
            }
        };
        debug_assert!(text.len() <= close::MAX_REASON_BYTES, "{text}");
        text
    }
}

/// The version both sides speak.
///
/// # Errors
///
/// [`AckError::VersionMismatch`] when the majors differ.
pub fn negotiate(ours: Version, platform: Version) -> Result<Version, AckError> {
    ours.common(platform).ok_or(AckError::VersionMismatch { ours, platform })
}

/// Checks an acknowledgement against the greeting it answers.
///
/// # Errors
///
/// [`AckError`], in the order of the contract: session, capabilities, limits, versions, control's own rules.
pub fn check_ack(hello: &Hello, ack: HelloAck, connection: Connection<'_>) -> Result<Negotiated, AckError> {
    let named = ack.session_id.filter(|id| !id.is_empty());
    let expected = match connection {
        Connection::Control => None,
        Connection::Data(id) => Some(id.as_str()),
    };
    if named.as_deref() != expected {
        return Err(AckError::WrongSession { got: named });
    }
    let mut capabilities = Vec::new();
    for name in ack.granted_capabilities {
        let offered = Capability::named(&name).filter(|c| hello.capabilities.contains(c));
        capabilities.push(offered.ok_or_else(|| AckError::NotOffered(name.chars().take(64).collect()))?);
    }
    capabilities.sort_unstable();
    capabilities.dedup();
    let limits = check_limits(ack.max_file_size_bytes, ack.command_timeout_seconds, ack.max_concurrent)?;
    let version = negotiate(hello.protocol_version, ack.protocol_version)?;
    let connection_id = ack.connection_id.filter(|id| !id.is_empty());
    if connection == Connection::Control {
        if version < (Version { major: 1, minor: 1 }) {
            return Err(AckError::VersionMismatch {
                ours: hello.protocol_version,
                platform: ack.protocol_version,
            });
        }
        if connection_id.is_none() {
            return Err(AckError::NoConnectionId);
        }
        if !capabilities.contains(&Capability::DirectoryBrowse) {
            return Err(AckError::NoDirectoryBrowse);
        }
    }
    Ok(Negotiated { version, connection_id, capabilities, limits })
}

fn check_limits(file_size: i64, timeout: f64, concurrent: i64) -> Result<Limits, AckError> {
    let positive =
        |value: i64, name| u64::try_from(value).ok().filter(|v| *v > 0).ok_or(AckError::BadLimit(name));
    let max_file_size_bytes = positive(file_size, "max_file_size_bytes")?;
    let max_concurrent = positive(concurrent, "max_concurrent")?;
    if !(timeout > 0.0 && timeout.is_finite()) {
        return Err(AckError::BadLimit("command_timeout_seconds"));
    }
    let max_concurrent = u32::try_from(max_concurrent).unwrap_or(u32::MAX);
    Ok(Limits { max_file_size_bytes, command_timeout_seconds: timeout, max_concurrent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PROTOCOL_VERSION;

    fn hello() -> Hello {
        Hello {
            shim_version: "0.1.0".to_owned(),
            protocol_version: PROTOCOL_VERSION,
            machine_id: "m1".parse().unwrap(),
            display_name: "box".to_owned(),
            platform: Platform::Linux,
            arch: "x86_64".to_owned(),
            screen_resolution: None,
            capabilities: vec![Capability::Files, Capability::DirectoryBrowse],
            allowed_root: None,
            local_llm_models: vec![],
            hardware_devices: vec![],
            computer_use_features: vec![],
            computer_use_features_coarse: vec![],
            recording_channels: vec![],
            recording_routes: vec![],
        }
    }

    fn ack(change: impl FnOnce(&mut Value)) -> HelloAck {
        let mut ack = json!({
            "session_id": null, "connection_id": "c1", "protocol_version": "1.1",
            "granted_capabilities": ["files", "directory_browse"],
        });
        change(&mut ack);
        serde_json::from_value(ack).unwrap()
    }

    #[test]
    fn hello_has_its_wire_form() {
        insta::assert_json_snapshot!(hello());
    }

    #[test]
    fn a_good_acknowledgement_settles_version_capabilities_and_default_limits() {
        let settled = check_ack(&hello(), ack(|_| ()), Connection::Control).unwrap();
        assert_eq!(
            settled,
            Negotiated {
                version: PROTOCOL_VERSION,
                connection_id: Some("c1".to_owned()),
                capabilities: vec![Capability::Files, Capability::DirectoryBrowse],
                limits: Limits {
                    max_file_size_bytes: 10 * 1024 * 1024,
                    command_timeout_seconds: 30.0,
                    max_concurrent: 4
                },
            }
        );
    }

    #[test]
    fn every_broken_acknowledgement_closes_with_its_code() {
        let session: SessionId = "s1".parse().unwrap();
        let cases: Vec<(Connection<'_>, HelloAck, u16)> = vec![
            (Connection::Control, ack(|a| a["session_id"] = json!("s1")), 4403),
            (Connection::Data(&session), ack(|_| ()), 4403),
            (Connection::Data(&session), ack(|a| a["session_id"] = json!("s2")), 4403),
            (
                Connection::Control,
                ack(|a| a["granted_capabilities"] = json!(["shell", "directory_browse"])),
                4400,
            ),
            (Connection::Control, ack(|a| a["granted_capabilities"] = json!(["teleport"])), 4400),
            (Connection::Control, ack(|a| a["max_file_size_bytes"] = json!(0)), 4400),
            (Connection::Control, ack(|a| a["command_timeout_seconds"] = json!(-1)), 4400),
            (Connection::Control, ack(|a| a["max_concurrent"] = json!(0)), 4400),
            (Connection::Control, ack(|a| a["protocol_version"] = json!("2.0")), 4426),
            (Connection::Control, ack(|a| a["protocol_version"] = json!("1.0")), 4426),
            (Connection::Control, ack(|a| a["connection_id"] = json!("")), 4426),
            (Connection::Control, ack(|a| a["granted_capabilities"] = json!(["files"])), 4426),
        ];
        for (connection, ack, code) in cases {
            let error = check_ack(&hello(), ack.clone(), connection).unwrap_err();
            assert_eq!(error.close_code(), code, "{error}: {ack:?}");
            assert!(error.close_reason().len() <= close::MAX_REASON_BYTES);
        }
    }

    #[test]
    fn a_data_connection_may_speak_an_older_minor() {
        let session: SessionId = "s1".parse().unwrap();
        let ack = ack(|a| {
            a["session_id"] = json!("s1");
            a["protocol_version"] = json!("1.0");
            a["granted_capabilities"] = json!(["files"]);
        });
        let settled = check_ack(&hello(), ack, Connection::Data(&session)).unwrap();
        assert_eq!(settled.version.to_string(), "1.0");
    }
}
