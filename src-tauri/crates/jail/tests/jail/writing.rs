use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use jail::{FileOp, JailError, RootDir, RootOptions, Walker};

use crate::support::*;

fn mode(world: &World, path: &str) -> u32 {
    fs::metadata(world.at(path)).unwrap().mode() & 0o7777
}

#[test]
fn a_file_is_written_whole_and_nothing_else_is_left() {
    on_each_walker(|world| {
        world.write("new", "first").unwrap();
        world.write("new", "second").unwrap();
        assert_eq!(world.text("new"), "second");
        assert_eq!(world.names(""), ["new"]);
        assert_eq!(mode(world, "new") & !0o644, 0, "0644 less the umask");
    });
}

#[test]
fn mode_and_owner_of_a_replaced_file_are_kept() {
    on_each_walker(|world| {
        world.put("script", "old");
        fs::set_permissions(world.at("script"), fs::Permissions::from_mode(0o751)).unwrap();
        world.write("script", "new").unwrap();
        assert_eq!(mode(world, "script"), 0o751);
        if !is_root() {
            return skip("only root gives files away");
        }
        std::os::unix::fs::chown(world.at("script"), Some(4321), Some(1234)).unwrap();
        world.write("script", "newer").unwrap();
        let meta = fs::metadata(world.at("script")).unwrap();
        assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o7777), (4321, 1234, 0o751));
    });
}

#[test]
fn a_read_only_file_is_not_replaced() {
    on_each_walker(|world| {
        if is_root() {
            return skip("root writes read-only files");
        }
        world.put("fixed", "old");
        fs::set_permissions(world.at("fixed"), fs::Permissions::from_mode(0o444)).unwrap();
        assert_err!(world.write("fixed", "new"), JailError::Io { .. });
        assert_eq!(world.text("fixed"), "old");
    });
}

#[test]
fn a_link_inside_is_written_through() {
    on_each_walker(|world| {
        world.put("a/real", "old");
        world.link("a/real", "link");
        world.link("a/to-be", "dangling");
        world.link(world.at("a/real"), "absolute");
        world.write("link", "new").unwrap();
        assert_eq!(world.text("a/real"), "new");
        world.write("absolute", "newer").unwrap();
        assert_eq!(world.text("a/real"), "newer");
        world.write("dangling", "made").unwrap();
        assert_eq!(world.text("a/to-be"), "made");
        for link in ["link", "dangling", "absolute"] {
            assert!(fs::symlink_metadata(world.at(link)).unwrap().is_symlink(), "{link} stays a link");
        }
    });
}

#[test]
fn a_dangling_link_to_the_outside_makes_nothing() {
    on_each_walker(|world| {
        world.link(world.outside.join("new"), "file");
        world.link(world.outside.join("dir"), "dir");
        assert_err!(world.write("file", "x"), JailError::OutsideRoot { .. });
        assert_err!(world.root.write("dir/x", b"x", true, LIMIT), JailError::OutsideRoot { .. });
        world.assert_outside_is_whole();
    });
}

#[test]
fn parents_are_made_only_when_asked_and_only_inside() {
    on_each_walker(|world| {
        assert_err!(world.write("a/b/c", "x"), JailError::NotFound { .. });
        assert!(world.names("").is_empty());
        world.root.write("a/b/c", b"x", true, LIMIT).unwrap();
        assert_eq!(world.text("a/b/c"), "x");
        assert_err!(world.root.write("nope/../../../x", b"x", true, LIMIT), JailError::OutsideRoot { .. });
        assert_err!(world.root.write("nope/../x", b"x", true, LIMIT), JailError::NotFound { .. });
        assert_err!(world.root.write("a/b/c/d", b"x", true, LIMIT), JailError::NotADirectory { .. });
        assert_err!(world.root.write("new/dir/", b"x", true, LIMIT), JailError::NotAFile { .. });
        assert_eq!(world.names(""), ["a"]);
        world.link("later/on", "ahead");
        world.root.write("ahead/file", b"x", true, LIMIT).unwrap();
        assert_eq!(world.text("later/on/file"), "x");
    });
}

#[test]
fn more_than_the_limit_is_not_written() {
    on_each_walker(|world| {
        world.put("file", "old");
        let result = world.root.write("file", b"123456", false, 5);
        assert_err!(result, JailError::TooLarge { limit: 5, attempted: 6, op: FileOp::Write, .. });
        assert_eq!(world.text("file"), "old");
        assert!(world.root.write("file", b"12345", false, 5).is_ok());
    });
}

#[test]
fn a_full_disk_leaves_the_old_content_and_nothing_else() {
    for walker in [Walker::Kernel, Walker::Portable] {
        let folder = tempfile::tempdir().unwrap();
        let Some(_mounted) = Mounted::tmpfs(folder.path(), "128k") else { return };
        let root = RootDir::open_with(folder.path(), &RootOptions::default(), walker).unwrap();
        root.write("file", b"old", false, LIMIT).unwrap();
        let big = vec![b'x'; 1024 * 1024];
        assert_err!(root.write("file", &big, false, LIMIT), JailError::Io { .. });
        assert_err!(root.write("made/on/the/way", &big, true, LIMIT), JailError::Io { .. });
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"old");
        root.write("file", b"new", false, LIMIT).unwrap();
    }
}

#[test]
fn readers_see_the_old_or_the_new_content_never_a_mix() {
    on_each_walker(|world| {
        let (old, new) = ("a".repeat(300_000), "b".repeat(300_000));
        world.write("file", &old).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..60 {
                    world.write("file", if round % 2 == 0 { &new } else { &old }).unwrap();
                }
            });
            while !writer.is_finished() {
                let text = world.text("file");
                assert!(text == old || text == new, "a mix of {} bytes", text.len());
            }
        });
        assert_eq!(world.names(""), ["file"]);
    });
}
