//! From the text of a request to components below the root. Lexical only as far as that is right: `..` is kept, for
//! what it leads to depends on what is before it.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path};

use crate::error::{Fault, JailError, Outcome};
use crate::rules::{self, Broken, Flavor};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `..`
    Up,
    /// Into, or onto, a name.
    Down(OsString),
}

/// A path as steps from the root directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) steps: Vec<Step>,
    /// It ends in `/`, `.` or `..`, so that it can only mean a directory.
    pub(crate) dir_only: bool,
}

/// Where absolute paths are recognised as the root.
#[derive(Debug)]
pub(crate) struct Anchor {
    /// Paths of the root: canonical, and as the user gave it.
    pub(crate) roots: Vec<Vec<OsString>>,
    pub(crate) home: Option<Vec<OsString>>,
    /// Names are compared without case.
    pub(crate) folds: bool,
    pub(crate) flavor: Flavor,
}

impl Anchor {
    /// Checks the form of a path from a request and takes it apart.
    pub(crate) fn parse(&self, path: &str) -> Result<Steps, JailError> {
        rules::check(path, self.flavor).map_err(|broken| match broken {
            Broken::Invalid(reason) => JailError::InvalidChars { path: path.to_owned(), reason },
            Broken::Reserved(name) => JailError::ReservedName { path: path.to_owned(), name },
        })?;
        let separator = |c: char| self.flavor.is_separator(c);
        if path == "~" || path.strip_prefix('~').is_some_and(|rest| rest.starts_with(separator)) {
            let home = self.home.as_ref().ok_or(Fault::Outside).map_err(|fault| fault.at(path))?;
            let mut whole = split(OsStr::new(&path[1..]), self.flavor);
            whole.steps.splice(0..0, home.iter().cloned().map(Step::Down));
            return self.below_root(whole).map_err(|fault| fault.at(path));
        }
        self.steps(OsStr::new(path)).map_err(|fault| fault.at(path))
    }

    /// Takes a path apart that need not be UTF-8: the target of a link.
    pub(crate) fn steps(&self, path: &OsStr) -> Outcome<Steps> {
        let steps = split(path, self.flavor);
        if is_absolute(path, self.flavor) { self.below_root(steps) } else { Ok(steps) }
    }

    /// Whether a link's target starts at the top of the file system.
    pub(crate) fn is_absolute(&self, path: &OsStr) -> bool {
        is_absolute(path, self.flavor)
    }

    /// The steps behind the root's own path. Only the text is compared: to ask the file system about a place outside
    /// would touch it.
    fn below_root(&self, mut whole: Steps) -> Outcome<Steps> {
        let length =
            self.roots.iter().find_map(|root| self.starts_with(&whole.steps, root).then_some(root.len()));
        whole.steps.drain(..length.ok_or(Fault::Outside)?);
        whole.dir_only |= whole.steps.is_empty();
        Ok(whole)
    }

    fn starts_with(&self, steps: &[Step], names: &[OsString]) -> bool {
        steps.len() >= names.len()
            && steps.iter().zip(names).all(|(step, name)| match step {
                Step::Up => false,
                Step::Down(found) => self.same_name(found, name),
            })
    }

    /// Whether two names are one to the file system.
    pub(crate) fn same_name(&self, a: &OsStr, b: &OsStr) -> bool {
        a == b || (self.folds && fold(a) == fold(b))
    }

    /// Whether the names of `path` begin with all those of `start`.
    pub(crate) fn begins<'a>(&self, path: impl IntoIterator<Item = &'a OsStr>, start: &[OsString]) -> bool {
        let mut path = path.into_iter();
        start.iter().all(|name| path.next().is_some_and(|found| self.same_name(found, name)))
    }
}

fn fold(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase()
}

fn is_absolute(path: &OsStr, flavor: Flavor) -> bool {
    let bytes = path.as_encoded_bytes();
    match flavor {
        Flavor::Unix { .. } => bytes.starts_with(b"/"),
        Flavor::Windows => matches!(bytes, [b'/' | b'\\', ..] | [_, b':', ..]),
    }
}

