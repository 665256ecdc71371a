//! Which process holds a state folder's lock, by what the OS says. A file could be written by anybody.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod os;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod os;
#[cfg(windows)]
#[path = "windows.rs"]
mod os;

pub(super) use os::{Claim, of};

/// Whether two programs are of one installation: the same file, or the app and the headless program, side by side.
#[cfg(any(target_os = "linux", windows))]
fn of_one_installation(its: &std::path::Path, ours: &std::path::Path) -> bool {
    const OURS: [&str; 2] = ["deskhand", "deskhand-app"];
    let same = |a: &std::ffi::OsStr, b: &std::ffi::OsStr| {
        if cfg!(windows) { a.eq_ignore_ascii_case(b) } else { a == b }
    };
    let is_ours = |program: &std::path::Path| {
        program.file_stem().is_some_and(|stem| OURS.iter().any(|name| same(stem, name.as_ref())))
    };
    let folder = |program: &std::path::Path| program.parent().map(|folder| folder.as_os_str().to_owned());
    same(its.as_os_str(), ours.as_os_str())
        || is_ours(its)
            && is_ours(ours)
            && matches!((folder(its), folder(ours)), (Some(its), Some(ours)) if same(&its, &ours))
}

#[cfg(all(test, any(target_os = "linux", windows)))]
mod tests {
    use std::path::Path;

    use super::of_one_installation;

    #[test]
    fn the_app_and_the_headless_program_side_by_side_are_one_installation() {
        let one = |a: &str, b: &str| of_one_installation(Path::new(a), Path::new(b));
        assert!(one("/usr/bin/deskhand-app", "/usr/bin/deskhand"));
        assert!(one("/tmp/some-test", "/tmp/some-test"));
        assert!(!one("/tmp/deskhand", "/usr/bin/deskhand"));
        assert!(!one("/usr/bin/sh", "/usr/bin/deskhand"));
    }
}
