//! `cargo xtask cross`: the other systems' code, compiled on Debian and tested where something here can run it.
//!
//! Debian's Rust has std's source, so that std is built for each target (`-Zbuild-std`) rather than downloaded. Each
//! target has a target folder of its own below `target/cross`: sharing the host's would rebuild the world each time.

mod arm64;
mod macos;
mod windows;

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::setup;
use crate::ui::Ui;
use crate::workspace::Workspace;

/// A system to build for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// x86_64-pc-windows-gnu, tested under Wine
    Windows,
    /// aarch64-apple-darwin, type-checked
    Macos,
    /// aarch64-unknown-linux-gnu, tested under QEMU
    Arm64,
}

impl Target {
    const ALL: [Self; 3] = [Self::Windows, Self::Macos, Self::Arm64];

    const fn name(self) -> &'static str {
        match self {
            Self::Windows => "windows",
            Self::Macos => "macos",
            Self::Arm64 => "arm64",
        }
    }
}

/// Sets up and does each of `targets`, all when there are none; every one is tried, and what failed is said at the end.
pub(crate) fn run(targets: &[Target], nextest: &[String]) -> Result<ExitCode> {
    setup::run(&[setup::Purpose::Cross])?;
    let workspace = Workspace::load()?;
    Ui::of(&workspace).build()?; // the app embeds the pages
    let targets = if targets.is_empty() { &Target::ALL } else { targets };
    let mut verdicts = Vec::new();
    for target in targets {
        eprintln!("\n== {}", target.name());
        let done = match target {
            Target::Windows => windows::run(&workspace, nextest),
            Target::Macos => macos::run(&workspace),
            Target::Arm64 => arm64::run(&workspace, nextest),
        };
        verdicts.push((target.name(), done));
    }
    println!();
    for (name, done) in &verdicts {
        match done {
            Ok(()) => println!("ok    {name}"),
            Err(error) => println!("FAIL  {name}: {error:#}"),
        }
    }
    let passed = verdicts.iter().all(|(_, done)| done.is_ok());
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Debian's Rust, building std for a target.
struct Cross<'a> {
    workspace: &'a Workspace,
    triple: &'static str,
    /// Artefacts, tools and prefixes of this target.
    folder: PathBuf,
}

impl<'a> Cross<'a> {
    fn new(workspace: &'a Workspace, target: Target, triple: &'static str) -> Result<Self> {
        let folder = workspace.target.join("cross").join(target.name());
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self { workspace, triple, folder })
    }

    /// `cargo SUBCOMMAND --target …` for `packages`; warnings are errors, as on the host.
    fn cargo(&self, subcommand: &[&str], packages: &[&str]) -> Command {
        let (program, words) = match subcommand {
            // nextest runs the cargo it is told of.
            ["nextest", ..] => ("cargo-nextest", subcommand),
            _ => ("/usr/bin/cargo", subcommand),
        };
        let mut command = Command::new(program);
        without_the_hosts_toolchain(&mut command);
        command.current_dir(&self.workspace.root).stdin(std::process::Stdio::null());
        command.env("CARGO", "/usr/bin/cargo").env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1");
        command.env("CARGO_TARGET_DIR", self.folder.join("target"));
        command.args(words).args(["--locked", "-Zbuild-std=std,panic_unwind", "--target", self.triple]);
        command.args(["-Zwarnings", "--config", "build.warnings='deny'"]);
        command.args(packages.iter().flat_map(|package| ["--package", package]));
        command
    }

    /// As cargo spells the target in its own variables, `CARGO_TARGET_<TRIPLE>_LINKER`.
    fn variable(&self, what: &str) -> String {
        format!("CARGO_TARGET_{}_{what}", self.triple.to_uppercase().replace('-', "_"))
    }
}

/// `cargo run` told us of the toolchain that built us; what is left of that would mix two compilers.
fn without_the_hosts_toolchain(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let said_by_cargo = name.to_str().is_some_and(|name| {
            matches!(name, "RUSTC" | "RUSTDOC" | "RUSTUP_TOOLCHAIN" | "RUSTFLAGS" | "CARGO_MANIFEST_DIR")
                || name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
        });
        if said_by_cargo {
            command.env_remove(name);
        }
    }
}
