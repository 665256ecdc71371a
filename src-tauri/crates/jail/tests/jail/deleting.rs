use std::fs;
use std::os::unix::fs::PermissionsExt;

use jail::{DeleteOptions, JailError};

use crate::support::*;

#[test]
fn files_empty_folders_and_trees_are_deleted() {
    on_each_walker(|world| {
        for path in ["file", "full/a/b/c", "full/d"] {
            world.put(path, "");
        }
        fs::create_dir(world.at("empty")).unwrap();
        world.fifo("full/pipe");
        world.link("nowhere", "full/dangling");
        world.delete("file", false).unwrap();
        world.delete("empty/", false).unwrap();
        assert_err!(world.delete("full", false), JailError::NotEmpty { .. });
        world.delete("full", true).unwrap();
        assert!(world.names("").is_empty());
    });
}

#[test]
fn a_link_is_deleted_and_its_target_is_not() {
    on_each_walker(|world| {
        world.put("dir/file", "x");
        for (number, path) in ["l1", "l2", "l3", "out", "dangling"].iter().enumerate() {
            match number {
                0 => world.link("dir/file", path),
                1 | 2 => world.link("dir", path),
                3 => world.link(&world.outside, path),
                _ => world.link("nowhere", path),
            }
        }
        for path in ["l1", "l2", "l3/", "out", "dangling"] {
            world.delete(path, true).unwrap();
        }
        assert_eq!(world.names(""), ["dir"]);
        assert_eq!(world.text("dir/file"), "x");
        world.link(&world.outside, "dir/out");
        world.delete("dir", true).unwrap();
        world.assert_outside_is_whole();
    });
}

#[test]
fn the_root_cannot_be_deleted_or_moved_however_it_is_spelt() {
    on_each_walker(|world| {
        world.put("sub/deep/file", "x");
        world.link(&world.work, "self");
        world.link("..", "sub/up");
        let absolute = world.work.to_str().unwrap();
        for path in [
            ".",
            "",
            "./",
            "sub/..",
            "sub/deep/../..",
            absolute,
            "~/work",
            "self/.",
            "self/sub/..",
            "sub/up/.",
            "sub/up/sub/..",
        ] {
            if matches!(path, "self/." | "sub/up/.") {
                // Names the link itself where links are not followed: deleting that is allowed, and tried last.
                continue;
            }
            for trash in [false, true] {
                let options = DeleteOptions { recursive: true, missing_ok: true, trash };
                assert_err!(world.root.delete(path, &options, &|| false), JailError::OutsideRoot { .. });
            }
            assert_err!(world.rename(path, "elsewhere", true), JailError::OutsideRoot { .. });
            assert_err!(world.rename("sub", path, true), JailError::OutsideRoot { .. });
        }
        world.delete("self/.", true).unwrap();
        assert_eq!(world.text("sub/deep/file"), "x");
        assert_eq!(world.names(""), ["sub"]);
    });
}

#[test]
fn what_is_missing_is_an_error_unless_it_may_be() {
    on_each_walker(|world| {
        world.put("file", "");
        for path in ["nope", "nope/deeper", "file/x"] {
            assert_err!(world.delete(path, true), JailError::NotFound { .. });
            let options = DeleteOptions { missing_ok: true, ..DeleteOptions::default() };
            world.root.delete(path, &options, &|| false).unwrap();
        }
        let options = DeleteOptions { missing_ok: true, ..DeleteOptions::default() };
        assert_err!(world.root.delete("nope/../../x", &options, &|| false), JailError::OutsideRoot { .. });
    });
}

#[test]
fn a_cancelled_delete_stops() {
    on_each_walker(|world| {
        world.put("dir/file", "");
        let options = DeleteOptions { recursive: true, ..DeleteOptions::default() };
        assert_err!(world.root.delete("dir", &options, &|| true), JailError::Cancelled);
        assert_eq!(world.names("dir"), ["file"]);
    });
}

#[test]
fn many_files_and_folders_are_all_deleted() {
    on_each_walker(|world| {
        for number in 0..3000 {
            world.put(&format!("dir/{}/{number}", number % 1100), "");
            world.put(&format!("dir/f{number}"), "");
        }
        world.delete("dir", true).unwrap();
        assert!(world.names("").is_empty());
    });
}

#[test]
fn a_mounted_file_system_is_not_emptied() {
    on_each_walker(|world| {
        fs::create_dir_all(world.at("dir/mounted")).unwrap();
        let Some(_mounted) = Mounted::tmpfs(&world.at("dir/mounted"), "1m") else { return };
        world.put("dir/mounted/file", "precious");
        assert_err!(world.delete("dir", true), JailError::Io { .. });
        assert_err!(world.delete("dir/mounted", true), JailError::Io { .. });
        assert_eq!(world.text("dir/mounted/file"), "precious");
    });
}

#[test]
fn a_folder_without_permission_stays() {
    on_each_walker(|world| {
        if is_root() {
            return skip("root deletes everything");
        }
        world.put("locked/file", "x");
        fs::set_permissions(world.at("locked"), fs::Permissions::from_mode(0o555)).unwrap();
        assert_err!(world.delete("locked", true), JailError::Io { .. });
        fs::set_permissions(world.at("locked"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(world.text("locked/file"), "x");
    });
}
