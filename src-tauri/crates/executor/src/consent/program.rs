//! Which program an argument list starts, as far as a rule may trust it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What a rule with `program` compares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramMatch(Option<Argv>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Argv {
    name: String,
    path: Option<PathBuf>,
    tampered: bool,
}

/// Variables that decide what code a program loads or runs, by safety.md §3 ...
const EXACT: [&str; 4] = ["PATH", "BASH_ENV", "ENV", "NODE_OPTIONS"];
const PREFIXES: [&str; 6] = ["LD_", "DYLD_", "PYTHON", "PERL5", "RUBY", "GIT_"];
/// ... and further ones of the same kind: configuration folders with hooks and aliases, pagers and editors,
/// loaders of other languages and tools. One too many here asks a question; one too few runs what nobody allowed.
const MORE_EXACT: [&str; 26] = [
    "APPDATA",
    "CLASSPATH",
    "COMSPEC",
    "EDITOR",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "HOME",
    "IFS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCALAPPDATA",
    "MAKEFLAGS",
    "MANPAGER",
    "PAGER",
    "PATHEXT",
    "PS4",
    "PSMODULEPATH",
    "SHELL",
    "SHELLOPTS",
    "SYSTEMROOT",
    "USERPROFILE",
    "VISUAL",
    "WINDIR",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
    "BROWSER",
];
const MORE_PREFIXES: [&str; 16] = [
    "BASH", "CARGO", "CORECLR_", "COR_", "DOTNET_", "GEM_", "JAVA", "JDK_", "LUA_", "MAVEN_", "NODE_",
    "PERL", "PHP", "RUST", "SSH_", "XDG_",
];

impl ProgramMatch {
    /// A shell line, or no command at all: no rule with `program` matches it.
    pub fn none() -> Self {
        Self(None)
    }

    /// The program that `argv[0]` names, looked up in our own `PATH`, and the names of the variables that the
    /// request sets.
    pub fn argv<'a>(program: &str, variables: impl IntoIterator<Item = &'a str>) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::in_path(program, variables, &path)
    }

    pub(super) fn in_path<'a>(
        program: &str,
        variables: impl IntoIterator<Item = &'a str>,
        path: &OsStr,
    ) -> Self {
        Self(Some(Argv {
            name: name_of(Path::new(program)),
            path: find(program, path),
            tampered: variables.into_iter().any(|name| decides_code(name, cfg!(windows))),
        }))
    }

    /// The full path that our `PATH` gives, where it gives one. To run what a rule allowed, run this.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_ref()?.path.as_deref()
    }

    /// Whether this certainly is the program at `path`, untampered. What lies below the session's own `root` the
    /// agent could have written, so it never is.
    pub(super) fn is(&self, path: &Path, root: &Path) -> bool {
        let Some(Argv { path: Some(ours), tampered: false, .. }) = &self.0 else { return false };
        fold(ours) == fold(path) && !fold(ours).starts_with(fold(root))
    }

    /// Whether this may be a program called `name`: by any path, with any variables.
    pub(super) fn may_be(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|argv| argv.name == name)
    }
}

/// The full path of a program: of a bare name the first of `path` that can be run, of a full path itself. A path
/// from the current folder has none, nor has an entry of `path` that is not absolute.
pub(super) fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    let given = Path::new(program);
    if given.components().count() != 1 || program.ends_with(['/', std::path::MAIN_SEPARATOR]) {
        let straight = given.is_absolute()
            && given.components().all(|part| !matches!(part, std::path::Component::ParentDir));
        return straight.then(|| given.to_owned());
    }
    if !matches!(given.components().next(), Some(std::path::Component::Normal(_))) {
        return None;
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .flat_map(|folder| candidates(&folder, program))
        .find(|candidate| can_be_run(candidate))
}

/// The name by which a rule may refuse a program: without folder and, on Windows, without `.exe` and case.
pub(super) fn name_of(program: &Path) -> String {
    let name = if cfg!(windows) { program.file_stem() } else { program.file_name() };
    let name = name.unwrap_or_default().to_string_lossy();
    if cfg!(windows) { name.to_lowercase() } else { name.into_owned() }
}

