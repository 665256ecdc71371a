//! Windows by MinGW, tested under Wine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Cross, Target};
use crate::process;
use crate::workspace::Workspace;

const WINE: &str = "/usr/lib/wine/wine64";

/// The reference platform runs on Linux; the chores and benchmarks run where the developer is.
const LEFT_OUT: &[&str] = &["deskhand-platform", "system-tests", "bench", "xtask"];

/// Builds the crates and the headless binary, and runs their tests under Wine.
pub(super) fn run(workspace: &Workspace, nextest: &[String]) -> Result<()> {
    let cross = Cross::new(workspace, Target::Windows, "x86_64-pc-windows-gnu")?;
    let prefix = wine_prefix(&cross.folder)?;

    let mut tests = cross.cargo(&["nextest", "run"], &workspace.packages_without(LEFT_OUT));
    // Without the platform the CLI needs nothing that Windows lacks here.
    tests.args(["--no-default-features", "--profile=ci", "--no-tests=pass"]);
    tests.env(cross.variable("LINKER"), "x86_64-w64-mingw32-gcc").env(cross.variable("RUNNER"), WINE);
    wine_environment(&mut tests, &prefix);
    // Snapshots are looked up below the workspace, which cargo cannot be asked for from within Wine; Z: is our root.
    let root = format!("Z:{}", workspace.root.display());
    tests.env("INSTA_WORKSPACE_ROOT", root).env("INSTA_UPDATE", "no");
    tests.args(nextest);
    process::run(&mut tests)
}

/// A Wine prefix with the one DLL that Rust's std wants and Wine 8 lacks.
fn wine_prefix(folder: &Path) -> Result<PathBuf> {
    let prefix = folder.join("wine");
    let system32 = prefix.join("drive_c/windows/system32");
    if !system32.join("kernel32.dll").exists() {
        fs::create_dir_all(&prefix).with_context(|| format!("cannot make {}", prefix.display()))?;
        let mut boot = Command::new(WINE);
        wine_environment(boot.args(["wineboot", "--init"]), &prefix);
        process::run(&mut boot)?;
    }
    // Wine's server is started by the first program and outlives it, which would look like a test that leaks one.
    let mut warm_up = Command::new(WINE);
    wine_environment(warm_up.args(["cmd", "/c", "exit"]), &prefix);
    process::run(warm_up.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))?;
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/cross/bcryptprimitives.c");
    let mut compile = Command::new("x86_64-w64-mingw32-gcc");
    compile.args(["-shared", "-O2", "-o"]).arg(system32.join("bcryptprimitives.dll"));
    process::run(compile.args([source, "-ladvapi32"]))?;
    Ok(prefix)
}

fn wine_environment(command: &mut Command, prefix: &Path) {
    command.env("WINEPREFIX", prefix).env("WINEDEBUG", "-all").env_remove("DISPLAY");
    // Neither .NET nor a browser: Wine would offer to download them.
    command.env("WINEDLLOVERRIDES", "mscoree,mshtml=");
}
