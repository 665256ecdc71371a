use std::fs;
use std::os::unix::fs::PermissionsExt;

use jail::{JailError, Kind};

use crate::support::*;

#[test]
fn files_and_folders_are_moved() {
    on_each_walker(|world| {
        world.put("a/file", "x");
        world.put("dir/deep/y", "y");
        fs::create_dir(world.at("b")).unwrap();
        world.rename("a/file", "b/renamed", false).unwrap();
        assert_eq!(world.text("b/renamed"), "x");
        world.rename("dir/", "b/dir/", false).unwrap();
        assert_eq!(world.text("b/dir/deep/y"), "y");
        assert_eq!(world.names(""), ["a", "b"]);
        assert!(world.names("a").is_empty());
        assert_err!(world.rename("nope", "x", false), JailError::NotFound { ref path } if path == "nope");
        assert_err!(world.rename("b/renamed", "nope/x", false), JailError::NotFound { ref path } if path == "nope/x");
        assert_err!(world.rename("b/renamed", "b/renamed/x", false), JailError::NotADirectory { .. });
    });
}

#[test]
fn what_is_there_is_replaced_only_when_asked() {
    on_each_walker(|world| {
        world.put("a", "new");
        world.put("b", "old");
        assert_err!(world.rename("a", "b", false), JailError::Exists { ref path } if path == "b");
        assert_eq!(world.text("b"), "old");
        world.rename("a", "b", true).unwrap();
        assert_eq!(world.text("b"), "new");
        assert_eq!(world.names(""), ["b"]);
    });
}

#[test]
fn a_full_folder_is_replaced_by_a_folder() {
    on_each_walker(|world| {
        world.put("new/n", "n");
        world.put("old/o/p", "o");
        assert_err!(world.rename("new", "old", false), JailError::Exists { .. });
        world.rename("new", "old", true).unwrap();
        assert_eq!(world.text("old/n"), "n");
        assert_eq!(world.names(""), ["old"]);
        assert_eq!(world.names("old"), ["n"]);
    });
}

#[test]
fn a_folder_and_a_file_do_not_replace_each_other() {
    on_each_walker(|world| {
        world.put("file", "f");
        world.put("dir/x", "d");
        assert_err!(world.rename("file", "dir", true), JailError::Exists { .. });
        assert_err!(world.rename("dir", "file", true), JailError::Exists { .. });
        assert_eq!((world.text("file").as_str(), world.text("dir/x").as_str()), ("f", "d"));
    });
}

#[test]
fn a_file_onto_itself_stays() {
    on_each_walker(|world| {
        world.put("dir/file", "x");
        world.link("dir", "link");
        for path in ["dir/file", "dir/../dir/file", "link/file", "./dir//file"] {
            world.rename("dir/file", path, true).unwrap();
            world.rename(path, "dir/file", true).unwrap();
            assert_err!(world.rename("dir/file", path, false), JailError::Exists { .. });
            assert_eq!(world.text("dir/file"), "x");
        }
        world.rename("dir", "dir", true).unwrap();
        world.rename("dir/.", "link/../dir", true).unwrap();
        assert_eq!(world.text("dir/file"), "x");
    });
}

#[test]
fn a_link_does_not_take_the_place_of_what_it_leads_to() {
    on_each_walker(|world| {
        world.put("dir/file", "precious");
        world.link("file", "dir/near");
        world.link("dir/near", "far");
        for link in ["dir/near", "far"] {
            assert_err!(world.rename(link, "dir/file", true), JailError::IntoItself { .. });
            assert_eq!(world.text("dir/file"), "precious");
        }
        world.rename("far", "dir/near", true).unwrap();
        assert_eq!(world.text("dir/file"), "precious", "the other link made way, its target did not");
    });
}

#[test]
fn of_two_hard_links_the_destination_stays() {
    on_each_walker(|world| {
        world.put("a", "x");
        fs::hard_link(world.at("a"), world.at("b")).unwrap();
        assert_err!(world.rename("a", "b", false), JailError::Exists { .. });
        world.rename("a", "b", true).unwrap();
        assert_eq!(world.names(""), ["b"]);
        assert_eq!(world.text("b"), "x");
    });
}

