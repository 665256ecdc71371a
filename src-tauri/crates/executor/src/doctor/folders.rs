//! Our own folders, and those that the agent may be given.

use std::path::{Path, PathBuf};

use jail::{JailError, RootDir, RootOptions, RootRefusal};

use super::{Check, Status, mounts};
use crate::config::{Dirs, DirsError, Loaded};

/// Makes our own folders where they are missing, and sees whether they are private and can be written.
pub(super) fn own(dirs: &Dirs) -> Vec<Check> {
    if let Err(error) = dirs.create() {
        let advice = match &error {
            DirsError::NoHome => "set HOME",
            DirsError::Io { .. } => {
                "give this user the right to use it, or choose another with --config-dir and --state-dir"
            }
            DirsError::NotAFolder { .. } => "move away what stands there",
            DirsError::NotPrivate { .. } => {
                "what is in it decides what an agent may do: nobody else may change it"
            }
        };
        return vec![Check::fail("folders", error.to_string(), advice)];
    }
    for folder in dirs.all() {
        // A real file: permissions alone say nothing of a full or read-only disk.
        let probe = folder.join(format!(".doctor-{}", uuid::Uuid::new_v4().simple()));
        let written = std::fs::write(&probe, b"deskhand").and_then(|()| std::fs::remove_file(&probe));
        if let Err(error) = written {
            let detail = format!("{} cannot be written: {error}", folder.display());
            return vec![Check::fail(
                "folders",
                detail,
                "free some space, or give this user the right to write there",
            )];
        }
    }
    let detail = format!("config {}, state {}", dirs.config.display(), dirs.state.display());
    vec![Check::ok("folders", detail)]
}

pub(super) fn roots(dirs: &Dirs, loaded: Option<&Loaded>) -> Vec<Check> {
    let Some(loaded) = loaded else {
        return vec![Check::skipped("roots", "the configuration cannot be read")];
    };
    let roots = loaded.config.roots();
    if roots.is_empty() && !loaded.config.browse_home {
        let advice = "add one with `deskhand roots add FOLDER`";
        return vec![Check::fail("roots", "no folder is shared: an agent has nowhere to work", advice)];
    }
    let options = dirs.root_options();
    let mut checks: Vec<_> = roots.iter().flat_map(|root| check_root(root, &options)).collect();
    let usable = checks.iter().any(|check| check.status == Status::Ok);
    if !usable && !loaded.config.browse_home {
        checks.push(Check::fail("roots", "none of the shared folders can be used", "see the ones above"));
    }
    checks
}

fn check_root(root: &Path, options: &RootOptions) -> Vec<Check> {
    let shown = root.display();
    let opened = match RootDir::open(root, options) {
        Ok(opened) => opened,
        Err(error) => return vec![unusable(root, &error)],
    };
    let path = opened.path().to_owned();
    let mut checks = Vec::new();
    if let Some(missing) = missing_rights(&path) {
        let advice = "the platform's folder picker shows only folders that can be read, written and entered";
        checks.push(Check::warn("roots.rights", format!("{shown}: {missing}"), advice));
    } else {
        checks.push(Check::ok("roots", shown.to_string()));
    }
    if opened.is_whole_home() {
        checks.push(Check::warn(
            "roots.home",
            format!("{shown} is a whole home folder: keys, mail and browser profiles are in it"),
            "share a folder inside it instead: `deskhand roots add`, `deskhand roots remove`",
        ));
    }
    match mounts::below(&path) {
        Ok(mounted) if mounted.is_empty() => {}
        Ok(mounted) => checks.push(Check::warn(
            "roots.mounts",
            format!("{shown} has other file systems mounted inside: {}", list(&mounted)),
            "an agent in this folder reaches what is mounted there, wherever that lies: unmount what it must not see",
        )),
        Err(error) => checks.push(Check::warn(
            "roots.mounts",
            format!("{shown}: what is mounted inside cannot be told ({error})"),
            "see for yourself whether something is mounted there",
        )),
    }
    checks
}

/// Why no agent can be given a shared folder, and what to do about it; none where one can.
#[must_use]
pub fn unusable_root(root: &Path, options: &RootOptions) -> Option<Check> {
    jail::check_root(root, options).err().map(|error| unusable(root, &error))
}

fn unusable(root: &Path, error: &JailError) -> Check {
    let shown = root.display();
    match error {
        JailError::RootRefused(why) => Check::fail("roots", format!("{shown}: {why}"), refusal_advice(*why)),
        _ if matches!(std::fs::symlink_metadata(root), Err(e) if e.kind() == std::io::ErrorKind::NotFound) => {
            let advice = format!("make it (mkdir {shown}), or take it off: deskhand roots remove {shown}");
            Check::warn("roots.missing", format!("{shown} does not exist"), advice)
        }
        other => Check::fail(
            "roots",
            format!("{shown}: {other}"),
            "give this user the right to use it, or take it off",
        ),
    }
}

fn refusal_advice(why: RootRefusal) -> &'static str {
    match why {
        RootRefusal::NotAbsolute => "write it from the top, or from ~/",
        RootRefusal::NotADirectory => "share the folder that holds it",
        RootRefusal::Link => "share the folder that it leads to",
        RootRefusal::FileSystemRoot
        | RootRefusal::HomeParent
        | RootRefusal::SystemFolder
        | RootRefusal::OwnFolder => "share another folder",
        RootRefusal::UnsendableName => "rename it",
    }
}

#[cfg(unix)]
fn missing_rights(path: &Path) -> Option<&'static str> {
    use rustix::fs::{Access, access};
    if access(path, Access::READ_OK | Access::EXEC_OK).is_err() {
        Some("it cannot be read")
    } else if access(path, Access::WRITE_OK).is_err() {
        Some("it cannot be written")
    } else {
        None
    }
}

/// An access list says it only to who tries; writing into the person's folder to find out would not be right.
#[cfg(windows)]
fn missing_rights(path: &Path) -> Option<&'static str> {
    std::fs::read_dir(path).is_err().then_some("it cannot be read")
}

fn list(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<_> = paths.iter().take(SHOWN).map(|path| path.display().to_string()).collect();
    if paths.len() > SHOWN {
        text.push(format!("and {} more", paths.len() - SHOWN));
    }
    text.join(", ")
}
