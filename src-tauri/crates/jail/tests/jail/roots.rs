use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use jail::{JailError, RootDir, RootOptions, RootRefusal, check_root, list_directories};

use crate::support::*;

fn refusal(path: &Path, options: &RootOptions) -> Option<RootRefusal> {
    match (check_root(path, options), RootDir::open(path, options)) {
        (Ok(_), Ok(_)) => None,
        (Err(JailError::RootRefused(one)), Err(JailError::RootRefused(two))) if one == two => Some(one),
        (one, two) => panic!("{path:?}: {one:?} {two:?}"),
    }
}

#[test]
fn the_system_and_what_holds_homes_are_no_roots() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap().join("homes/u");
    fs::create_dir_all(home.join("work")).unwrap();
    let options = RootOptions { home: Some(home.clone()), ..RootOptions::default() };
    assert_eq!(refusal(Path::new("/"), &options), Some(RootRefusal::FileSystemRoot));
    assert_eq!(refusal(home.parent().unwrap(), &options), Some(RootRefusal::HomeParent));
    assert_eq!(refusal(folder.path(), &options), Some(RootRefusal::HomeParent));
    for path in ["/etc", "/usr", "/usr/share", "/proc", "/dev", "/var"] {
        assert_eq!(
            refusal(Path::new(path), &RootOptions::default()),
            Some(RootRefusal::SystemFolder),
            "{path}"
        );
    }
    assert_eq!(refusal(Path::new("work"), &options), Some(RootRefusal::NotAbsolute));
    assert_eq!(refusal(&home.join("work"), &options), None);
}

#[test]
fn a_link_is_no_root_and_a_link_above_is_resolved() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("real/work")).unwrap();
    symlink(base.join("real/work"), base.join("link")).unwrap();
    symlink(base.join("real"), base.join("above")).unwrap();
    let options = RootOptions::default();
    assert_eq!(refusal(&base.join("link"), &options), Some(RootRefusal::Link));
    assert_eq!(refusal(&base.join("link/"), &options), Some(RootRefusal::Link));
    assert_eq!(refusal(&base.join("link/."), &options), Some(RootRefusal::Link));
    let root = RootDir::open(&base.join("above/work"), &options).unwrap();
    assert_eq!(root.path(), base.join("real/work"));
    root.write(base.join("above/work/file").to_str().unwrap(), b"x", false, LIMIT).unwrap();
    assert!(base.join("real/work/file").exists());
    fs::write(base.join("file"), "").unwrap();
    assert_eq!(refusal(&base.join("file"), &options), Some(RootRefusal::NotADirectory));
    assert_err!(check_root(&base.join("nope"), &options), JailError::NotFound { .. });
}

#[test]
fn a_name_that_cannot_be_sent_is_no_root() {
    let folder = tempfile::tempdir().unwrap();
    for name in [&b"bad\xff"[..], b"line\nbreak"] {
        let path = folder.path().join(non_utf8(name));
        fs::create_dir(&path).unwrap();
        assert_eq!(refusal(&path, &RootOptions::default()), Some(RootRefusal::UnsendableName));
    }
}

#[test]
fn a_whole_home_is_told_from_a_folder_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("u");
    fs::create_dir_all(home.join("work")).unwrap();
    let options = RootOptions { home: Some(home.clone()), ..RootOptions::default() };
    assert!(RootDir::open(&home, &options).unwrap().is_whole_home());
    assert!(!RootDir::open(&home.join("work"), &options).unwrap().is_whole_home());
}

#[test]
fn a_root_is_identified_by_device_and_inode() {
    let folder = tempfile::tempdir().unwrap();
    let root = RootDir::open(folder.path(), &RootOptions::default()).unwrap();
    let meta = fs::metadata(folder.path()).unwrap();
    assert_eq!((root.identity().device, root.identity().inode), (meta.dev(), meta.ino()));
    root.verify().unwrap();
}

#[test]
fn an_unmounted_root_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::tmpfs(folder.path(), "1m") else { return };
    let root = RootDir::open(folder.path(), &RootOptions::default()).unwrap();
    root.write("file", b"x", false, LIMIT).unwrap();
    drop(mounted);
    assert_err!(root.verify(), JailError::RootGone);
    assert_err!(root.write("file", b"x", false, LIMIT), JailError::RootGone);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn folders_to_choose_from_are_real_named_and_usable() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b", "A", "c", ".hidden"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    fs::create_dir(folder.path().join(non_utf8(b"bad\xff"))).unwrap();
    fs::create_dir(folder.path().join("line\nbreak")).unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    symlink("b", folder.path().join("link")).unwrap();
    let names = |limit| {
        let (entries, truncated) = list_directories(folder.path(), limit).unwrap();
        (entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>(), truncated)
    };
    assert_eq!(names(1000), ([".hidden", "A", "b", "c"].map(String::from).to_vec(), false));
    assert_eq!(names(8), ([".hidden", "A", "b", "c"].map(String::from).to_vec(), false));
    assert!(names(7).1 && names(0) == (vec![], true));
    if is_root() {
        return skip("root may use every folder");
    }
    fs::set_permissions(folder.path().join("c"), fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(names(1000).0, [".hidden", "A", "b"]);
}
