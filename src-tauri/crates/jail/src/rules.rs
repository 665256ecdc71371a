//! What a path may look like, before the kernel sees it. Pure: no file system is touched, and the rules of every OS
//! are tested on every OS.

/// Reason given for a path or a name that is over the system's length.
pub(crate) const TOO_LONG: &str = "it is too long; use shorter names or fewer folders";

const CONTROL: &str = "it has NUL or control characters; leave them out";
const STREAM: &str = "it has a colon, which names a drive or an alternate stream; leave it out";
const PUNCTUATION: &str = "it has one of < > \" | ? *; leave them out";
const DEVICE_PREFIX: &str = "it is a UNC, device or verbatim path; use a plain one";
const DRIVE_RELATIVE: &str = "it is relative to a drive; give the whole path, or one relative to the root";
const BACKSLASH: &str = "it has a backslash, which other systems take for a separator; use /";

/// Whose conventions a path follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// `/` separates, names are free.
    Unix {
        /// Longest path in bytes: `PATH_MAX`.
        max_bytes: usize,
        /// Windows' rules for names all the same, for folders that are shared with Windows.
        portable: bool,
    },
    /// `/` and `\` separate, paths may start with a drive, names are restricted.
    Windows,
}

impl Flavor {
    /// The one of the system we run on.
    pub(crate) const fn native(portable: bool) -> Flavor {
        if cfg!(windows) {
            Flavor::Windows
        } else if cfg!(target_os = "macos") {
            Flavor::Unix { max_bytes: 1024, portable }
        } else {
            Flavor::Unix { max_bytes: 4096, portable }
        }
    }

    /// Whether `c` separates components.
    pub(crate) fn is_separator(self, c: char) -> bool {
        c == '/' || (c == '\\' && self == Flavor::Windows)
    }
}

/// Why a path breaks the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Characters or forms that no path may have.
    Invalid(&'static str),
    /// A component that Windows keeps to itself.
    Reserved(String),
}

/// Longest path on Windows, in UTF-16 units.
const MAX_WIDE: usize = 32_767;

/// Checks `path` against the rules of `flavor`.
pub(crate) fn check(path: &str, flavor: Flavor) -> Result<(), Broken> {
    let too_long = match flavor {
        Flavor::Unix { max_bytes, .. } => path.len() > max_bytes,
        Flavor::Windows => path.encode_utf16().count() > MAX_WIDE,
    };
    if too_long {
        return Err(Broken::Invalid(TOO_LONG));
    }
    if path.contains(char::is_control) {
        return Err(Broken::Invalid(CONTROL));
    }
    match flavor {
        Flavor::Unix { portable: false, .. } => Ok(()),
        Flavor::Unix { portable: true, .. } if path.contains('\\') => Err(Broken::Invalid(BACKSLASH)),
        Flavor::Unix { portable: true, .. } => check_names(path, flavor),
        Flavor::Windows => check_names(without_drive(path)?, flavor),
    }
}

/// Checks one name by Windows' rules.
fn check_names(path: &str, flavor: Flavor) -> Result<(), Broken> {
    for name in path.split(|c| flavor.is_separator(c)).filter(|name| !matches!(*name, "" | "." | "..")) {
        if name.contains(':') {
            return Err(Broken::Invalid(STREAM));
        }
        if name.contains(['<', '>', '"', '|', '?', '*']) {
            return Err(Broken::Invalid(PUNCTUATION));
        }
        if name.ends_with(['.', ' ']) || is_device_name(name) {
            return Err(Broken::Reserved(name.to_owned()));
        }
    }
    Ok(())
}

/// The part of a Windows path behind its drive, which must be followed by a separator.
fn without_drive(path: &str) -> Result<&str, Broken> {
    let separates = |c: char| Flavor::Windows.is_separator(c);
    let mut chars = path.chars();
    match (chars.next(), chars.next(), chars.next()) {
        (Some(a), Some(b), _) if separates(a) && (separates(b) || b == '?') => {
            Err(Broken::Invalid(DEVICE_PREFIX))
        }
        (Some(a), _, _) if separates(a) => Err(Broken::Invalid(DRIVE_RELATIVE)),
        (Some(letter), Some(':'), next) if letter.is_ascii_alphabetic() => match next {
            Some(c) if separates(c) => Ok(&path[2..]),
            _ => Err(Broken::Invalid(DRIVE_RELATIVE)),
        },
        _ => Ok(path),
    }
}

