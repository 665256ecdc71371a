//! Which folders belong to the operating system. Pure, so that each system's rules are tested on every system.

/// Trees of which nothing may be shared.
#[cfg(any(not(windows), test))]
const UNIX_TREES: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    "/run",
    "/snap",
    "/var/run",
    "/var/log",
    "/var/spool",
    "/var/db",
    "/var/mail",
    "/System",
    "/Library",
    "/cores",
    "/private/etc",
    "/private/var/db",
    "/private/var/run",
    "/private/var/log",
    "/private/var/root",
];

/// Parts of those trees that people put their own files in: mounted media, and what they built themselves.
#[cfg(any(not(windows), test))]
const UNIX_LENT: &[&str] = &["/run/media", "/usr/local", "/usr/src"];

/// Folders that may not be shared themselves; folders inside may.
#[cfg(any(not(windows), test))]
const UNIX_SINGLE: &[&str] = &[
    "/home",
    "/Users",
    "/var",
    "/var/lib",
    "/var/tmp",
    "/var/cache",
    "/tmp",
    "/opt",
    "/media",
    "/Volumes",
    "/private",
    "/private/var",
    "/private/tmp",
    "/Applications",
    "/lost+found",
    "/run/media",
    "/usr/local",
    "/usr/src",
];

/// Top-level folders of a drive that are Windows' own.
const WINDOWS_TREES: &[&str] = &[
    "windows",
    "programdata",
    "recovery",
    "system volume information",
    "$recycle.bin",
    "documents and settings",
    "perflogs",
    "$winreagent",
];

/// What a path is to the system, or None when it is free to be shared as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    WholeFileSystem,
    HomeParent,
    System,
}

/// Judges an absolute canonical Unix path.
#[cfg(any(not(windows), test))]
pub(crate) fn unix_claim(path: &str) -> Option<Claim> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let path = format!("/{}", names.join("/"));
    match names.as_slice() {
        [] => return Some(Claim::WholeFileSystem),
        ["home" | "Users"] => return Some(Claim::HomeParent),
        // A Windows drive as WSL mounts it.
        ["mnt", drive, rest @ ..] if drive.len() == 1 => return windows_top(rest),
        _ => {}
    }
    let below =
        |tree: &str| path == tree || path.strip_prefix(tree).is_some_and(|rest| rest.starts_with('/'));
    let system = UNIX_SINGLE.contains(&path.as_str())
        || (UNIX_TREES.iter().any(|tree| below(tree)) && !UNIX_LENT.iter().any(|tree| below(tree)));
    system.then_some(Claim::System)
}

/// Judges an absolute Windows path (`C:\…`). `system_drive` is the letter that Windows runs from.
#[cfg(any(windows, test))]
pub(crate) fn windows_claim(path: &str, system_drive: char) -> Option<Claim> {
    let names: Vec<&str> = path.split(['\\', '/']).filter(|name| !name.is_empty()).collect();
    match names.as_slice() {
        [] => Some(Claim::WholeFileSystem),
        [drive] if drive.chars().next().is_some_and(|c| c.eq_ignore_ascii_case(&system_drive)) => {
            Some(Claim::WholeFileSystem)
        }
        [_, rest @ ..] => windows_top(rest),
    }
}

fn windows_top(names: &[&str]) -> Option<Claim> {
    let top = names.first()?.to_lowercase();
    if top == "users" && names.len() == 1 {
        return Some(Claim::HomeParent);
    }
    let system = WINDOWS_TREES.contains(&top.as_str()) || top.starts_with("program files");
    system.then_some(Claim::System)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_folders_of_unix_are_claimed() {
        for path in [
            "/etc",
            "/etc/ssh",
            "/usr",
            "/usr/lib/x",
            "/proc/1",
            "/sys",
            "/dev/shm",
            "/run/user/1000",
            "/System/x",
            "/var/log/a",
        ] {
            assert_eq!(unix_claim(path), Some(Claim::System), "{path}");
        }
        for path in ["/var", "/tmp", "/private/tmp", "/opt", "/media", "/Volumes", "/usr/local", "/run/media"]
        {
            assert_eq!(unix_claim(path), Some(Claim::System), "{path}");
        }
        assert_eq!(unix_claim("/"), Some(Claim::WholeFileSystem));
        assert_eq!(unix_claim("/home"), Some(Claim::HomeParent));
        assert_eq!(unix_claim("/Users"), Some(Claim::HomeParent));
    }

    #[test]
    fn folders_of_people_are_free() {
        for path in [
            "/home/u",
            "/home/u/work",
            "/Users/u",
            "/root",
            "/tmp/x",
            "/srv/www",
            "/mnt/data",
            "/media/u/stick",
            "/run/media/u/stick",
            "/opt/tool",
            "/var/lib/deskhand",
            "/Volumes/Stick",
            "/private/var/folders/ab/T",
            "/usr/local/src",
            "/etcetera",
            "/mnt/c/Users/u",
            "/mnt/d",
        ] {
            assert_eq!(unix_claim(path), None, "{path}");
        }
    }

    #[test]
    fn windows_folders_are_claimed_on_windows_and_as_wsl_mounts_them() {
        for rest in [
            "Windows",
            "windows/system32",
            "Program Files",
            "Program Files (x86)/x",
            "ProgramData",
            "$Recycle.Bin",
            "Recovery",
        ] {
            assert_eq!(
                windows_claim(&format!("C:\\{}", rest.replace('/', "\\")), 'C'),
                Some(Claim::System),
                "{rest}"
            );
            assert_eq!(unix_claim(&format!("/mnt/c/{rest}")), Some(Claim::System), "{rest}");
        }
        assert_eq!(windows_claim("C:\\", 'c'), Some(Claim::WholeFileSystem));
        assert_eq!(windows_claim("C:\\Users", 'C'), Some(Claim::HomeParent));
        for path in ["D:\\", "C:\\Users\\u", "C:\\work", "C:\\Users\\u\\Windows"] {
            assert_eq!(windows_claim(path, 'C'), None, "{path}");
        }
    }
}
