//! The process that runs, if one does.

use super::Check;
use crate::config::Dirs;
use crate::events::{ConnectionState, StatusReport};
use crate::local::{Client, ClientError};
use crate::off;

const NAME: &str = "process";

pub(super) fn check(dirs: &Dirs) -> Vec<Check> {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return vec![Check::fail(NAME, error.to_string(), "free memory and file handles")],
    };
    let status = runtime.block_on(async { Client::connect(&dirs.state).await?.status().await });
    let check = match status {
        Ok(report) => running(&report),
        Err(ClientError::NotRunning) => match off::recall(&dirs.state) {
            None => Check::ok(NAME, "not running; it will connect when it starts"),
            Some(off) => Check::warn(NAME, format!("not running, and off: {}", off.reason()), TURN_ON),
        },
        Err(error @ ClientError::Silent { .. }) => {
            Check::fail(NAME, error.to_string(), "end the process, then start it again")
        }
        Err(error @ (ClientError::Refused { .. } | ClientError::Broken(_))) => {
            Check::fail(NAME, error.to_string(), "end the process with `deskhand stop`, then start it again")
        }
    };
    vec![check]
}

const TURN_ON: &str = "start it, then `deskhand connect`";

fn running(report: &StatusReport) -> Check {
    let process = format!("process {}", report.pid);
    match &report.connection {
        _ if report.paused => Check::warn(
            NAME,
            format!("{process}: paused, every request is refused"),
            "`deskhand resume` ends the pause",
        ),
        ConnectionState::Connected { .. } => Check::ok(NAME, format!("{process}: connected")),
        ConnectionState::Connecting => Check::ok(NAME, format!("{process}: connecting")),
        ConnectionState::Off { reason } => {
            Check::warn(NAME, format!("{process}: off ({reason})"), "`deskhand connect` turns it on")
        }
        ConnectionState::Waiting { reason, .. } => Check::warn(
            NAME,
            format!("{process}: waiting to connect again ({reason})"),
            "see what is said of the platform",
        ),
        ConnectionState::SignedOut { reason } => {
            Check::fail(NAME, format!("{process}: signed out ({reason})"), "`deskhand login`")
        }
        ConnectionState::Halted { reason } => Check::fail(
            NAME,
            format!("{process}: given up ({reason})"),
            "when that is mended: `deskhand connect`",
        ),
    }
}
