//! The fuzz targets, a while each, from their committed seeds.

use std::fs;

use anyhow::{Context, Result};

use crate::process;
use crate::tools::Tool;
use crate::workspace::Workspace;

/// Relative to the workspace's root. Its `seeds` are what everyone starts from; its `corpus` is what this machine found.
const FOLDER: &str = "--fuzz-dir=tests/fuzz";

/// How long each target runs, in seconds.
const SECONDS: u32 = 30;

/// Runs each target; a crash is an error, and its input is in `tests/fuzz/artifacts`.
pub(super) fn run(workspace: &Workspace) -> Result<()> {
    if !cfg!(unix) {
        eprintln!("left out: the sanitizers need Linux or macOS");
        return Ok(());
    }
    Tool::Fuzz.ensure(workspace)?;
    let folder = workspace.root.join("tests/fuzz");
    let list = process::output(workspace.cargo().args(["fuzz", "list", FOLDER]))?;
    for target in list.split_whitespace() {
        let corpus = folder.join("corpus").join(target);
        fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
        let mut fuzz = workspace.cargo();
        // The sanitizer's flag is unstable, the compiler is not: this is the documented way to use one with the other.
        fuzz.env("RUSTC_BOOTSTRAP", "1");
        fuzz.args(["fuzz", "run", FOLDER, target]);
        fuzz.arg(corpus).arg(folder.join("seeds").join(target));
        fuzz.args(["--", &format!("-max_total_time={SECONDS}")]);
        // Seconds for one input, and megabytes: the parser's promise is to stay bounded whatever is sent.
        fuzz.args([
            "-timeout=5",
            "-rss_limit_mb=1024",
            "-print_final_stats=1",
            "-verbosity=0",
            "-print_funcs=0",
        ]);
        process::run(&mut fuzz).with_context(|| format!("fuzzing {target}"))?;
    }
    Ok(())
}
