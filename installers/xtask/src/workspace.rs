//! The workspace as cargo sees it, and commands that run in it.

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// Where things are, and which packages there are.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Cargo's target folder, wherever the user has put it.
    pub(crate) target: PathBuf,
    packages: Vec<Package>,
}

struct Package {
    name: String,
    /// Names of the packages it cannot do without.
    needs: Vec<String>,
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        let mut command = Command::new(cargo_program());
        command.args(["metadata", "--no-deps", "--format-version=1"]);
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        let metadata = serde_json::from_str(&process::output(&mut command)?).context("cargo metadata")?;
        Self::parse(&metadata).context("cargo metadata lacks a field")
    }

    fn parse(metadata: &Value) -> Option<Self> {
        let packages = metadata["packages"].as_array()?.iter().map(Package::parse);
        Some(Self {
            root: metadata["workspace_root"].as_str()?.into(),
            target: metadata["target_directory"].as_str()?.into(),
            packages: packages.collect::<Option<_>>()?,
        })
    }

    /// `cargo …` at the workspace's root, with the toolchain that built us, reading nothing from the terminal.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(cargo_program());
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// All packages but `without` and whatever needs one of them.
    pub(crate) fn packages_without(&self, without: &[&str]) -> Vec<&str> {
        let mut left_out: BTreeSet<&str> = without.iter().copied().collect();
        loop {
            let before = left_out.len();
            let needing =
                self.packages.iter().filter(|p| p.needs.iter().any(|n| left_out.contains(n.as_str())));
            let needing: Vec<&str> = needing.map(|p| p.name.as_str()).collect();
            left_out.extend(needing);
            if left_out.len() == before {
                break;
            }
        }
        self.packages.iter().map(|p| p.name.as_str()).filter(|name| !left_out.contains(name)).collect()
    }
}

impl Package {
    fn parse(package: &Value) -> Option<Self> {
        let needed = |d: &&Value| d["optional"] != Value::Bool(true);
        let needs = package["dependencies"].as_array()?.iter().filter(needed);
        Some(Self {
            name: package["name"].as_str()?.to_owned(),
            needs: needs.map(|d| d["name"].as_str().map(str::to_owned)).collect::<Option<_>>()?,
        })
    }
}

fn cargo_program() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_a_package_out_leaves_out_what_needs_it() {
        let package = |name: &str, needs: &[(&str, bool)]| {
            let needs: Vec<_> = needs
                .iter()
                .map(|(n, optional)| serde_json::json!({"name": n, "optional": optional}))
                .collect();
            serde_json::json!({"name": name, "dependencies": needs})
        };
        let metadata = serde_json::json!({
            "workspace_root": "/w", "target_directory": "/t",
            "packages": [
                package("tests", &[("harness", false)]),
                package("harness", &[("server", false)]),
                package("server", &[("wire", false)]),
                package("wire", &[]),
                package("cli", &[("server", true), ("wire", false)]),
            ],
        });
        let workspace = Workspace::parse(&metadata).unwrap();
        assert_eq!(workspace.packages_without(&["server"]), ["wire", "cli"]);
    }

    #[test]
    fn this_workspace_can_be_read() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.packages_without(&[]).contains(&"xtask"));
        assert!(workspace.root.join("Cargo.lock").is_file());
    }
}
