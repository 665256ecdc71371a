use std::fs;

use jail::{JailError, MAX_LINKS, ReadRange, RootOptions, Walker};

use crate::support::*;

/// Every operation on `path` says that it is outside.
fn assert_outside(world: &World, path: &str) {
    assert_err!(world.read(path), JailError::OutsideRoot { .. });
    assert_err!(world.root.stat(path, true), JailError::OutsideRoot { .. });
    assert_err!(world.write(path, "x"), JailError::OutsideRoot { .. });
    assert_err!(world.root.write(path, b"x", true, LIMIT), JailError::OutsideRoot { .. });
    assert_err!(world.list(path, &Default::default()), JailError::OutsideRoot { .. });
    assert_err!(world.root.working_dir(Some(path)), JailError::OutsideRoot { .. });
    world.assert_outside_is_whole();
}

#[test]
fn paths_that_leave_the_root_are_outside() {
    on_each_walker(|world| {
        world.put("a/b/file", "x");
        let outside = world.outside.to_str().unwrap();
        for path in [
            "..",
            "../outside/secret",
            "a/../../outside/secret",
            "a/b/../../../outside",
            "nope/../../../x",
            "nope/../..",
            "a/b/file/../../../../x",
            "/etc/passwd",
            "/",
            outside,
            "~/../outside",
            "~",
        ] {
            assert_outside(world, path);
            assert_err!(world.delete(path, true), JailError::OutsideRoot { .. });
            assert_err!(world.rename("a", path, true), JailError::OutsideRoot { .. });
            assert_err!(world.rename(path, "here", true), JailError::OutsideRoot { .. });
        }
        assert_eq!(world.names(""), ["a"], "nothing was made on the way");
    });
}

#[test]
fn links_that_lead_outside_are_outside() {
    on_each_walker(|world| {
        world.put("a/file", "x");
        world.link(world.outside.join("secret"), "absolute");
        world.link("../../outside/secret", "relative");
        world.link(&world.outside, "dir");
        world.link(world.outside.join("not-there"), "dangling");
        world.link("/", "top");
        world.link("dir", "to-link");
        world.link("../work/a/file", "out-and-back");
        world.link("/proc/self/root/etc", "magic");
        for path in [
            "absolute",
            "relative",
            "dir",
            "dir/secret",
            "dangling",
            "top",
            "top/etc/passwd",
            "to-link/secret",
            "out-and-back",
            "magic",
        ] {
            assert_outside(world, path);
        }
        for path in ["dir/secret", "to-link/secret", "top/etc"] {
            assert_err!(world.delete(path, true), JailError::OutsideRoot { .. });
            assert_err!(world.rename("a", path, true), JailError::OutsideRoot { .. });
            assert_err!(world.rename(path, "here", true), JailError::OutsideRoot { .. });
        }
        world.assert_outside_is_whole();
    });
}

#[test]
fn links_that_stay_inside_work() {
    on_each_walker(|world| {
        world.put("a/b/file", "inside");
        world.put("a/x", "beside");
        world.link("a/b", "rel");
        world.link(world.at("a/b"), "abs");
        world.link("../b/file", "a/b-file");
        world.link(world.at("rel"), "abs-to-rel");
        world.link(&world.work, "self");
        world.link("a/b/../b/./file", "dots");
        fs::create_dir(world.at("sub")).unwrap();
        world.link("../a", "sub/up");
        for path in [
            "rel/file",
            "abs/file",
            "abs-to-rel/file",
            "self/rel/file",
            "self/self/abs/file",
            "dots",
            "sub/up/b/file",
        ] {
            assert_eq!(world.text(path), "inside", "{path}");
        }
        // `..` goes up from where a link led, not from where it lies.
        assert_eq!(world.text("rel/../x"), "beside");
        assert_eq!(world.text("abs/../x"), "beside");
        assert_eq!(world.text("sub/up/x"), "beside");
        assert_err!(world.read("a/b-file"), JailError::NotFound { .. });
        world.link("b/file", "a/good");
        assert_eq!(world.text("a/good"), "inside");
    });
}

#[test]
fn forty_links_are_followed_and_no_more() {
    on_each_walker(|world| {
        world.put("l0", "end");
        for number in 1..=MAX_LINKS + 1 {
            world.link(format!("l{}", number - 1), &format!("l{number}"));
        }
        assert_eq!(world.text(&format!("l{MAX_LINKS}")), "end");
        assert_err!(world.read(&format!("l{}", MAX_LINKS + 1)), JailError::TooManyLinks { .. });
        world.link("loop-b", "loop-a");
        world.link("loop-a", "loop-b");
        assert_err!(world.read("loop-a"), JailError::TooManyLinks { .. });
        assert_err!(world.read("loop-a/x"), JailError::TooManyLinks { .. });
    });
}