/// A path as the OS compares it. Windows' long form (`\\?\C:\…`) is the short one here.
pub(super) fn fold(path: &Path) -> PathBuf {
    if cfg!(windows) {
        let text = path.to_string_lossy().to_lowercase().replace('/', "\\");
        PathBuf::from(text.strip_prefix(r"\\?\").unwrap_or(&text))
    } else {
        path.to_owned()
    }
}

fn decides_code(variable: &str, fold: bool) -> bool {
    let name = if fold { variable.to_uppercase() } else { variable.to_owned() };
    // npm reads its variables in either case, everywhere.
    EXACT.iter().chain(&MORE_EXACT).any(|exact| name == *exact)
        || PREFIXES.iter().chain(&MORE_PREFIXES).any(|prefix| name.starts_with(prefix))
        || name.to_uppercase().starts_with("NPM_CONFIG_")
}

/// `.bat` and `.cmd` go through a command interpreter that reads arguments in its own way, so no rule trusts them.
fn candidates(folder: &Path, program: &str) -> Vec<PathBuf> {
    let whole = folder.join(program);
    if cfg!(windows) && whole.extension().is_none() {
        return vec![whole.with_extension("com"), whole.with_extension("exe")];
    }
    vec![whole]
}

fn can_be_run(path: &Path) -> bool {
    #[cfg(unix)]
    {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    }
    #[cfg(windows)]
    {
        let runs = |extension: &OsStr| {
            extension.eq_ignore_ascii_case("exe") || extension.eq_ignore_ascii_case("com")
        };
        path.is_file() && path.extension().is_some_and(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_that_decides_what_runs_disqualifies() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "ENV",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "PERL5LIB",
            "PERL5OPT",
            "RUBYOPT",
            "RUBYLIB",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_COUNT",
            "HOME",
            "PAGER",
            "npm_config_script_shell",
            "BASH_FUNC_ls%%",
            "RUSTC_WRAPPER",
        ] {
            assert!(decides_code(name, false), "{name}");
        }
        for name in ["LANG", "LC_ALL", "TZ", "TERM", "CI", "NO_COLOR", "FOO", "path"] {
            assert!(!decides_code(name, false), "{name}");
        }
        assert!(decides_code("Path", true) && decides_code("git_dir", true));
    }

    #[cfg(unix)]
    #[test]
    fn a_bare_name_is_the_first_in_our_path_that_can_be_run() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let place = |dir: &str, mode: u32| {
            let dir = folder.path().join(dir);
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("tool"), "").unwrap();
            std::fs::set_permissions(dir.join("tool"), std::fs::Permissions::from_mode(mode)).unwrap();
            dir
        };
        let (a, b, c) = (place("a", 0o644), place("b", 0o755), place("c", 0o755));
        let path = std::env::join_paths([Path::new("."), Path::new(""), &a, &b, &c]).unwrap();
        assert_eq!(find("tool", &path), Some(b.join("tool")));
        assert_eq!(find("./tool", &path), None);
        assert_eq!(find("b/tool", &path), None);
        assert_eq!(find("..", &path), None);
        assert_eq!(find("", &path), None);
        assert_eq!(find("absent", &path), None);
        assert_eq!(find("/usr/bin/../../tmp/tool", &path), None);
        assert_eq!(find("/x/tool", &path), Some(PathBuf::from("/x/tool")));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_in_the_session_s_own_folder_is_never_trusted() {
        let program = ProgramMatch::in_path("/srv/bin/git", [], OsStr::new(""));
        assert!(program.is(Path::new("/srv/bin/git"), Path::new("/home")));
        assert!(!program.is(Path::new("/srv/bin/git"), Path::new("/srv")));
        let tampered = ProgramMatch::in_path("/usr/bin/git", ["GIT_DIR"], OsStr::new(""));
        assert!(!tampered.is(Path::new("/usr/bin/git"), Path::new("/home")));
        assert!(tampered.may_be("git"));
        assert!(!ProgramMatch::none().may_be("git"));
    }
}
