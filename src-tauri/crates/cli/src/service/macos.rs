//! A launch agent.

use std::path::{Path, PathBuf};

use directories::BaseDirs;

use super::{Program, remove, report, says_yes, text, tool, write, xml};
use crate::failure::{Code, Failure, Outcome, failed};
use crate::output;

const AGENT: &str = include_str!("../../../../../installers/service/net.deskhand.deskhand.plist");
const LABEL: &str = "net.deskhand.deskhand";

pub(super) fn install(program: &Program, logs: &Path, passphrase_file: Option<&Path>) -> Outcome {
    if passphrase_file.is_some() {
        return Err(Failure::new(
            Code::Usage,
            "--passphrase-file is for systemd; here secrets are in the keychain",
        ));
    }
    let agent = agent_path()?;
    let words: Vec<_> = program.words()?.map(|word| format!("<string>{}</string>", xml(word))).collect();
    let log = logs.join("service.log");
    let content =
        AGENT.replace("<string>@EXE@</string>", &words.join("\n    ")).replace("@LOG@", &xml(text(&log)?));
    // One that runs keeps its old file until it is booted out.
    says_yes("launchctl", &["bootout", &target()]);
    write(&agent, content)?;
    tool("launchctl", &["bootstrap", &domain(), text(&agent)?])?;
    output::line(format_args!("installed ({}) and started; it logs to {}", agent.display(), log.display()))
}

pub(super) fn uninstall() -> Outcome {
    says_yes("launchctl", &["bootout", &target()]);
    if remove(&agent_path()?)? {
        output::line("stopped and removed")
    } else {
        output::line("it was not installed")
    }
}

pub(super) fn status() -> Outcome {
    let agent = agent_path()?;
    report(agent.exists(), says_yes("launchctl", &["print", &target()]), &agent.display().to_string())
}

fn agent_path() -> Outcome<PathBuf> {
    let base = BaseDirs::new().ok_or("no home folder is known; set HOME").map_err(failed(Code::Setup))?;
    Ok(base.home_dir().join("Library").join("LaunchAgents").join(format!("{LABEL}.plist")))
}

/// The session of this user's desktop.
fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

fn target() -> String {
    format!("{}/{LABEL}", domain())
}
