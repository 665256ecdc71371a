//! Windows by MinGW, tested under Wine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use super::{Cross, Target};
use crate::process;
use crate::workspace::Workspace;

const WINE: &str = "/usr/lib/wine/wine64";

/// The reference platform runs on Linux; the chores and benchmarks run where the developer is.
const LEFT_OUT: &[&str] = &["deskhand-platform", "system-tests", "bench", "xtask"];

/// Builds the crates and the headless binary, and runs their tests under Wine. The app's windows need Edge's web view, which
/// Wine lacks: that the app links is what can be seen here.
pub(super) fn run(workspace: &Workspace, nextest: &[String]) -> Result<()> {
    let cross = Cross::new(workspace, Target::Windows, "x86_64-pc-windows-gnu")?;
    let prefix = wine_prefix(&cross.folder)?;
    let cargo = |subcommand: &[&str], packages: &[&str]| {
        let mut command = cross.cargo(subcommand, packages);
        command.env(cross.variable("LINKER"), "x86_64-w64-mingw32-gcc").env(cross.variable("RUNNER"), WINE);
        wine_environment(&mut command, &prefix);
        command
    };

    let mut tests = cargo(&["nextest", "run"], &workspace.packages_without(LEFT_OUT));
    // Without the platform the CLI needs nothing that Windows lacks here.
    tests.args(["--no-default-features", "--profile=ci", "--no-tests=pass"]);
    // Snapshots are looked up below the workspace, which cargo cannot be asked for from within Wine; Z: is our root.
    let root = format!("Z:{}", workspace.root.display());
    tests.env("INSTA_WORKSPACE_ROOT", root).env("INSTA_UPDATE", "no");
    let _wine = Wine::start(&prefix)?;
    process::run(tests.args(nextest))?;
    process::run(&mut cargo(&["build"], &["deskhand-app"]))
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
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/cross/bcryptprimitives.c");
    let mut compile = Command::new("x86_64-w64-mingw32-gcc");
    compile.args(["-shared", "-O2", "-o"]).arg(system32.join("bcryptprimitives.dll"));
    process::run(compile.args([source, "-ladvapi32"]))?;
    Ok(prefix)
}

/// A program that runs in the prefix until this is dropped. Wine's server and services are started by the first program
/// and outlive it; were that a test, it would seem to leak them.
struct Wine(Child);

impl Wine {
    fn start(prefix: &Path) -> Result<Self> {
        let mut shell = Command::new(WINE);
        wine_environment(shell.arg("cmd"), prefix);
        // It waits for a line that does not come.
        let quiet = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(quiet.spawn().context("cannot start Wine")?))
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        // Without its input it would end by itself; it may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wine_environment(command: &mut Command, prefix: &Path) {
    command.env("WINEPREFIX", prefix).env("WINEDEBUG", "-all").env_remove("DISPLAY");
    // Neither .NET nor a browser: Wine would offer to download them.
    command.env("WINEDLLOVERRIDES", "mscoree,mshtml=");
}
