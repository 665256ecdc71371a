use std::fs;

use jail::{DeleteOptions, JailError, ListOptions, RootDir, RootOptions, RootRefusal, Walker, check_root};

use crate::support::*;

/// Homes that are the root and hold our own folders: one that is there, and one that may come.
fn on_each_home(test: impl Fn(&World)) {
    for walker in [Walker::Kernel, Walker::Portable] {
        let world = World::home_root(walker, |options| {
            let home = options.home.clone().unwrap();
            let config = home.join(".config/deskhand");
            fs::create_dir_all(&config).unwrap();
            fs::write(config.join("config.toml"), "rules").unwrap();
            options.forbidden = vec![config, home.join(".local/state/deskhand")];
        });
        test(&world);
        assert_eq!(fs::read_to_string(world.at(".config/deskhand/config.toml")).unwrap(), "rules");
        assert!(!world.at(".local/state/deskhand").exists());
    }
}

#[test]
fn our_own_folders_are_outside_for_every_operation() {
    on_each_home(|world| {
        world.put("mine", "x");
        world.link(".config/deskhand", "link");
        world.link(world.at(".config"), "config");
        let absolute = world.at(".config/deskhand/config.toml");
        for path in [
            ".config/deskhand/config.toml",
            ".config/deskhand",
            ".config/deskhand/",
            ".config/deskhand/new",
            "link/config.toml",
            "config/deskhand/config.toml",
            ".config/../.config/deskhand/config.toml",
            absolute.to_str().unwrap(),
            ".local/state/deskhand",
            ".local/state/deskhand/audit.log",
        ] {
            assert_err!(world.read(path), JailError::OutsideRoot { .. });
            assert_err!(world.root.write(path, b"x", true, LIMIT), JailError::OutsideRoot { .. });
            assert_err!(world.root.stat(path, true), JailError::OutsideRoot { .. });
            assert_eq!(world.root.stat_from_memory(path, true), None, "{path}");
            assert_err!(world.list(path, &ListOptions::default()), JailError::OutsideRoot { .. });
            assert_err!(world.root.working_dir(Some(path)), JailError::OutsideRoot { .. });
            assert_err!(world.rename("mine", path, true), JailError::OutsideRoot { .. });
            for trash in [false, true] {
                let options = DeleteOptions { recursive: true, missing_ok: true, trash };
                assert_err!(world.root.delete(path, &options, &|| false), JailError::OutsideRoot { .. });
            }
            assert_err!(world.rename(path, "taken", true), JailError::OutsideRoot { .. });
        }
    });
}

#[test]
fn folders_that_hold_our_own_are_not_moved_replaced_or_deleted() {
    on_each_home(|world| {
        fs::create_dir_all(world.at(".local/state")).unwrap();
        world.put("new/deskhand/config.toml", "forged");
        for path in [".config", ".local", ".local/state"] {
            for trash in [false, true] {
                let options = DeleteOptions { recursive: true, trash, ..DeleteOptions::default() };
                assert_err!(world.root.delete(path, &options, &|| false), JailError::OutsideRoot { .. });
            }
            assert_err!(world.rename(path, "elsewhere", false), JailError::OutsideRoot { .. });
            assert_err!(world.rename("new", path, true), JailError::OutsideRoot { .. });
        }
        world.put(".config/other/file", "x");
        assert_eq!(world.text(".config/other/file"), "x");
        world.delete(".config/other", true).unwrap();
    });
}

#[test]
fn listings_leave_our_own_folders_out() {
    on_each_home(|world| {
        world.put(".config/other/file", "x");
        let options = ListOptions { recursive: true, include_hidden: true, ..ListOptions::default() };
        assert_eq!(world.paths("", &options), [".config", ".config/other", ".config/other/file"]);
        assert_eq!(world.paths(".config", &options), [".config/other", ".config/other/file"]);
    });
}

#[test]
fn our_own_folders_under_another_name_are_outside_too() {
    on_each_home(|world| {
        // The same directory by another path, as a case-folding file system would give it.
        fs::create_dir(world.at("alias")).unwrap();
        let bound = std::process::Command::new("mount")
            .arg("--bind")
            .arg(world.at(".config"))
            .arg(world.at("alias"))
            .output();
        if !bound.is_ok_and(|output| output.status.success()) {
            return skip("nothing can be mounted here");
        }
        let results = (
            world.read("alias/deskhand/config.toml"),
            world.root.stat("alias/deskhand", true),
            world.delete("alias/deskhand", true),
        );
        let listed = world.list("alias", &ListOptions { recursive: true, ..Default::default() });
        let unmounted = std::process::Command::new("umount").arg("-l").arg(world.at("alias")).status();
        assert!(unmounted.unwrap().success());
        assert_err!(results.0, JailError::OutsideRoot { .. });
        assert_err!(results.1, JailError::OutsideRoot { .. });
        assert_err!(results.2, JailError::OutsideRoot { .. });
        assert_eq!(listed.unwrap().entries, []);
    });
}

#[test]
fn our_own_folders_are_no_roots() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let own = base.join("own");
    fs::create_dir_all(own.join("inner")).unwrap();
    let options = RootOptions { forbidden: vec![own.clone()], ..RootOptions::default() };
    for path in [own.clone(), own.join("inner")] {
        assert_err!(check_root(&path, &options), JailError::RootRefused(RootRefusal::OwnFolder));
        assert_err!(RootDir::open(&path, &options), JailError::RootRefused(RootRefusal::OwnFolder));
    }
    assert_eq!(check_root(&base, &options).unwrap(), base);
}
