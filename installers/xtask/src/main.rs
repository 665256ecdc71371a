//! The project's chores, as `cargo xtask …`: set up a machine, test, cross-check the other systems, demo, bench.
//! Builds without any system library, so that it can install them.

mod bench;
mod cross;
mod demo;
mod packages;
mod process;
mod setup;
mod test;
mod tools;
mod ui;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Deskhand's chores", max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install what this machine lacks
    Setup {
        /// What for
        #[arg(value_enum, default_values_t = [setup::Purpose::Test])]
        purposes: Vec<setup::Purpose>,
    },
    /// Set up what the tests need, and run them all
    Test {
        /// Only format, lint, build and tests
        #[arg(long)]
        fast: bool,
        /// Only these steps [default: all]
        #[arg(value_enum, conflicts_with = "fast")]
        steps: Vec<test::Step>,
        /// Arguments for `cargo nextest run`, such as a filter
        #[arg(last = true)]
        nextest: Vec<String>,
    },
    /// Build the pages of the app's windows
    Ui,
    /// Build for the other systems from Debian; test under Wine and QEMU, type-check for macOS
    Cross {
        /// Only these [default: all]
        #[arg(value_enum)]
        targets: Vec<cross::Target>,
        /// Arguments for `cargo nextest run`, such as a filter
        #[arg(last = true)]
        nextest: Vec<String>,
    },
    /// Start the reference platform and the executor, and run an agent's session
    Demo {
        /// Leave both running until Ctrl-C
        #[arg(long)]
        keep: bool,
        /// Build with optimisations
        #[arg(long)]
        release: bool,
    },
    /// Measure against the floors
    Bench {
        /// Only these benchmarks [default: all]
        names: Vec<String>,
        /// Write the figures here too
        #[arg(long)]
        json: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().chore {
        Chore::Setup { purposes } => setup::run(&purposes).map(|()| ExitCode::SUCCESS),
        Chore::Test { fast, steps, nextest } => test::run(fast, &steps, &nextest),
        Chore::Ui => workspace::Workspace::load()
            .and_then(|workspace| ui::Ui::of(&workspace).build())
            .map(|()| ExitCode::SUCCESS),
        Chore::Cross { targets, nextest } => cross::run(&targets, &nextest),
        Chore::Demo { keep, release } => demo::run(keep, release),
        Chore::Bench { names, json } => bench::run(&names, json.as_deref()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
