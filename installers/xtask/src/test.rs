//! `cargo xtask test`: every step runs even when an earlier one failed, so that one run tells all; what they came to is
//! said at the end.

mod fuzz;
mod report;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::process;
use crate::setup;
use crate::tools::Tool;
use crate::ui::Ui;
use crate::workspace::Workspace;
use report::{Outcome, Report, TestCounts};

/// A step of the test run, in the order of [`Step::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// rustfmt would change nothing
    Fmt,
    /// Licences, sources and banned crates of all dependencies
    Deny,
    /// The pages: types, lint, logic, then built
    Ui,
    /// Clippy, warnings are errors
    Lint,
    /// All binaries and tests; the whole-system tests start `deskhand`
    Build,
    /// Every test of the workspace
    Tests,
    /// The pages in a browser: what they do, accessibility, pictures
    Pages,
    /// The examples in the documentation
    Docs,
    /// Each fuzz target for half a minute
    Fuzz,
}

impl Step {
    /// Cheap ones first; the tests' own figures stay near the end of the output.
    const ALL: [Self; 9] = [
        Self::Fmt,
        Self::Deny,
        Self::Ui,
        Self::Pages,
        Self::Lint,
        Self::Build,
        Self::Docs,
        Self::Fuzz,
        Self::Tests,
    ];
    const FAST: [Self; 5] = [Self::Fmt, Self::Ui, Self::Lint, Self::Build, Self::Tests];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Deny => "deny",
            Self::Ui => "ui",
            Self::Pages => "pages",
            Self::Lint => "lint",
            Self::Build => "build",
            Self::Tests => "tests",
            Self::Docs => "docs",
            Self::Fuzz => "fuzz",
        }
    }

    /// Runs the step; the error is what the report says of it.
    fn run(self, workspace: &Workspace, nextest: &[String], counts: &mut TestCounts) -> Result<()> {
        let cargo = |arguments: &[&str]| process::run(workspace.cargo().args(arguments));
        match self {
            Self::Fmt => cargo(&["fmt", "--all", "--check"]),
            Self::Deny => {
                Tool::Deny.ensure(workspace)?;
                cargo(&[
                    "deny",
                    "--workspace",
                    "check",
                    "--hide-inclusion-graph",
                    "bans",
                    "licenses",
                    "sources",
                ])
            }
            Self::Ui => test_ui(workspace),
            Self::Pages => Ui::of(workspace).script("test:pages"),
            Self::Lint => {
                cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"])
            }
            // Everything, so that features are settled as in the test build and nothing is compiled twice. Not ourselves:
            // Windows does not let a running program be replaced.
            Self::Build => cargo(&["build", "--workspace", "--exclude=xtask", "--all-targets", "--locked"]),
            Self::Tests => run_tests(workspace, nextest, counts),
            Self::Docs => cargo(&["test", "--doc", "--workspace", "--locked", "--quiet"]),
            Self::Fuzz => fuzz::run(workspace),
        }
    }
}

/// Sets up, runs the steps, reports. `steps` empty: all of them, or the fast ones.
pub(crate) fn run(fast: bool, steps: &[Step], nextest: &[String]) -> Result<ExitCode> {
    let chosen: Vec<Step> = match (steps, fast) {
        ([], true) => Step::FAST.to_vec(),
        ([], false) => Step::ALL.to_vec(),
        (steps, _) => Step::ALL.into_iter().filter(|step| steps.contains(step)).collect(),
    };
    let workspace = Workspace::load()?;
    if chosen.iter().any(|step| !matches!(step, Step::Fmt | Step::Deny | Step::Ui)) {
        setup::test_packages()?;
    }

    let mut report = Report::default();
    for step in chosen {
        eprintln!("\n== {}", step.name());
        if step == Step::Tests && report.failed(Step::Build) {
            report.add(step, Outcome::NotRun("the build failed"));
            continue;
        }
        let started = Instant::now();
        let outcome = match step.run(&workspace, nextest, &mut report.counts) {
            Ok(()) => Outcome::Passed(started.elapsed()),
            Err(error) => {
                eprintln!("error: {error:#}");
                Outcome::Failed(started.elapsed(), format!("{error:#}"))
            }
        };
        report.add(step, outcome);
    }
    print!("\n{report}");
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn test_ui(workspace: &Workspace) -> Result<()> {
    let ui = Ui::of(workspace);
    ui.install()?;
    for script in ["check", "test", "build", "size"] {
        ui.script(script)?;
    }
    Ok(())
}

/// The whole workspace under nextest, whose JUnit file says what ran.
fn run_tests(workspace: &Workspace, arguments: &[String], counts: &mut TestCounts) -> Result<()> {
    Tool::Nextest.ensure(workspace)?;
    let junit = workspace.target.join("nextest/ci/junit.xml");
    if junit.exists() {
        std::fs::remove_file(&junit)?;
    }
    let mut nextest = workspace.cargo();
    nextest.args(["nextest", "run", "--workspace", "--locked", "--profile=ci", "--no-tests=fail"]);
    nextest.args(arguments);
    let ended = process::run(&mut nextest);
    *counts = TestCounts::read(&junit)?;
    match counts.failed.as_slice() {
        [] => ended,
        failed => bail!("{} of {} failed: {}", failed.len(), counts.run, failed.join(", ")),
    }
}