/// `CON`, `com1.txt`, `LPT².log`, `nul .tar.gz`: what Windows opens as a device in any folder.
fn is_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ').to_ascii_uppercase();
    if matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let Some(port) = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT")) else { return false };
    let mut digits = port.chars();
    matches!((digits.next(), digits.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINUX: Flavor = Flavor::Unix { max_bytes: 4096, portable: false };
    const PORTABLE: Flavor = Flavor::Unix { max_bytes: 4096, portable: true };

    fn invalid(path: &str, flavor: Flavor) -> bool {
        matches!(check(path, flavor), Err(Broken::Invalid(_)))
    }

    fn reserved(path: &str, flavor: Flavor) -> bool {
        matches!(check(path, flavor), Err(Broken::Reserved(_)))
    }

    #[test]
    fn control_characters_are_invalid_everywhere() {
        for flavor in [LINUX, PORTABLE, Flavor::Windows] {
            for path in ["a\0b", "a\nb", "\u{1b}[2J", "tab\there", "del\u{7f}", "c1\u{85}"] {
                assert!(invalid(path, flavor), "{path:?} {flavor:?}");
            }
        }
    }

    #[test]
    fn length_counts_in_the_units_of_the_system() {
        assert!(check(&"a/".repeat(2048), LINUX).is_ok());
        assert!(invalid(&"a".repeat(4097), LINUX));
        assert!(invalid(&"é".repeat(2049), LINUX));
        let mac = Flavor::Unix { max_bytes: 1024, portable: false };
        assert!(check(&"a".repeat(1024), mac).is_ok());
        assert!(invalid(&"a".repeat(1025), mac));
        assert!(check(&"é".repeat(32_767), Flavor::Windows).is_ok());
        assert!(invalid(&"a".repeat(32_768), Flavor::Windows));
    }

    #[test]
    fn device_names_are_reserved_with_any_extension_and_case() {
        for name in [
            "CON",
            "con",
            "Prn",
            "aux",
            "NUL",
            "nul.txt",
            "NUL.tar.gz",
            "com0",
            "COM9",
            "lpt1.log",
            "COM¹",
            "lpt²",
            "Lpt³.x",
            "CONIN$",
            "conout$",
            "con .txt",
            "aux  .c",
        ] {
            for path in [name.to_owned(), format!("a/{name}"), format!("{name}/a")] {
                assert!(reserved(&path, Flavor::Windows), "{path}");
                assert!(reserved(&path, PORTABLE), "{path}");
                assert!(check(&path, LINUX).is_ok(), "{path}");
            }
        }
    }

    #[test]
    fn trailing_dots_and_spaces_are_reserved() {
        for name in ["a.", "a ", "a. .", "a...", " ", "... "] {
            assert!(reserved(name, Flavor::Windows), "{name:?}");
            assert!(reserved(name, PORTABLE), "{name:?}");
        }
    }

    #[test]
    fn names_that_only_look_reserved_are_fine() {
        for name in [
            "console",
            "COM",
            "COM10",
            "com",
            "LPTX",
            "nulls.txt",
            ".con",
            "CONIN",
            ".hidden",
            "a.b",
            " a",
            "COM¹²",
        ] {
            assert!(check(name, Flavor::Windows).is_ok(), "{name}");
        }
    }

    #[test]
    fn streams_and_punctuation_are_invalid_on_windows() {
        for path in ["a:b", "a::$DATA", "dir/a:b", "a<b", "a>b", "a\"b", "a|b", "a?b", "a*b"] {
            assert!(invalid(path, Flavor::Windows), "{path}");
            assert!(invalid(path, PORTABLE), "{path}");
            assert!(check(path, LINUX).is_ok(), "{path}");
        }
    }

    #[test]
    fn unc_device_verbatim_and_drive_relative_paths_are_invalid_on_windows() {
        for path in [
            r"\\?\C:\x",
            r"\\.\C:",
            r"\??\C:\x",
            r"\\server\share\x",
            "//server/share",
            r"/\server\share",
            "C:x",
            "c:",
            r"\x",
            "/x",
            "//?/C:/x",
            "//./pipe/x",
            "C:..",
        ] {
            assert!(invalid(path, Flavor::Windows), "{path}");
        }
        for path in [r"C:\x", "c:/x/y", r"a\b", "a/b", "..", r"..\a"] {
            assert!(check(path, Flavor::Windows).is_ok(), "{path}");
        }
    }

    #[test]
    fn a_backslash_is_a_character_on_unix_and_refused_where_names_must_be_portable() {
        assert!(check(r"a\b", LINUX).is_ok());
        assert!(invalid(r"a\b", PORTABLE));
    }

    proptest! {
        #[test]
        fn no_path_panics_and_portable_paths_are_fine_on_windows(path in "\\PC{0,40}") {
            let _ = check(&path, Flavor::Windows);
            if !path.starts_with('/') && check(&path, PORTABLE).is_ok() {
                prop_assert!(check(&path, Flavor::Windows).is_ok());
            }
            if check(&path, PORTABLE).is_ok() {
                prop_assert!(check(&path, LINUX).is_ok());
            }
        }

        #[test]
        fn a_name_that_passes_has_nothing_that_windows_rewrites(name in "[A-Za-z0-9$. :¹²³\\\\]{1,12}") {
            if !matches!(name.as_str(), "." | "..") && check(&name, PORTABLE).is_ok() {
                prop_assert!(!name.ends_with(['.', ' ']) && !name.contains([':', '\\']));
            }
        }
    }
}
