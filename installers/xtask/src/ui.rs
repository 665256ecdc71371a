//! The web pages: npm's part of the build.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;
use crate::workspace::Workspace;

/// The pages' folder and its commands.
pub(crate) struct Ui {
    folder: PathBuf,
}

impl Ui {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        Self { folder: workspace.root.join("ui") }
    }

    /// Installs what the pages are built with, where it is not as the lock file says.
    pub(crate) fn install(&self) -> Result<()> {
        if !process::succeeds(self.npm().arg("--version")) {
            bail!("npm is missing: install Node.js 20 or newer");
        }
        // npm leaves a copy of the lock file as it was when it installed.
        let age =
            |path: &str| self.folder.join(path).metadata().and_then(|metadata| metadata.modified()).ok();
        let installed = age("node_modules/.package-lock.json");
        if installed.is_some() && installed >= age("package-lock.json") {
            return Ok(());
        }
        process::run(self.npm().args(["ci", "--no-audit", "--no-fund"]))
    }

    /// Builds the pages into `ui/dist`.
    pub(crate) fn build(&self) -> Result<()> {
        self.install()?;
        self.script("build")
    }

    /// Runs one script of `package.json`.
    pub(crate) fn script(&self, name: &str) -> Result<()> {
        process::run(self.npm().args(["run", "--silent", name]))
    }

    fn npm(&self) -> Command {
        // On Windows it is a batch file, which is not found by its short name.
        let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
        npm.current_dir(&self.folder);
        npm
    }
}
