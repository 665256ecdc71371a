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

/// What the app is built against: the web view, the tray.
const APP: &[Package] = &[
    Package { apt: "libwebkit2gtk-4.1-dev", dnf: "webkit2gtk4.1-devel", brew: None, program: None },
    Package {
        apt: "libayatana-appindicator3-dev",
        dnf: "libayatana-appindicator-gtk3-devel",
        brew: None,
        program: None,
    },
    Package { apt: "pkg-config", dnf: "pkgconf", brew: None, program: Some("pkg-config") },
];

/// A display and a desktop, for tests that use the app as a person would.
const DESKTOP: &[Package] = &[
    Package { apt: "xvfb", dnf: "xorg-x11-server-Xvfb", brew: None, program: Some("Xvfb") },
    Package { apt: "openbox", dnf: "openbox", brew: None, program: Some("openbox") },
    Package { apt: "xfce4-panel", dnf: "xfce4-panel", brew: None, program: Some("xfce4-panel") },
    Package { apt: "xdotool", dnf: "xdotool", brew: None, program: Some("xdotool") },
    Package { apt: "x11-utils", dnf: "xwininfo", brew: None, program: Some("xwininfo") },
    Package { apt: "imagemagick", dnf: "ImageMagick", brew: None, program: Some("import") },
    Package { apt: "adwaita-icon-theme", dnf: "adwaita-icon-theme", brew: None, program: None },
    Package { apt: "fonts-dejavu-core", dnf: "dejavu-sans-fonts", brew: None, program: None },
];

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
    let mut wanted: Vec<Package> = COMPILERS.iter().chain(KEYCHAIN).chain(BROWSER).copied().collect();
    if cfg!(target_os = "linux") {
        wanted.extend(APP.iter().chain(DESKTOP)); // the other systems bring their own
    }
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
