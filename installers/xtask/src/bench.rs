//! `cargo xtask bench`: the benchmarks with their floors, optimised.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::process;
use crate::workspace::Workspace;

/// Builds the bench package in release and runs it; it prints both sides and their ratio.
pub(crate) fn run(names: &[String], json: Option<&Path>) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let mut bench = workspace.cargo();
    bench.args(["run", "--release", "--package", "bench", "--"]).args(names);
    if let Some(json) = json {
        // The bench runs at the workspace's root; the path was said in the caller's folder.
        bench.arg("--json").arg(std::path::absolute(json)?);
    }
    process::become_command(&mut bench)
}
