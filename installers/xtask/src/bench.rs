//! `cargo xtask bench`: the benchmarks with their floors, optimised.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::process;
use crate::workspace::Workspace;

/// Builds the benchmarks and the binary that some of them start, and becomes the benchmarks.
pub(crate) fn run(names: &[String], json: Option<&Path>) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let mut build = workspace.cargo();
    build.args(["build", "--release", "--package", "bench", "--package", "deskhand"]);
    process::run(&mut build)?;

    let binary = workspace.target.join("release").join(format!("bench{}", std::env::consts::EXE_SUFFIX));
    let mut bench = Command::new(binary);
    bench.args(names);
    if let Some(json) = json {
        bench.arg("--json").arg(json);
    }
    process::become_command(&mut bench)
}
