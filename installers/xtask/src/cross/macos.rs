//! macOS, type-checked: there is no linker for it here, and a check needs none.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Cross, Target};
use crate::process;
use crate::workspace::Workspace;

/// Build scripts (ring, SQLite) call a C compiler and an archiver for the target. A check never reads what they make,
/// so that these make empty files. `xcrun` is asked for the SDK's folder.
const TOOLS: [(&str, &str); 3] = [
    ("cc", "#!/bin/sh\nwhile [ $# -gt 0 ]; do\n  [ \"$1\" = -o ] && : > \"$2\"\n  shift\ndone\n"),
    ("ar", "#!/bin/sh\nfor word; do\n  case \"$word\" in *.a) : > \"$word\" ;; esac\ndone\n"),
    ("xcrun", "#!/bin/sh\necho /\n"),
];

/// The chores run where the developer is, and are checked there.
const LEFT_OUT: &[&str] = &["xtask"];

/// Type-checks libraries, binaries and tests.
pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let cross = Cross::new(workspace, Target::Macos, "aarch64-apple-darwin")?;
    let tools = write_tools(&cross.folder)?;
    let mut check = cross.cargo(&["check", "--all-targets"], &workspace.packages_without(LEFT_OUT));
    check.env("CC_aarch64_apple_darwin", tools.join("cc")).env("AR_aarch64_apple_darwin", tools.join("ar"));
    check.env("SDKROOT", "/").env("PATH", path_with(&tools)?);
    process::run(&mut check)
}

fn write_tools(folder: &Path) -> Result<PathBuf> {
    let tools = folder.join("tools");
    fs::create_dir_all(&tools).with_context(|| format!("cannot make {}", tools.display()))?;
    for (name, script) in TOOLS {
        let path = tools.join(name);
        fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(tools)
}

/// `PATH` with `xcrun` on it, and nothing else of `tools`: the host's own `cc` stays the host's.
fn path_with(tools: &Path) -> Result<std::ffi::OsString> {
    let only_xcrun = tools.join("path");
    fs::create_dir_all(&only_xcrun)?;
    fs::copy(tools.join("xcrun"), only_xcrun.join("xcrun"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(only_xcrun).chain(std::env::split_paths(&path)))?)
}
