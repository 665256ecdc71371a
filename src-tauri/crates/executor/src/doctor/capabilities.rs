//! What each capability that is switched on lacks.

use exec::Shell;

use super::Check;
use crate::config::{Clipboard, Loaded};
use crate::identity;

pub(super) fn check(loaded: Option<&Loaded>) -> Vec<Check> {
    let Some(loaded) = loaded else {
        return vec![Check::skipped("capabilities", "the configuration cannot be read")];
    };
    let switches = &loaded.config.capabilities;
    let unbuilt = [
        ("capabilities.computer_use", switches.computer_use.any()),
        ("capabilities.clipboard", switches.clipboard != Clipboard::Off),
        ("capabilities.local_llm", switches.local_llm),
        ("capabilities.recording", switches.recording),
        ("capabilities.hardware", switches.hardware),
    ];
    let mut checks = vec![processor(), shell(switches.shell)];
    checks.extend(unbuilt.into_iter().map(|(name, on)| {
        if on {
            let detail = "switched on, and this version cannot do it: it is not offered to the platform";
            Check::warn(name, detail, "switch it off, or install a version that can")
        } else {
            Check::skipped(name, "off (this version cannot do it)")
        }
    }));
    checks
}

fn processor() -> Check {
    match identity::arch() {
        Ok(arch) => Check::ok("machine", format!("{} on {arch}", identity::platform().as_str())),
        Err(error) => Check::fail("machine", error.to_string(), "use another machine"),
    }
}

fn shell(on: bool) -> Check {
    const NAME: &str = "capabilities.shell";
    if !on {
        return Check::skipped(NAME, "off");
    }
    let shells = [Shell::Bash, Shell::Sh, Shell::Zsh, Shell::Pwsh, Shell::Powershell, Shell::Cmd];
    let found: Vec<_> = shells.into_iter().filter(|shell| exec::resolve_shell(*shell).is_ok()).collect();
    match exec::resolve_shell(Shell::Auto) {
        Ok(default) => {
            let names: Vec<_> = found.iter().map(|shell| shell.name()).collect();
            Check::ok(NAME, format!("{} by default; there are {}", default.display(), names.join(", ")))
        }
        Err(error) => Check::fail(NAME, error.to_string(), "install a shell, or see to PATH"),
    }
}
