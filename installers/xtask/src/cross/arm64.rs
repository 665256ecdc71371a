//! Linux on ARM, tested under QEMU's user emulation.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Cross, Target};
use crate::process;
use crate::workspace::Workspace;

/// The whole-system tests start host binaries; chores and benchmarks run where the developer is.
const LEFT_OUT: &[&str] = &["system-tests", "bench", "xtask"];

/// Where Debian's cross C library is. It is named to the linker, since a command's clean environment would lose
/// `QEMU_LD_PREFIX`, and one that is started by another has no `-L`.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu/lib";

const BINFMT: &str = "/proc/sys/fs/binfmt_misc";
const RULE: &str = "/usr/lib/binfmt.d/qemu-aarch64.conf";

/// Builds the crates and the binary, and runs their tests.
pub(super) fn run(workspace: &Workspace, nextest: &[String]) -> Result<()> {
    let cross = Cross::new(workspace, Target::Arm64, "aarch64-unknown-linux-gnu")?;
    let_binaries_start_each_other()?;
    let mut tests = cross.cargo(&["nextest", "run"], &workspace.packages_without(LEFT_OUT));
    tests.args(["--profile=ci", "--no-tests=pass"]);
    tests.env(cross.variable("LINKER"), "aarch64-linux-gnu-gcc");
    tests.env(cross.variable("RUNNER"), "qemu-aarch64-static");
    let loader = format!("-Clink-arg=-Wl,--dynamic-linker={LIBRARIES}/ld-linux-aarch64.so.1");
    tests.env(cross.variable("RUSTFLAGS"), format!("{loader} -Clink-arg=-Wl,-rpath,{LIBRARIES}"));
    tests.args(nextest);
    process::run(&mut tests)
}

/// Tests start the binary, and commands their supervisor, which the kernel then has to hand to QEMU. A system with
/// systemd was told so when the emulator was installed; a container was not.
fn let_binaries_start_each_other() -> Result<()> {
    let known =
        || fs::read_to_string(format!("{BINFMT}/qemu-aarch64")).is_ok_and(|s| s.starts_with("enabled"));
    if known() {
        return Ok(());
    }
    let how = || format!("as root: mount -t binfmt_misc binfmt_misc {BINFMT}; cp {RULE} {BINFMT}/register");
    if !Path::new(BINFMT).join("register").exists() {
        let mut mount = Command::new("mount");
        process::run(mount.args(["-t", "binfmt_misc", "binfmt_misc", BINFMT])).with_context(how)?;
    }
    let rule = fs::read_to_string(RULE).with_context(|| format!("cannot read {RULE}"))?;
    fs::write(format!("{BINFMT}/register"), rule.trim_end()).with_context(how)?;
    if known() { Ok(()) } else { bail!("the kernel does not take {RULE}") }
}
