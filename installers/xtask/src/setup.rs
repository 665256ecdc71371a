//! What a machine needs for which chore.

use std::process::Command;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::packages::{Package, PackageSource};
use crate::process;
use crate::tools::Tool;
use crate::workspace::Workspace;

/// What the machine is set up for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Purpose {
    /// `cargo xtask test`
    Test,
    /// `cargo xtask cross`
    Cross,
    /// `cargo xtask demo`
    Demo,
}

/// A C compiler builds SQLite and ring, a C++ one libFuzzer.
const COMPILERS: &[Package] = &[
    Package { apt: "gcc", dnf: "gcc", brew: None, program: Some("cc") },
    Package { apt: "g++", dnf: "gcc-c++", brew: None, program: Some("c++") },
];

/// A keychain for the vault to keep its word with, and a session bus for it.
const KEYCHAIN: &[Package] = &[
    Package { apt: "gnome-keyring", dnf: "gnome-keyring", brew: None, program: Some("gnome-keyring-daemon") },
    Package { apt: "libsecret-tools", dnf: "libsecret", brew: None, program: Some("secret-tool") },
    Package { apt: "dbus", dnf: "dbus-daemon", brew: None, program: Some("dbus-run-session") },
];

/// A browser for the pages' tests.
const BROWSER: &[Package] =
    &[Package { apt: "chromium", dnf: "chromium", brew: None, program: Some("chromium") }];

/// Debian's own Rust brings std's source, which rustup would have to download a target's std for.
const CROSS: &[&str] = &[
    "rustc-web",
    "cargo-web",
    "rust-web-src",
    "gcc-mingw-w64-x86-64",
    "wine64",
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "qemu-user-static",
];

/// Installs what is missing for each of `purposes`.
pub(crate) fn run(purposes: &[Purpose]) -> Result<()> {
    let workspace = Workspace::load()?;
    for purpose in purposes {
        match purpose {
            Purpose::Test => {
                test_packages()?;
                for tool in [Tool::Nextest, Tool::Deny, Tool::Fuzz] {
                    tool.ensure(&workspace)?;
                }
            }
            Purpose::Cross => {
                cross_packages()?;
                Tool::Nextest.ensure(&workspace)?;
            }
            Purpose::Demo => demo_packages()?,
        }
    }
    eprintln!("Everything is there.");
    Ok(())
}

/// The system packages of the test run.
pub(crate) fn test_packages() -> Result<()> {
    let wanted: Vec<Package> = COMPILERS.iter().chain(KEYCHAIN).chain(BROWSER).copied().collect();
    PackageSource::install(&wanted)
}

/// The system packages of the demo: a compiler.
pub(crate) fn demo_packages() -> Result<()> {
    PackageSource::install(COMPILERS.get(..1).unwrap_or_default())
}

/// The other systems' compilers. The recipe is Debian's: elsewhere it is for the machine's owner to find the parts.
pub(crate) fn cross_packages() -> Result<()> {
    if !cfg!(target_os = "linux") || !process::succeeds(Command::new("apt-get").arg("--version")) {
        bail!("`cross` needs Debian 12 or newer with these packages: {}", CROSS.join(" "));
    }
    let wanted: Vec<Package> = CROSS.iter().map(|name| Package::debian(name)).collect();
    PackageSource::install(&wanted)
}
