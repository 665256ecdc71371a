//! `cargo xtask demo`: the product's own `deskhand demo`, built first.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::workspace::Workspace;
use crate::{process, setup};

/// Builds the binary and becomes it.
pub(crate) fn run(keep: bool, release: bool) -> Result<ExitCode> {
    setup::demo_packages()?;
    let workspace = Workspace::load()?;
    let mut build = workspace.cargo();
    build.args(["build", "--package", "deskhand"]);
    if release {
        build.arg("--release");
    }
    process::run(&mut build)?;

    let profile = if release { "release" } else { "debug" };
    let binary = workspace.target.join(profile).join(format!("deskhand{}", std::env::consts::EXE_SUFFIX));
    let mut demo = Command::new(binary);
    demo.arg("demo");
    if keep {
        demo.arg("--keep");
    }
    process::become_command(&mut demo)
}
