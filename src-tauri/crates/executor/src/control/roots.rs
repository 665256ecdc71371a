//! Which folders the platform's picker may see at all.

use std::path::{Path, PathBuf};

use jail::RootOptions;

/// The part of the configuration that decides it.
#[derive(Debug, Clone)]
pub(crate) struct Browsable {
    /// `roots`, with `~` expanded.
    pub(crate) roots: Vec<PathBuf>,
    /// Whether the home folder and mounted drives are there too.
    pub(crate) home: bool,
    /// What may be a root.
    pub(crate) options: RootOptions,
}

/// Folders that belong to Windows, on every drive.
const WINDOWS_OWN: [&str; 8] = [
    "windows",
    "program files",
    "program files (x86)",
    "programdata",
    "recovery",
    "system volume information",
    "$recycle.bin",
    "documents and settings",
];

/// What is browsable at one moment: [`Browsable`] held against the disk.
pub(crate) struct Seen<'a> {
    /// Where a browse starts: canonical, existing, allowed, each once.
    pub(crate) starts: Vec<PathBuf>,
    options: &'a RootOptions,
}

impl Browsable {
    /// Looks at the disk. Folders of the configuration that are missing or may not be roots are left out; `doctor` says
    /// which.
    pub(crate) fn look(&self) -> Seen<'_> {
        let mut starts: Vec<PathBuf> = Vec::new();
        let drives = if self.home { mounts() } else { Vec::new() };
        let home = self.options.home.clone().filter(|_| self.home);
        for path in self.roots.iter().cloned().chain(home).chain(drives) {
            if let Ok(path) = jail::check_root(&path, &self.options)
                && !starts.contains(&path)
            {
                starts.push(path);
            }
        }
        Seen { starts, options: &self.options }
    }
}

impl Seen<'_> {
    /// Whether this canonical path is a start or below one, and no folder of the operating system.
    pub(crate) fn allows(&self, path: &Path) -> bool {
        !is_systems_own(path) && self.starts.iter().any(|start| path.starts_with(start))
    }

    /// The path, if it is still the folder it was: what was listed may have been replaced since.
    pub(crate) fn still(&self, path: PathBuf) -> Option<PathBuf> {
        let canonical = jail::check_root(&path, self.options).ok()?;
        (canonical == path && self.allows(&canonical)).then_some(canonical)
    }
}

fn is_systems_own(path: &Path) -> bool {
    cfg!(windows)
        && path
            .components()
            .filter_map(|part| part.as_os_str().to_str())
            .nth(2) // after the drive and the separator
            .is_some_and(|name| WINDOWS_OWN.contains(&name.to_lowercase().as_str()))
}

/// Drives that the person mounted.
#[cfg(target_os = "linux")]
fn mounts() -> Vec<PathBuf> {
    let user = std::env::var("USER").ok().filter(|name| !name.is_empty() && !name.contains('/'));
    let mut found: Vec<PathBuf> = user
        .iter()
        .flat_map(|user| [Path::new("/media").join(user), Path::new("/run/media").join(user)])
        .flat_map(|folder| children(&folder))
        .collect();
    if crate::identity::platform() == protocol::Platform::Wsl2 {
        let letter = |path: &PathBuf| {
            path.file_name().is_some_and(|n| n.len() == 1 && n.as_encoded_bytes()[0].is_ascii_lowercase())
        };
        found.extend(children(Path::new("/mnt")).into_iter().filter(letter));
    }
    found
}

#[cfg(target_os = "macos")]
fn mounts() -> Vec<PathBuf> {
    children(Path::new("/Volumes"))
}

#[cfg(windows)]
fn mounts() -> Vec<PathBuf> {
    (b'A'..=b'Z')
        .map(|letter| PathBuf::from(format!("{}:\\", letter as char)))
        .filter(|p| p.is_dir())
        .collect()
}

#[cfg(unix)]
fn children(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}
