//! What the demo starts, and its end.

use std::path::{Path, PathBuf};

use platform::{Database, Platform, PlatformOptions};
use tempfile::TempDir;

use super::machine::{Installation, Machine};
use crate::failure::{Code, Outcome, failed};
use crate::output;

/// Lines of the executor's log that a failure shows.
const LAST_LINES: usize = 20;

/// The folder, the platform and the machine. Dropped, they are gone as well, if with less grace.
pub(super) struct Stage {
    dir: TempDir,
    /// Canonical, as a root has to be.
    base: PathBuf,
    pub(super) installation: Installation,
    platform: Option<Platform>,
    pub(super) machine: Option<Machine>,
}

impl Stage {
    pub(super) fn new() -> Outcome<Self> {
        let dir =
            tempfile::Builder::new().prefix("deskhand-demo-").tempdir().map_err(failed(Code::Failed))?;
        let base = plain(std::fs::canonicalize(dir.path()).map_err(failed(Code::Failed))?);
        let installation = Installation::new(&base)?;
        Ok(Self { dir, base, installation, platform: None, machine: None })
    }

    /// The folder with the person's projects.
    pub(super) fn projects(&self) -> PathBuf {
        self.base.join("projects")
    }

    /// Starts the platform, on a free port, with a database in a file.
    pub(super) async fn start_platform(&mut self) -> Outcome<&Platform> {
        let options = PlatformOptions {
            database: Database::File(self.base.join("platform.sqlite")),
            ..PlatformOptions::default()
        };
        let platform = Platform::start(options).await.map_err(failed(Code::Failed))?;
        Ok(self.platform.insert(platform))
    }

    /// What the executor said last, for whoever has to find out what went wrong.
    pub(super) fn show_log(&self) {
        let log = std::fs::read_to_string(&self.installation.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
            output::note(format_args!("deskhand run: {line}"));
        }
    }

    /// Ends the machine, then the platform, and removes the folder. Goes on where something fails, and gives the first
    /// failure.
    pub(super) async fn clear(mut self) -> Outcome {
        let machine = match self.machine.take() {
            Some(machine) => machine.end().await,
            None => Ok(()),
        };
        if let Some(platform) = self.platform.take() {
            platform.stop().await;
        }
        let removed = self.dir.close().map_err(failed(Code::Failed));
        machine.and(removed)
    }
}

/// Windows' long form (`\\?\C:\…`) in the short one, which is what configurations have.
fn plain(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix(r"\\?\")) {
        Some(short) if cfg!(windows) => Path::new(short).to_owned(),
        Some(_) | None => path,
    }
}