#[test]
fn absolute_and_home_paths_work_inside() {
    on_each_walker(|world| {
        world.put("a/file", "x");
        let absolute = world.at("a/file");
        assert_eq!(world.text(absolute.to_str().unwrap()), "x");
        assert_eq!(world.text("~/work/a/file"), "x");
        assert_eq!(world.text("~/work/../work/a/file".replace("/../work", "").as_str()), "x");
        let doubled = absolute.to_str().unwrap().replace("/a/", "//a/./");
        assert_eq!(world.text(&doubled), "x");
    });
}

#[test]
fn unusable_text_is_refused_before_anything_is_touched() {
    on_each_walker(|world| {
        for path in ["a\0b", "a\nb", "\u{1b}[31m", &"x/".repeat(3000)] {
            assert_err!(world.read(path), JailError::InvalidChars { .. });
            assert_err!(world.root.write(path, b"x", true, LIMIT), JailError::InvalidChars { .. });
            assert_err!(world.delete(path, true), JailError::InvalidChars { .. });
        }
        assert_err!(world.write(&"n".repeat(256), "x"), JailError::InvalidChars { .. });
        assert!(world.names("").is_empty());
    });
}

#[test]
fn portable_names_follow_windows_rules() {
    for walker in [Walker::Kernel, Walker::Portable] {
        let adjust = |options: &mut RootOptions| options.portable_names = true;
        let world = World::with(walker, adjust, |home| home.join("work"));
        for path in ["CON", "sub/nul.txt", "com¹", "trailing.", "trailing "] {
            assert_err!(world.write(path, "x"), JailError::ReservedName { .. });
        }
        for path in ["a:b", "a*", "a?", "a\\b"] {
            assert_err!(world.write(path, "x"), JailError::InvalidChars { .. });
        }
        assert!(world.write("console", "x").is_ok());
    }
}

#[test]
fn messages_name_the_path_as_it_was_given_and_nothing_outside() {
    on_each_walker(|world| {
        world.link(world.outside.join("secret"), "link");
        let message = world.read("link").unwrap_err().to_string();
        assert!(message.contains("\"link\"") && !message.contains("outside/"), "{message}");
        let message = world.read("nope\u{1b}[31m").unwrap_err().to_string();
        assert!(!message.contains('\u{1b}'), "{message}");
    });
}

#[test]
fn a_root_that_was_deleted_moved_or_replaced_is_gone() {
    type Change = fn(&World);
    let changes: [Change; 3] = [
        |world| fs::remove_dir_all(&world.work).unwrap(),
        |world| fs::rename(&world.work, world.home.join("elsewhere")).unwrap(),
        |world| {
            fs::rename(&world.work, world.home.join("elsewhere")).unwrap();
            fs::create_dir(&world.work).unwrap();
            fs::write(world.at("file"), "another").unwrap();
        },
    ];
    for change in changes {
        on_each_walker(|world| {
            world.put("file", "x");
            change(world);
            assert_err!(world.root.verify(), JailError::RootGone);
            assert_err!(world.read("file"), JailError::RootGone);
            assert_err!(world.write("new", "x"), JailError::RootGone);
            assert_err!(world.root.stat("file", true), JailError::RootGone);
            assert_err!(world.list(".", &Default::default()), JailError::RootGone);
            assert_err!(world.delete("file", false), JailError::RootGone);
            assert_err!(world.rename("file", "b", false), JailError::RootGone);
            assert_err!(world.root.working_dir(None), JailError::RootGone);
        });
    }
}

#[test]
fn a_root_that_became_a_link_is_gone() {
    on_each_walker(|world| {
        fs::remove_dir_all(&world.work).unwrap();
        std::os::unix::fs::symlink(&world.outside, &world.work).unwrap();
        assert_err!(world.read("secret"), JailError::RootGone);
    });
}

#[test]
fn deep_paths_need_few_descriptors() {
    on_each_walker(|world| {
        let deep = vec!["d"; 1000].join("/");
        world.root.write(&format!("{deep}/file"), b"deep", true, LIMIT).unwrap();
        for ups in [1, 31, 32, 33, 500, 600] {
            let stat = world.root.stat(&format!("{deep}/{}", vec![".."; ups].join("/")), true).unwrap();
            assert!(stat.exists);
            assert_eq!(stat.path, world.at(&vec!["d"; 1000 - ups].join("/")).to_str().unwrap());
        }
        assert_eq!(
            world.root.read(&format!("{deep}/file"), ReadRange::default(), LIMIT).unwrap().bytes,
            b"deep"
        );
        let listing =
            world.list(".", &jail::ListOptions { recursive: true, max_entries: 5000, ..Default::default() });
        assert_eq!(listing.unwrap().entries.len(), 1001);
        world.delete("d", true).unwrap();
        assert!(world.names("").is_empty());
    });
}
