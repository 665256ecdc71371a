//! Finding programs and shells, and turning a [`Program`] into what the OS starts.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf, is_separator};

use crate::env::lookup;
use crate::error::ExecError;
use crate::spec::{Program, Shell};

/// A program ready to start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// A full path, or (Unix) one relative to the working folder.
    pub(crate) program: PathBuf,
    /// The arguments, the program's own name first.
    pub(crate) argv: Vec<OsString>,
    /// Windows: put behind the quoted `argv` as it is, because cmd.exe does not follow the quoting rules of
    /// other programs.
    pub(crate) verbatim: Option<String>,
}

/// The full path our own PATH gives for `name`. A full path gives itself when it can be run; a relative one
/// with a separator gives nothing, because it depends on the working folder. So do relative entries of PATH.
pub fn resolve_program(name: &str) -> Option<PathBuf> {
    search(name, env::var_os("PATH").as_deref())
}

/// The program that runs lines for `shell`.
///
/// # Errors
/// [`ExecError::ShellNotAvailable`] when it is not installed, or not a shell of this OS.
pub fn resolve_shell(shell: Shell) -> Result<PathBuf, ExecError> {
    let candidates: &[&str] = match shell {
        Shell::Auto if cfg!(windows) => &["cmd.exe"],
        Shell::Auto => &["bash", "/bin/bash", "sh", "/bin/sh"],
        Shell::Bash => &["bash", "/bin/bash"],
        Shell::Sh => &["sh", "/bin/sh"],
        Shell::Zsh => &["zsh", "/bin/zsh"],
        Shell::Pwsh => &["pwsh"],
        Shell::Powershell => &["powershell"],
        Shell::Cmd if cfg!(windows) => &["cmd.exe"],
        Shell::Cmd => &[],
    };
    candidates
        .iter()
        .find_map(|candidate| resolve_program(candidate))
        .ok_or(ExecError::ShellNotAvailable { requested: shell })
}

/// What to start for `program` with the command's environment `env`.
pub(crate) fn invocation(
    program: &Program,
    env: &[(OsString, OsString)],
    cwd: &Path,
) -> Result<Invocation, ExecError> {
    match program {
        Program::Line { shell, command } => {
            let path = resolve_shell(*shell)?;
            Ok(shell_invocation(*shell, path, command))
        }
        Program::Argv(argv) => {
            let name = argv.first().ok_or(ExecError::BadSpec("argv names no program"))?;
            let path = argv_program(name, env, cwd)
                .ok_or_else(|| ExecError::ProgramNotFound { program: name.clone() })?;
            Ok(Invocation { program: path, argv: argv.iter().map(OsString::from).collect(), verbatim: None })
        }
    }
}

fn shell_invocation(shell: Shell, path: PathBuf, command: &str) -> Invocation {
    let arguments: &[&str] = match shell {
        Shell::Auto | Shell::Cmd if cfg!(windows) => return cmd_invocation(path, command),
        Shell::Auto | Shell::Cmd | Shell::Bash | Shell::Sh | Shell::Zsh => &["-c"],
        Shell::Pwsh | Shell::Powershell => &["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"],
    };
    let name = path.file_name().unwrap_or(path.as_os_str()).to_owned();
    let mut argv = vec![name];
    argv.extend(arguments.iter().map(OsString::from));
    // A shell that takes its next word for an option would read `-x` so; POSIX shells and PowerShell do not
    // here.
    argv.push(command.into());
    Invocation { program: path, argv, verbatim: None }
}

/// `/d`: no AutoRun from the registry; `/s`: strip the outer quotes and nothing else.
fn cmd_invocation(path: PathBuf, command: &str) -> Invocation {
    let argv = ["cmd.exe", "/d", "/s", "/c"].map(OsString::from).to_vec();
    Invocation { program: path, argv, verbatim: Some(format!("\"{command}\"")) }
}

/// A name with a separator is a path, relative to the working folder; another is searched for in the
/// command's own PATH.
fn argv_program(name: &str, env: &[(OsString, OsString)], cwd: &Path) -> Option<PathBuf> {
    if !name.contains(is_separator) {
        return search(name, lookup(env, "PATH"));
    }
    // On Unix the OS resolves it from the folder handle, and says what is wrong with it: no look at a path
    // here.
    if cfg!(unix) {
        return Some(name.into());
    }
    with_extensions(&cwd.join(name)).into_iter().find(|candidate| is_program(candidate))
}

fn search(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.is_empty() || name.contains('\0') {
        return None;
    }
    if name.contains(is_separator) {
        let whole = Path::new(name);
        return whole
            .is_absolute()
            .then(|| with_extensions(whole))?
            .into_iter()
            .find(|candidate| is_program(candidate));
    }
    env::split_paths(path?)
        .filter(|folder| folder.is_absolute())
        .flat_map(|folder| with_extensions(&folder.join(name)))
        .find(|candidate| is_program(candidate))
}

#[cfg(unix)]
fn with_extensions(path: &Path) -> Vec<PathBuf> {
    vec![path.to_owned()]
}

/// The names Windows tries. Not all of PATHEXT: a `.js` or `.vbs` is no program that CreateProcess starts.
#[cfg(windows)]
fn with_extensions(path: &Path) -> Vec<PathBuf> {
    let known = ["exe", "com", "bat", "cmd"];
    let has_one = path
        .extension()
        .and_then(OsStr::to_str)
        .is_some_and(|extension| known.contains(&extension.to_ascii_lowercase().as_str()));
    if has_one {
        return vec![path.to_owned()];
    }
    let with = |extension: &&str| {
        let mut name = path.as_os_str().to_owned();
        name.push(".");
        name.push(extension);
        PathBuf::from(name)
    };
    known.iter().map(with).collect()
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD};
    path.is_file() && rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(windows)]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_program_on_the_path_is_found_and_relative_entries_are_not_searched() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        for (folder, mode) in [(&one, 0o644), (&two, 0o755)] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("tool"), "").unwrap();
            fs::set_permissions(folder.join("tool"), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(two.join("folder")).unwrap();
        let path = env::join_paths([Path::new("."), Path::new(""), &one, &two]).unwrap();
        assert_eq!(search("tool", Some(&path)), Some(two.join("tool")));
        assert_eq!(search("folder", Some(&path)), None);
        assert_eq!(search("Cargo.toml", Some(&path)), None);
        assert_eq!(search("", Some(&path)), None);
        assert_eq!(search("tool", None), None);
    }

    #[test]
    fn a_full_path_is_itself_and_a_relative_one_is_nothing() {
        assert_eq!(resolve_program("/bin/sh"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(resolve_program("/bin/no-such-program"), None);
        assert_eq!(resolve_program("./sh"), None);
        assert_eq!(resolve_program("../bin/sh"), None);
    }

    #[test]
    fn a_shell_of_another_os_is_not_available() {
        assert!(matches!(
            resolve_shell(Shell::Cmd),
            Err(ExecError::ShellNotAvailable { requested: Shell::Cmd })
        ));
        assert!(resolve_shell(Shell::Sh).unwrap().is_absolute());
        assert!(resolve_shell(Shell::Auto).unwrap().is_absolute());
    }
}
