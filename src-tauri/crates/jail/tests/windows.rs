//! What the jail promises on Windows, where names are opened relative to handles and reparse points looked at.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]
#![cfg(windows)]

use std::fs;
use std::path::PathBuf;

use jail::{DeleteOptions, JailError, Kind, ListOptions, ReadRange, RootDir, RootOptions};

const LIMIT: u64 = 1 << 20;

struct World {
    root: RootDir,
    base: PathBuf,
    _folder: tempfile::TempDir,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().to_owned();
    fs::create_dir_all(base.join("home/work")).unwrap();
    fs::create_dir(base.join("outside")).unwrap();
    fs::write(base.join("outside/secret"), "SECRET").unwrap();
    let options = RootOptions { home: Some(base.join("home")), ..RootOptions::default() };
    World { root: RootDir::open(&base.join("home/work"), &options).unwrap(), base, _folder: folder }
}

impl World {
    fn write(&self, path: &str, content: &str) -> Result<(), JailError> {
        self.root.write(path, content.as_bytes(), true, LIMIT)
    }

    fn text(&self, path: &str) -> String {
        String::from_utf8(self.root.read(path, ReadRange::default(), LIMIT).unwrap().bytes).unwrap()
    }
}

#[test]
fn files_are_written_read_listed_moved_and_deleted() {
    let world = world();
    world.write("a/b.txt", "one").unwrap();
    world.write(r"a\b.txt", "two").unwrap();
    world.write("a/c/d", "three").unwrap();
    assert_eq!(world.text(r"a\c\d"), "three");
    assert_eq!(world.text("a/../A/B.TXT"), "two");
    let absolute = world.base.join(r"home\work\a\b.txt");
    assert_eq!(world.text(absolute.to_str().unwrap()), "two");
    let options = ListOptions { recursive: true, ..ListOptions::default() };
    let names: Vec<_> = world
        .root
        .list("", &options, &|| false)
        .unwrap()
        .entries
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["a", "b.txt", "c", "d"]);
    let stat = world.root.stat("a/b.txt", true).unwrap().metadata.unwrap();
    assert_eq!((stat.kind, stat.size), (Kind::File, 3));
    world.root.rename("a/b.txt", "b.txt", false, &|| false).unwrap();
    world.write("old/x", "x").unwrap();
    assert!(matches!(world.root.rename("a", "old", false, &|| false), Err(JailError::Exists { .. })));
    world.root.rename("a", "old", true, &|| false).unwrap();
    assert_eq!(world.text("old/c/d"), "three");
    let delete = DeleteOptions::default();
    assert!(matches!(world.root.delete("old", &delete, &|| false), Err(JailError::NotEmpty { .. })));
    world.root.delete("old", &DeleteOptions { recursive: true, ..delete }, &|| false).unwrap();
    let left: Vec<_> =
        fs::read_dir(world.root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["b.txt"]);
}

#[test]
fn what_leads_outside_is_outside() {
    let world = world();
    for path in ["..", r"..\..\outside\secret", "nope/../../../x", r"C:\Windows\win.ini", "~"] {
        assert!(matches!(world.root.stat(path, true), Err(JailError::OutsideRoot { .. })), "{path}");
        assert!(matches!(world.write(path, "x"), Err(JailError::OutsideRoot { .. })), "{path}");
    }
    for path in [r"\\?\C:\x", r"\\server\share\x", "C:x", "a:b", "a*", r"\x"] {
        assert!(matches!(world.write(path, "x"), Err(JailError::InvalidChars { .. })), "{path}");
    }
    for path in ["CON", "nul.txt", "a.", "a "] {
        assert!(matches!(world.write(path, "x"), Err(JailError::ReservedName { .. })), "{path}");
    }
    assert_eq!(fs::read_dir(world.root.path()).unwrap().count(), 0);
}

#[test]
fn links_are_followed_inside_only() {
    use std::os::windows::fs::{symlink_dir, symlink_file};
    let world = world();
    world.write("a/file", "inside").unwrap();
    let work = world.base.join(r"home\work");
    // To make one takes a right that not everybody has.
    let made = symlink_dir(world.base.join("outside"), work.join("out"));
    if made.is_err() || fs::symlink_metadata(work.join("out")).is_err() {
        return eprintln!("skipped: links cannot be made here");
    }
    symlink_dir("a", work.join("in")).unwrap();
    symlink_dir(work.join("a"), work.join("absolute")).unwrap();
    symlink_file(r"..\..\outside\secret", work.join("secret")).unwrap();
    assert_eq!(world.text("in/file"), "inside");
    assert_eq!(world.text("absolute/file"), "inside");
    for path in ["out/secret", "secret"] {
        let read = world.root.read(path, ReadRange::default(), LIMIT);
        assert!(matches!(read, Err(JailError::OutsideRoot { .. })), "{path}: {read:?}");
        assert!(matches!(world.write(path, "x"), Err(JailError::OutsideRoot { .. })), "{path}");
    }
    let recursive = DeleteOptions { recursive: true, ..DeleteOptions::default() };
    world.root.delete("out", &recursive, &|| false).unwrap();
    assert_eq!(fs::read_to_string(world.base.join("outside/secret")).unwrap(), "SECRET");
}

#[test]
fn a_command_folder_cannot_be_renamed_while_it_is_held() {
    let world = world();
    world.write("a/b/file", "x").unwrap();
    let held = world.root.working_dir(Some("a/b")).unwrap();
    assert!(held.path.ends_with(r"work\a\b"));
    drop(held);
    assert!(matches!(world.root.working_dir(Some("a/b/file")), Err(JailError::NotADirectory { .. })));
}
