use std::fs;
use std::os::unix::fs::PermissionsExt;

use jail::{JailError, Kind, ListOptions, MAX_ENTRIES};
use proptest::prelude::*;

use crate::support::*;

fn recursive() -> ListOptions {
    ListOptions { recursive: true, ..ListOptions::default() }
}

#[test]
fn a_folder_is_listed_in_order_of_paths() {
    on_each_walker(|world| {
        for path in ["b", "a/y", "a/x/1", "a-b", "a.txt", "B"] {
            world.put(path, "12");
        }
        assert_eq!(world.paths(".", &ListOptions::default()), ["B", "a", "a-b", "a.txt", "b"]);
        let all = ["B", "a", "a-b", "a.txt", "a/x", "a/x/1", "a/y", "b"];
        assert_eq!(world.paths("", &recursive()), all);
        let entries = world.list("a", &ListOptions::default()).unwrap().entries;
        assert_eq!((entries[0].name.as_str(), entries[0].kind), ("x", Kind::Directory));
        assert_eq!((entries[1].name.as_str(), entries[1].kind, entries[1].size), ("y", Kind::File, 2));
        for max_entries in 0..=all.len() {
            let options = ListOptions { max_entries, ..recursive() };
            assert_eq!(world.paths("", &options), all[..max_entries]);
            assert_eq!(world.list("", &options).unwrap().truncated, max_entries < all.len());
        }
    });
}

#[test]
fn links_are_listed_and_never_followed() {
    on_each_walker(|world| {
        world.put("a/file", "x");
        world.link("a", "inside");
        world.link(&world.outside, "outside");
        world.link("nowhere", "dangling");
        world.link("..", "a/up");
        assert_eq!(world.paths("", &recursive()), ["a", "a/file", "a/up", "dangling", "inside", "outside"]);
        let entries = world.list("", &ListOptions::default()).unwrap().entries;
        assert!(entries[1..].iter().all(|entry| entry.kind == Kind::Symlink));
        assert_eq!(world.paths("inside", &ListOptions::default()), ["a/file", "a/up"]);
    });
}

#[test]
fn hidden_entries_and_all_below_them_are_left_out_unless_asked_for() {
    on_each_walker(|world| {
        for path in [".hidden", ".git/config", "a/.b/c", "a/d"] {
            world.put(path, "");
        }
        assert_eq!(world.paths("", &recursive()), ["a", "a/d"]);
        let everything = ListOptions { include_hidden: true, ..recursive() };
        assert_eq!(
            world.paths("", &everything),
            [".git", ".git/config", ".hidden", "a", "a/.b", "a/.b/c", "a/d"]
        );
        assert_eq!(world.paths(".git", &recursive()), [".git/config"]);
    });
}

#[test]
fn a_glob_matches_base_names() {
    on_each_walker(|world| {
        for path in ["a.rs", "b.txt", "src/c.rs", "src/deep/d.rs", "src/e.md"] {
            world.put(path, "");
        }
        let with = |glob: &str| ListOptions { glob: Some(glob.into()), ..recursive() };
        assert_eq!(world.paths("", &with("*.rs")), ["a.rs", "src/c.rs", "src/deep/d.rs"]);
        assert_eq!(world.paths("", &with("[ab].{rs,txt}")), ["a.rs", "b.txt"]);
        assert_eq!(world.paths("", &with("?.md")), ["src/e.md"]);
        assert_eq!(world.paths("", &with("deep")), ["src/deep"]);
        assert_eq!(world.paths("", &with("*.RS")), [""; 0]);
        assert_err!(world.list("", &with("[")), JailError::BadGlob { .. });
        assert_err!(world.list("", &with(&"{a,b}".repeat(2000))), JailError::BadGlob { .. });
    });
}

#[test]
fn a_name_that_is_not_utf8_is_answered_escaped() {
    on_each_walker(|world| {
        world.put("plain", "");
        fs::write(world.work.join(non_utf8(b"bad\xff\xfename")), "").unwrap();
        fs::create_dir(world.work.join(non_utf8(b"dir\xff"))).unwrap();
        fs::write(world.work.join(non_utf8(b"dir\xff/x")), "").unwrap();
        assert_eq!(world.paths("", &recursive()), ["bad\\xff\\xfename", "dir\\xff", "dir\\xff/x", "plain"]);
    });
}

#[test]
fn special_files_are_listed_without_being_opened() {
    on_each_walker(|world| {
        world.fifo("pipe");
        let root = world.root.clone();
        let listing = promptly(move || {
            root.list("", &ListOptions { recursive: true, ..Default::default() }, &|| false)
        });
        assert_eq!(listing.unwrap().entries[0].kind, Kind::Fifo);
    });
}

#[test]
fn what_cannot_be_listed_says_why() {
    on_each_walker(|world| {
        world.put("file", "");
        assert_err!(world.list("file", &recursive()), JailError::NotADirectory { .. });
        assert_err!(world.list("nope", &recursive()), JailError::NotFound { .. });
        assert_err!(world.root.list("", &recursive(), &|| true), JailError::Cancelled);
        if is_root() {
            return skip("root reads every folder");
        }
        fs::create_dir(world.at("locked")).unwrap();
        fs::set_permissions(world.at("locked"), fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(world.paths("", &recursive()), ["file", "locked"]);
        assert_err!(world.list("locked", &recursive()), JailError::Io { .. });
        fs::set_permissions(world.at("locked"), fs::Permissions::from_mode(0o700)).unwrap();
    });
}

#[test]
fn the_ceiling_of_entries_holds_and_large_folders_come_in_order() {
    on_each_walker(|world| {
        for number in 0..MAX_ENTRIES + 50 {
            fs::write(world.at(&format!("{}", (number * 7919) % 99_991)), "").unwrap();
        }
        fs::create_dir_all(world.at("many")).unwrap();
        let listing = world.list("", &ListOptions { max_entries: usize::MAX, ..recursive() }).unwrap();
        assert_eq!(listing.entries.len(), MAX_ENTRIES);
        assert!(listing.truncated);
        assert!(listing.entries.is_sorted_by(|a, b| a.path < b.path));
    });
}

#[test]
fn a_folder_larger_than_one_reading_is_listed_whole() {
    on_each_walker(|world| {
        for number in 0..20_000 {
            fs::create_dir(world.at(&format!("d{number}"))).unwrap();
        }
        world.put("d7/wanted", "");
        world.put("d19999/wanted", "");
        let options = ListOptions { glob: Some("wanted".into()), ..recursive() };
        assert_eq!(world.paths("", &options), ["d19999/wanted", "d7/wanted"]);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_cut_listing_is_the_start_of_the_whole_one(
        paths in proptest::collection::vec("[a-c.-]{1,2}(/[a-c.-]{1,2}){0,3}", 1..25),
        max in 0_usize..30,
    ) {
        on_each_walker(|world| {
            for path in &paths {
                if let Some(parent) = world.at(path).parent() && fs::create_dir_all(parent).is_ok() {
                    let _ = fs::write(world.at(path), "");
                }
            }
            let options = ListOptions { include_hidden: true, ..recursive() };
            let whole = world.paths("", &options);
            let mut expected = Vec::new();
            let mut folders = vec![world.work.clone()];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    expected.push(path.strip_prefix(&world.work).unwrap().to_str().unwrap().to_owned());
                    if path.is_dir() {
                        folders.push(path);
                    }
                }
            }
            expected.sort();
            assert_eq!(whole, expected);
            let cut = world.paths("", &ListOptions { max_entries: max, ..options });
            assert_eq!(cut, whole[..max.min(whole.len())]);
        });
    }
}
