//! What to run, where, and within what bounds.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::ExecError;

/// The shells of the wire. `Auto` is bash, else sh; on Windows cmd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shell {
    /// bash, else sh; on Windows cmd.
    Auto,
    /// `bash -c`
    Bash,
    /// `sh -c`
    Sh,
    /// `zsh -c`
    Zsh,
    /// PowerShell 7, on every OS.
    Pwsh,
    /// Windows PowerShell 5.
    Powershell,
    /// `cmd.exe /d /s /c`, code page UTF-8.
    Cmd,
}

impl Shell {
    /// The wire's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Shell::Auto => "auto",
            Shell::Bash => "bash",
            Shell::Sh => "sh",
            Shell::Zsh => "zsh",
            Shell::Pwsh => "pwsh",
            Shell::Powershell => "powershell",
            Shell::Cmd => "cmd",
        }
    }
}

impl fmt::Display for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A line for a shell, or a program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// One line, run by a shell.
    Line {
        /// Which.
        shell: Shell,
        /// The line, as it will run.
        command: String,
    },
    /// The program and its arguments; nothing is expanded. The program is looked for in the command's PATH
    /// (ours, unless the spec's environment sets one), or relative to the working folder when its name has a
    /// separator.
    Argv(Vec<String>),
}

impl Program {
    /// One line for a person: the command line, or the arguments joined by spaces.
    pub fn display(&self) -> String {
        match self {
            Program::Line { command, .. } => command.clone(),
            Program::Argv(argv) => argv.join(" "),
        }
    }
}

/// A working folder, held open: the command starts in *this* folder, whatever its path leads to by then.
#[derive(Debug)]
pub struct Cwd {
    /// For messages, and on Windows for the start itself.
    pub(crate) path: PathBuf,
    #[cfg(unix)]
    pub(crate) dir: std::os::fd::OwnedFd,
    /// Open without delete sharing, so that the folder can be neither renamed nor replaced before the command
    /// starts.
    #[cfg(windows)]
    pub(crate) _dir: std::os::windows::io::OwnedHandle,
}

impl Cwd {
    /// Opens `path`, following links.
    ///
    /// # Errors
    /// Whatever the OS says of a path that is no folder, is missing, or may not be opened.
    pub fn open(path: &Path) -> std::io::Result<Cwd> {
        #[cfg(unix)]
        {
            use rustix::fs::{Mode, OFlags};
            let dir =
                rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            Ok(Cwd { path: path.to_owned(), dir })
        }
        #[cfg(windows)]
        {
            use std::os::windows::fs::OpenOptionsExt;
            const FILE_LIST_DIRECTORY: u32 = 1;
            const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
            const FILE_SHARE_READ_WRITE: u32 = 3;
            let file = std::fs::OpenOptions::new()
                .access_mode(FILE_LIST_DIRECTORY)
                .share_mode(FILE_SHARE_READ_WRITE)
                .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
                .open(path)?;
            if !file.metadata()?.is_dir() {
                return Err(std::io::ErrorKind::NotADirectory.into());
            }
            Ok(Cwd { path: path.to_owned(), _dir: file.into() })
        }
    }

    /// A folder that is open already (a jail's), `O_PATH` ones too. `path` is for messages only.
    #[cfg(unix)]
    pub fn from_fd(path: PathBuf, dir: std::os::fd::OwnedFd) -> Cwd {
        Cwd { path, dir }
    }

    /// A folder that is open already (a jail's), and its path.
    #[cfg(windows)]
    pub fn from_handle(path: PathBuf, dir: std::os::windows::io::OwnedHandle) -> Cwd {
        Cwd { path, _dir: dir }
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// One command, with its bounds.
#[derive(Debug)]
pub struct CommandSpec {
    /// What to run.
    pub program: Program,
    /// Where.
    pub cwd: Cwd,
    /// Counted from the start of the command; then the tree is asked to stop, and killed 2 s later.
    pub timeout: Duration,
    /// Put over [`baseline_env`](crate::baseline_env). Of a name given twice the last one counts; on Windows
    /// names are equal whatever their case.
    pub env: Vec<(String, String)>,
    /// Bytes of stdout and stderr together, as the UTF-8 text of the outcome.
    pub output_limit: usize,
}

impl CommandSpec {
    /// Refuses what no OS can run, before anything is started.
    pub(crate) fn check(&self) -> Result<(), ExecError> {
        match &self.program {
            Program::Line { command, .. } if command.contains('\0') => {
                return Err(ExecError::BadSpec("the command contains a NUL"));
            }
            Program::Line { .. } => {}
            Program::Argv(argv) => {
                if argv.first().is_none_or(String::is_empty) {
                    return Err(ExecError::BadSpec("argv names no program"));
                }
                if argv.iter().any(|argument| argument.contains('\0')) {
                    return Err(ExecError::BadSpec("an argument contains a NUL"));
                }
            }
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(ExecError::BadSpec(
                    "the name of an environment variable is empty or contains '=' or a NUL",
                ));
            }
            if value.contains('\0') {
                return Err(ExecError::BadSpec("the value of an environment variable contains a NUL"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(program: Program, env: &[(&str, &str)]) -> CommandSpec {
        CommandSpec {
            program,
            cwd: Cwd::open(&std::env::temp_dir()).unwrap(),
            timeout: Duration::from_secs(1),
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            output_limit: 1,
        }
    }

    #[test]
    fn what_no_os_can_run_is_refused() {
        let argv = |words: &[&str]| Program::Argv(words.iter().map(|word| (*word).to_owned()).collect());
        let line = |command: &str| Program::Line { shell: Shell::Auto, command: command.to_owned() };
        let bad = [
            spec(argv(&[]), &[]),
            spec(argv(&[""]), &[]),
            spec(argv(&["true", "a\0b"]), &[]),
            spec(line("a\0b"), &[]),
            spec(line("true"), &[("", "x")]),
            spec(line("true"), &[("A=B", "x")]),
            spec(line("true"), &[("A\0", "x")]),
            spec(line("true"), &[("A", "x\0")]),
        ];
        for spec in bad {
            assert!(matches!(spec.check(), Err(ExecError::BadSpec(_))), "{:?}", spec.program);
        }
        assert!(spec(line(""), &[("A", "x=y"), ("é", "")]).check().is_ok());
    }
}
