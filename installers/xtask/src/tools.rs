//! Cargo's own tools, from crates.io.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::workspace::Workspace;

/// A cargo subcommand that comes from crates.io.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Nextest,
    Deny,
    Fuzz,
}

impl Tool {
    /// The package and the version that is installed where there is none; any present version does.
    const fn package(self) -> (&'static str, &'static str) {
        match self {
            Self::Nextest => ("cargo-nextest", "0.9.143"),
            Self::Deny => ("cargo-deny", "0.20.2"),
            Self::Fuzz => ("cargo-fuzz", "0.13.2"),
        }
    }

    /// Installs the tool if it is missing.
    pub(crate) fn ensure(self, workspace: &Workspace) -> Result<()> {
        let (package, version) = self.package();
        if process::succeeds(Command::new(package).arg("--version")) {
            return Ok(());
        }
        let mut install = workspace.cargo();
        install.args(["install", package, "--locked", "--version", version]);
        // They run for seconds, so it is the time to compile them that counts.
        install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
        install.env("CARGO_PROFILE_RELEASE_LTO", "off");
        install.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        install.env("CARGO_PROFILE_RELEASE_DEBUG", "false");
        process::run(&mut install)
    }
}
