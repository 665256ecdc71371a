//! The system's packages: apt, dnf or Homebrew. Nothing is installed on Windows, where nothing is needed.

use std::env;
use std::fs;
use std::io::{self, IsTerminal};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// How often an installation is tried: mirrors do fail.
const ATTEMPTS: u32 = 3;

/// One thing to have, under each system's name for it.
#[derive(Clone, Copy)]
pub(crate) struct Package {
    pub(crate) apt: &'static str,
    pub(crate) dnf: &'static str,
    /// `None`: macOS has it, or does not need it.
    pub(crate) brew: Option<&'static str>,
    /// The program on `PATH` that shows it is there, whoever installed it.
    pub(crate) program: Option<&'static str>,
}

impl Package {
    /// One that only Debian has.
    pub(crate) const fn debian(name: &'static str) -> Self {
        Self { apt: name, dnf: name, brew: None, program: None }
    }
}

/// Where packages come from on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackageSource {
    Apt,
    Dnf,
    Brew,
}

impl PackageSource {
    /// Installs those of `wanted` that are missing; where it cannot, the error is the line to run.
    pub(crate) fn install(wanted: &[Package]) -> Result<()> {
        if cfg!(windows) {
            return Ok(());
        }
        let absent = |p: &&Package| !p.program.is_some_and(on_path);
        let candidates: Vec<Package> = wanted.iter().filter(absent).copied().collect();
        if candidates.is_empty() {
            return Ok(());
        }
        let Some(source) = Self::detect() else {
            let names: Vec<_> = candidates.iter().map(|p| p.program.unwrap_or(p.apt)).collect();
            bail!("neither apt, dnf nor brew is here; please install: {}", names.join(", "));
        };
        let missing: Vec<&str> =
            candidates.iter().filter_map(|p| source.name(p)).filter(|name| !source.has(name)).collect();
        if missing.is_empty() { Ok(()) } else { source.install_names(&missing) }
    }

    fn detect() -> Option<Self> {
        let known = [(Self::Apt, "apt-get"), (Self::Dnf, "dnf"), (Self::Brew, "brew")];
        known.into_iter().find(|(_, program)| on_path(program)).map(|(source, _)| source)
    }

    const fn name(self, package: &Package) -> Option<&'static str> {
        match self {
            Self::Apt => Some(package.apt),
            Self::Dnf => Some(package.dnf),
            Self::Brew => package.brew,
        }
    }

    fn has(self, name: &str) -> bool {
        match self {
            Self::Apt => {
                let mut query = Command::new("dpkg-query");
                let status = process::output(query.args(["-W", "-f=${db:Status-Abbrev}", name]));
                status.is_ok_and(|status| status.starts_with("ii"))
            }
            Self::Dnf => process::succeeds(Command::new("rpm").args(["-q", name])),
            Self::Brew => process::succeeds(Command::new("brew").args(["list", name])),
        }
    }

    fn install_names(self, missing: &[&str]) -> Result<()> {
        let by_hand = self.line(missing);
        let Some(privilege) = self.privilege() else {
            bail!("this needs packages and may not install them; please run: sudo {by_hand}");
        };
        if self == Self::Apt && apt_lists_are_empty() {
            process::run(&mut self.command(privilege, &["update"]))?;
        }
        let mut arguments = vec!["install"];
        arguments.extend(self.options());
        arguments.extend(missing);
        for _ in 1..ATTEMPTS {
            match process::run(&mut self.command(privilege, &arguments)) {
                Ok(()) => return Ok(()),
                Err(error) => eprintln!("{error:#}; trying again"),
            }
            if self == Self::Apt {
                process::run(&mut self.command(privilege, &["update"]))?;
            }
        }
        process::run(&mut self.command(privilege, &arguments))
            .with_context(|| format!("please run: {by_hand}"))
    }

    /// What to put before the command: nothing for root and for Homebrew, `sudo` where it may be used.
    fn privilege(self) -> Option<&'static [&'static str]> {
        let is_root = || process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
        if self == Self::Brew || is_root() {
            Some(&[])
        } else if process::succeeds(Command::new("sudo").args(["-n", "true"])) {
            Some(&["sudo", "-n"])
        } else if on_path("sudo") && io::stdin().is_terminal() {
            Some(&["sudo"])
        } else {
            None
        }
    }

    fn command(self, privilege: &[&str], arguments: &[&str]) -> Command {
        let mut words = privilege.to_vec();
        if self == Self::Apt {
            // sudo drops the environment, `env` puts it back behind it.
            words.extend(["env", "DEBIAN_FRONTEND=noninteractive"]);
        }
        words.push(self.program());
        words.extend(arguments);
        let mut command = Command::new(words.first().copied().unwrap_or_default());
        command.args(words.get(1..).unwrap_or_default());
        command
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Apt => "apt-get",
            Self::Dnf => "dnf",
            Self::Brew => "brew",
        }
    }

    /// Options of an installation that nobody watches.
    const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Apt => &[
                "--yes",
                "--no-install-recommends",
                "-o=DPkg::Lock::Timeout=300",
                "-o=Acquire::Retries=3",
                "-o=Dpkg::Use-Pty=0",
            ],
            Self::Dnf => &["--assumeyes", "--setopt=install_weak_deps=False"],
            Self::Brew => &[],
        }
    }

    /// The command for a person, without the options of an unwatched run.
    fn line(self, missing: &[&str]) -> String {
        let names = missing.join(" ");
        match self {
            Self::Apt => format!("apt-get install --no-install-recommends {names}"),
            Self::Dnf | Self::Brew => format!("{} install {names}", self.program()),
        }
    }
}

/// A fresh container image has package names but no lists to find them in.
fn apt_lists_are_empty() -> bool {
    let Ok(entries) = fs::read_dir("/var/lib/apt/lists") else { return true };
    !entries.flatten().any(|entry| entry.file_name().to_string_lossy().contains("_Packages"))
}

fn on_path(program: &str) -> bool {
    let Some(path) = env::var_os("PATH") else { return false };
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_is_told_not_to_ask_even_behind_sudo() {
        let command = PackageSource::Apt.command(&["sudo", "-n"], &["update"]);
        assert_eq!(process::show(&command), "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update");
    }

    #[test]
    fn a_person_is_given_a_line_to_run() {
        assert_eq!(
            PackageSource::Apt.line(&["gcc", "dbus"]),
            "apt-get install --no-install-recommends gcc dbus"
        );
        assert_eq!(PackageSource::Dnf.line(&["gcc"]), "dnf install gcc");
    }

    #[test]
    fn what_is_on_the_path_is_not_installed() {
        let cargo = Package { apt: "no-such-package", dnf: "-", brew: None, program: Some("cargo") };
        PackageSource::install(&[cargo]).unwrap();
    }
}