#[test]
fn nothing_goes_into_itself_or_onto_what_contains_it() {
    on_each_walker(|world| {
        world.put("a/b/c", "x");
        world.link("a/b", "link");
        for (src, dst) in [
            ("a", "a/b/new"),
            ("a", "a/new"),
            ("a", "link/new"),
            ("a/b", "a"),
            ("a/b/c", "a"),
            ("a/b/c", "a/b"),
            ("link/c", "a"),
        ] {
            assert_err!(world.rename(src, dst, true), JailError::IntoItself { .. });
            assert_eq!(world.text("a/b/c"), "x", "{src} to {dst}");
        }
        assert_err!(world.rename("a", "a/b/new", false), JailError::IntoItself { .. });
        // A name that begins alike is another name.
        world.rename("a", "ab", false).unwrap();
        assert_eq!(world.text("ab/b/c"), "x");
    });
}

#[test]
fn links_are_moved_and_replaced_themselves() {
    on_each_walker(|world| {
        world.put("file", "x");
        world.put("other", "y");
        world.link(world.outside.join("secret"), "out");
        world.link("file", "in");
        world.rename("out", "moved", false).unwrap();
        assert_eq!(world.root.stat("moved", false).unwrap().metadata.unwrap().kind, Kind::Symlink);
        world.rename("other", "moved", true).unwrap();
        assert_eq!(world.text("moved"), "y");
        world.rename("moved", "in", true).unwrap();
        assert_eq!(world.text("file"), "x");
        assert_eq!(world.text("in"), "y");
        world.assert_outside_is_whole();
    });
}

#[test]
fn to_another_file_system_it_is_copied_then_deleted() {
    on_each_walker(|world| {
        fs::create_dir(world.at("volume")).unwrap();
        let Some(_mounted) = Mounted::tmpfs(&world.at("volume"), "8m") else { return };
        world.put("dir/deep/file", "content");
        world.put("dir/script", "#!");
        fs::set_permissions(world.at("dir/script"), fs::Permissions::from_mode(0o750)).unwrap();
        world.link("deep/file", "dir/link");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        fs::File::options().write(true).open(world.at("dir/script")).unwrap().set_modified(time).unwrap();
        world.put("volume/old/gone", "");
        world.rename("dir", "volume/old", true).unwrap();
        assert_eq!(world.text("volume/old/deep/file"), "content");
        assert_eq!(world.text("volume/old/link"), "content");
        let script = fs::metadata(world.at("volume/old/script")).unwrap();
        assert_eq!(script.permissions().mode() & 0o7777, 0o750);
        assert_eq!(script.modified().unwrap(), time);
        assert_eq!(world.names("volume"), ["old"]);
        assert_eq!(world.names(""), ["volume"]);
        world.rename("volume/old/script", "script", false).unwrap();
        assert_err!(world.rename("volume/old/deep/file", "script", false), JailError::Exists { .. });
        world.rename("volume/old/deep/file", "script", true).unwrap();
        assert_eq!(world.text("script"), "content");
    });
}

#[test]
fn a_copy_that_fails_leaves_the_source_and_nothing_else() {
    on_each_walker(|world| {
        fs::create_dir(world.at("volume")).unwrap();
        let Some(_mounted) = Mounted::tmpfs(&world.at("volume"), "64k") else { return };
        world.put("dir/a", "small");
        world.put("dir/b", &"x".repeat(1024 * 1024));
        assert_err!(world.rename("dir", "volume/dir", false), JailError::Io { .. });
        assert!(world.names("volume").is_empty());
        world.put("special/a", "");
        world.fifo("special/pipe");
        let root = world.root.clone();
        let result = promptly(move || root.rename("special", "volume/special", false, &|| false));
        assert_err!(result, JailError::NotAFile { kind: Kind::Fifo, .. });
        let cancelled = world.root.rename("dir/a", "volume/a", false, &|| true);
        assert_err!(cancelled, JailError::Cancelled);
        assert!(world.names("volume").is_empty());
        assert_eq!(world.names("dir"), ["a", "b"]);
        assert_eq!(world.names("special"), ["a", "pipe"]);
    });
}