/// Steps of the text; a drive (`C:`) is a name like others.
fn split(path: &OsStr, flavor: Flavor) -> Steps {
    let mut steps = Steps { steps: Vec::new(), dir_only: path.is_empty() };
    for name in split_names(path, flavor) {
        let is_dot = name.is_empty() || name == ".";
        steps.dir_only = is_dot || name == "..";
        if name == ".." {
            steps.steps.push(Step::Up);
        } else if !is_dot {
            steps.steps.push(Step::Down(name));
        }
    }
    steps
}

#[cfg(unix)]
fn split_names(path: &OsStr, _flavor: Flavor) -> Vec<OsString> {
    use std::os::unix::ffi::OsStrExt;
    path.as_bytes().split(|byte| *byte == b'/').map(|name| OsStr::from_bytes(name).to_owned()).collect()
}

#[cfg(windows)]
fn split_names(path: &OsStr, _flavor: Flavor) -> Vec<OsString> {
    use std::os::windows::ffi::{OsStrExt, OsStringExt};
    let wide: Vec<u16> = path.encode_wide().collect();
    wide.split(|unit| *unit == u16::from(b'/') || *unit == u16::from(b'\\'))
        .map(OsString::from_wide)
        .collect()
}

/// The names of an absolute path without `..`; a drive counts as a name.
pub(crate) fn names_of(path: &Path) -> Vec<OsString> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Prefix(prefix) => names.push(prefix.as_os_str().to_owned()),
            Component::Normal(name) => names.push(name.to_owned()),
            Component::RootDir | Component::CurDir | Component::ParentDir => {}
        }
    }
    names
}

/// A path as text. What is not UTF-8 is written `\xNN`, so that two names never become one by it.
pub(crate) fn text(path: &OsStr) -> String {
    if let Some(text) = path.to_str() {
        return text.to_owned();
    }
    let mut shown = String::new();
    for chunk in path.as_encoded_bytes().utf8_chunks() {
        shown.push_str(chunk.valid());
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn anchor(folds: bool) -> Anchor {
        let names = |path: &str| names_of(Path::new(path));
        Anchor {
            roots: vec![names("/home/u/work"), names("/home/alias/work")],
            home: Some(names("/home/u")),
            folds,
            flavor: Flavor::Unix { max_bytes: 4096, portable: false },
        }
    }

    fn shown(path: &str, folds: bool) -> Result<String, JailError> {
        let steps = anchor(folds).parse(path)?;
        let names = steps.steps.iter().map(|step| match step {
            Step::Up => "..".to_owned(),
            Step::Down(name) => text(name),
        });
        Ok(names.collect::<Vec<_>>().join("/") + if steps.dir_only { "/" } else { "" })
    }

    #[test]
    fn paths_become_steps_from_the_root() {
        for (path, expected) in [
            ("a/b", "a/b"),
            ("./a//b/", "a/b/"),
            ("", "/"),
            (".", "/"),
            ("a/..", "a/../"),
            ("/home/u/work/a", "a"),
            ("/home//u/./work", "/"),
            ("/home/alias/work/x/../y", "x/../y"),
            ("~/work/a", "a"),
            ("~work", "~work"),
            ("a/~", "a/~"),
        ] {
            assert_eq!(shown(path, false).unwrap(), expected, "{path}");
        }
    }

    #[test]
    fn absolute_paths_outside_are_outside_whatever_they_hold() {
        for path in [
            "/",
            "/etc/passwd",
            "/home/u",
            "/home/u/workshop/a",
            "~",
            "~/other",
            "/home/u/x/../work/a",
            "/Home/u/work",
        ] {
            assert!(matches!(shown(path, false), Err(JailError::OutsideRoot { .. })), "{path}");
        }
        assert_eq!(shown("/Home/U/WORK/a", true).unwrap(), "a");
    }

    #[test]
    fn names_that_are_not_utf8_stay_distinct() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(text(OsStr::from_bytes(b"a\xffb")), "a\\xffb");
        assert_ne!(text(OsStr::from_bytes(b"\xfe")), text(OsStr::from_bytes(b"\xff")));
    }
}
