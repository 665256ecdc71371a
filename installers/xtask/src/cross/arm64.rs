//! Linux on ARM, tested under QEMU's user emulation.

use anyhow::Result;

use super::{Cross, Target};
use crate::process;
use crate::workspace::Workspace;

/// The whole-system tests start host binaries; chores and benchmarks run where the developer is.
const LEFT_OUT: &[&str] = &["system-tests", "bench", "xtask"];

/// Builds the crates and the binary, and runs their tests.
pub(super) fn run(workspace: &Workspace, nextest: &[String]) -> Result<()> {
    let cross = Cross::new(workspace, Target::Arm64, "aarch64-unknown-linux-gnu")?;
    let mut tests = cross.cargo(&["nextest", "run"], &workspace.packages_without(LEFT_OUT));
    tests.args(["--profile=ci", "--no-tests=pass"]);
    tests.env(cross.variable("LINKER"), "aarch64-linux-gnu-gcc");
    tests.env(cross.variable("RUNNER"), "qemu-aarch64-static -L /usr/aarch64-linux-gnu");
    tests.args(nextest);
    process::run(&mut tests)
}
