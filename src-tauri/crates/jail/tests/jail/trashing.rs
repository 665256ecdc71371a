#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;

use jail::{DeleteOptions, JailError, RootDir, RootOptions, Walker};

use crate::support::*;

/// The trash that a deletion in this world goes to.
fn trash(world: &World) -> PathBuf {
    match std::env::var_os("XDG_DATA_HOME") {
        Some(data) => PathBuf::from(data).join("Trash"),
        None => world.home.join(".local/share/Trash"),
    }
}

fn discard(world: &World, path: &str, recursive: bool) -> Result<(), JailError> {
    world.root.delete(path, &DeleteOptions { recursive, trash: true, ..DeleteOptions::default() }, &|| false)
}

#[test]
fn a_deletion_goes_to_the_trash_with_its_record() {
    on_each_walker(|world| {
        if std::env::var_os("XDG_DATA_HOME").is_some() {
            return skip("XDG_DATA_HOME names somebody's real trash");
        }
        world.put("a/my file", "precious");
        world.put("b/my file", "another");
        discard(world, "a/my file", false).unwrap();
        discard(world, "b/my file", false).unwrap();
        let trash = trash(world);
        assert_eq!(names(&trash.join("files")), ["my file", "my file.2"]);
        assert_eq!(names(&trash.join("info")), ["my file.2.trashinfo", "my file.trashinfo"]);
        assert_eq!(fs::read_to_string(trash.join("files/my file")).unwrap(), "precious");
        let record = fs::read_to_string(trash.join("info/my file.trashinfo")).unwrap();
        let original = world.at("a/my file").to_str().unwrap().replace(' ', "%20");
        assert!(
            record.starts_with("[Trash Info]\n") && record.contains(&format!("Path={original}\n")),
            "{record}"
        );
    });
}

#[test]
fn folders_and_links_go_to_the_trash_as_they_are() {
    on_each_walker(|world| {
        if std::env::var_os("XDG_DATA_HOME").is_some() {
            return skip("XDG_DATA_HOME names somebody's real trash");
        }
        world.put("full/a/b", "x");
        fs::create_dir(world.at("empty")).unwrap();
        world.link(&world.outside, "link");
        assert_err!(discard(world, "full", false), JailError::NotEmpty { .. });
        discard(world, "full", true).unwrap();
        discard(world, "empty", false).unwrap();
        discard(world, "link", false).unwrap();
        assert!(world.names("").is_empty());
        let files = trash(world).join("files");
        assert_eq!(fs::read_to_string(files.join("full/a/b")).unwrap(), "x");
        assert_eq!(fs::read_link(files.join("link")).unwrap(), world.outside);
        world.assert_outside_is_whole();
    });
}

#[test]
fn on_a_volume_of_its_own_the_volumes_trash_takes_it() {
    for walker in [Walker::Kernel, Walker::Portable] {
        let folder = tempfile::tempdir().unwrap();
        let Some(_mounted) = Mounted::tmpfs(folder.path(), "1m") else { return };
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("deep/work/sub")).unwrap();
        fs::write(folder.path().join("deep/work/sub/file"), "precious").unwrap();
        let options = RootOptions { home: Some(home.path().to_owned()), ..RootOptions::default() };
        let root = RootDir::open_with(&folder.path().join("deep/work"), &options, walker).unwrap();
        let delete = DeleteOptions { trash: true, ..DeleteOptions::default() };
        root.delete("sub/file", &delete, &|| false).unwrap();
        let trash = folder.path().join(format!(".Trash-{}", rustix::process::geteuid().as_raw()));
        assert_eq!(fs::read_to_string(trash.join("files/file")).unwrap(), "precious");
        let record = fs::read_to_string(trash.join("info/file.trashinfo")).unwrap();
        assert!(record.contains("Path=deep/work/sub/file\n"), "{record}");
    }
}

#[test]
fn without_a_trash_nothing_is_deleted() {
    for walker in [Walker::Kernel, Walker::Portable] {
        let folder = tempfile::tempdir().unwrap();
        let Some(_mounted) = Mounted::tmpfs(folder.path(), "1m") else { return };
        let home = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let trash = folder.path().join(format!(".Trash-{}", rustix::process::geteuid().as_raw()));
        // Somebody's trap: the volume's trash leads elsewhere.
        std::os::unix::fs::symlink(outside.path(), &trash).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        fs::write(folder.path().join("work/file"), "precious").unwrap();
        let options = RootOptions { home: Some(home.path().to_owned()), ..RootOptions::default() };
        let root = RootDir::open_with(&folder.path().join("work"), &options, walker).unwrap();
        let delete = DeleteOptions { trash: true, ..DeleteOptions::default() };
        assert_err!(root.delete("file", &delete, &|| false), JailError::NoTrash { .. });
        assert_eq!(fs::read_to_string(folder.path().join("work/file")).unwrap(), "precious");
        assert!(names(outside.path()).is_empty());
        root.delete("file", &DeleteOptions::default(), &|| false).unwrap();
    }
}

#[test]
fn the_trash_itself_is_not_thrown_into_itself() {
    for walker in [Walker::Kernel, Walker::Portable] {
        if std::env::var_os("XDG_DATA_HOME").is_some() {
            return skip("XDG_DATA_HOME names somebody's real trash");
        }
        let world = World::home_root(walker, |_| {});
        world.put("file", "x");
        discard(&world, "file", false).unwrap();
        assert_err!(discard(&world, ".local", true), JailError::NoTrash { .. });
        assert_eq!(fs::read_to_string(trash(&world).join("files/file")).unwrap(), "x");
        assert_eq!(names(&trash(&world).join("info")), ["file.trashinfo"]);
    }
}
