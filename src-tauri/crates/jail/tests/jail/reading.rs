use std::os::unix::net::UnixListener;
use std::process::Command;

use jail::{FileOp, JailError, Kind, ReadRange};

use crate::support::*;

#[test]
fn a_file_is_read_whole_or_in_ranges() {
    on_each_walker(|world| {
        world.put("a/b.txt", "0123456789");
        let range = |offset, length| world.root.read("a/b.txt", ReadRange { offset, length }, 5);
        assert_eq!(world.text("a/b.txt"), "0123456789");
        let middle = range(3, Some(4)).unwrap();
        assert_eq!((middle.bytes.as_slice(), middle.truncated), (b"3456".as_slice(), true));
        let end = range(5, Some(5)).unwrap();
        assert_eq!((end.bytes.as_slice(), end.truncated), (b"56789".as_slice(), false));
        let rest = range(6, None).unwrap();
        assert_eq!((rest.bytes.as_slice(), rest.truncated), (b"6789".as_slice(), false));
        let beyond = range(100, Some(5)).unwrap();
        assert_eq!((beyond.bytes.as_slice(), beyond.truncated), (b"".as_slice(), false));
        assert!(range(1 << 62, None).unwrap().bytes.is_empty());
    });
}

#[test]
fn more_than_the_limit_is_refused_with_its_size() {
    on_each_walker(|world| {
        world.put("big", &"x".repeat(1000));
        let read = |offset, length, limit| world.root.read("big", ReadRange { offset, length }, limit);
        assert_err!(
            read(0, None, 999),
            JailError::TooLarge { limit: 999, attempted: 1000, op: FileOp::Read, .. }
        );
        assert_err!(read(100, Some(u64::MAX), 10), JailError::TooLarge { attempted: 900, .. });
        assert!(read(0, None, 1000).is_ok());
        // A range that fits may come from a file of any size, and a length may be more than there is.
        assert!(read(990, Some(u64::MAX), 10).is_ok());
        assert_eq!(read(0, Some(10), 10).unwrap().bytes.len(), 10);
    });
}

#[test]
fn what_is_no_file_is_refused_and_not_opened() {
    on_each_walker(|world| {
        world.fifo("pipe");
        let _listener = UnixListener::bind(world.at("socket")).unwrap();
        std::fs::create_dir(world.at("dir")).unwrap();
        for (path, expected) in
            [("pipe", Kind::Fifo), ("socket", Kind::Socket), ("dir", Kind::Directory), (".", Kind::Directory)]
        {
            let (root, name) = (world.root.clone(), path.to_owned());
            let result = promptly(move || root.read(&name, ReadRange::default(), LIMIT));
            assert_err!(result, JailError::NotAFile { kind, .. } if kind == expected);
            let (root, name) = (world.root.clone(), path.to_owned());
            let result = promptly(move || root.write(&name, b"x", false, LIMIT));
            assert_err!(result, JailError::NotAFile { kind, .. } if kind == expected);
        }
        world.link("pipe", "link-to-pipe");
        let root = world.root.clone();
        assert_err!(
            promptly(move || root.read("link-to-pipe", ReadRange::default(), LIMIT)),
            JailError::NotAFile { .. }
        );
    });
}

#[test]
fn a_device_is_refused() {
    on_each_walker(|world| {
        // By its program: rustix has no mknod for macOS.
        let made = Command::new("mknod").arg(world.at("zero")).args(["c", "1", "5"]).output();
        if !made.unwrap().status.success() {
            return skip("a device cannot be made here");
        }
        assert_err!(world.read("zero"), JailError::NotAFile { kind: Kind::Device, .. });
        assert_err!(world.write("zero", "x"), JailError::NotAFile { kind: Kind::Device, .. });
        assert_eq!(world.root.stat("zero", true).unwrap().metadata.unwrap().kind, Kind::Device);
    });
}

#[test]
fn what_is_missing_is_not_found() {
    on_each_walker(|world| {
        world.put("file", "x");
        for path in ["nope", "nope/deeper", "file/deeper", "file/deeper/still"] {
            assert_err!(world.read(path), JailError::NotFound { .. });
        }
        assert_err!(world.read("file/"), JailError::NotADirectory { .. } | JailError::NotFound { .. });
    });
}

#[test]
fn a_stat_describes_the_target_or_the_link() {
    on_each_walker(|world| {
        world.put("a/data.json", "12345");
        world.link("a/data.json", "link");
        let file = world.root.stat("link", true).unwrap();
        assert!(file.exists);
        assert_eq!(file.path, world.at("a/data.json").to_str().unwrap());
        let metadata = file.metadata.unwrap();
        assert_eq!((metadata.kind, metadata.size), (Kind::File, 5));
        assert_eq!(metadata.mime_type.as_deref(), Some("application/json"));
        assert_eq!(metadata.owner_uid, Some(rustix::process::geteuid().as_raw()));
        let link = world.root.stat("link", false).unwrap();
        assert_eq!(link.path, world.at("link").to_str().unwrap());
        assert_eq!(link.metadata.unwrap().kind, Kind::Symlink);
        for (path, real) in [(".", ""), ("a/..", ""), ("a/", "a"), ("a/../a/./data.json", "a/data.json")] {
            let stat = world.root.stat(path, true).unwrap();
            assert!(stat.exists, "{path}");
            assert_eq!(
                stat.path.trim_end_matches('/'),
                world.at(real).to_str().unwrap().trim_end_matches('/')
            );
        }
    });
}

#[test]
fn a_stat_of_nothing_says_where_it_would_be() {
    on_each_walker(|world| {
        world.put("file", "x");
        world.link("made/later", "dangling");
        for (path, real) in [
            ("nope", "nope"),
            ("nope/deeper/x", "nope/deeper/x"),
            ("nope/../x", "x"),
            ("dangling", "made/later"),
            ("file/x", "file/x"),
            ("file/", "file"),
        ] {
            let stat = world.root.stat(path, true).unwrap();
            assert!(!stat.exists && stat.metadata.is_none(), "{path}");
            assert_eq!(stat.path, world.at(real).to_str().unwrap(), "{path}");
        }
    });
}

#[test]
fn a_stat_touches_nothing() {
    on_each_walker(|world| {
        world.put("a/file", "x");
        let times = || {
            let meta = |path: &str| std::fs::metadata(world.at(path)).unwrap();
            (meta("").modified().unwrap(), meta("a").modified().unwrap(), meta("a/file").accessed().unwrap())
        };
        let before = times();
        for path in ["new", "a/new", "a/file", "a/new/newer"] {
            world.root.stat(path, true).unwrap();
        }
        assert_eq!(times(), before);
        assert_eq!(world.names(""), ["a"]);
        assert_eq!(world.names("a"), ["file"]);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_stat_from_memory_says_what_a_stat_says_and_leaves_the_rest_to_it() {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let world = World::new(jail::Walker::Kernel);
    world.put("a/data.json", "12345");
    world.put("file", "x");
    world.link("a/data.json", "link");
    world.link("a", "folder");
    world.link(&world.outside, "out");
    let outside = format!("{}/secret", world.outside.display());
    let secret = format!("../../{}/secret", world.outside.file_name().unwrap().display());
    let from_memory = |path: &str, follow| world.root.stat_from_memory(path, follow);
    for path in ["link", "folder/data.json", "out", "out/secret", "nope", "file/x", "file/", "..", ".", ""] {
        assert_eq!(from_memory(path, true), None, "{path}");
    }
    for path in [outside.as_str(), &secret, "/etc/passwd", "~/x", "a/../../x", "a\0b"] {
        assert_eq!(from_memory(path, true), None, "{path}");
    }
    // Where the system has the call and the folder is in memory, the answer is there.
    let open = |resolve| openat2(CWD, &world.work, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve);
    let answers = open(ResolveFlags::CACHED).is_ok() && world.work.starts_with("/dev/shm");
    let absolute = world.at("a/data.json");
    for path in ["file", "a", "a/data.json", absolute.to_str().unwrap()] {
        let found = from_memory(path, true);
        assert!(found.is_some() || !answers, "{path}");
        assert!(found.is_none() || found == world.root.stat(path, true).ok(), "{path}");
    }
    assert!(from_memory("link", false).is_none_or(|link| link.metadata.unwrap().kind == Kind::Symlink));
    std::fs::rename(&world.work, world.work.with_file_name("elsewhere")).unwrap();
    assert_eq!(from_memory("file", true), None, "the root has gone");
    std::fs::create_dir(&world.work).unwrap();
    world.put("file", "x");
    assert_eq!(from_memory("file", true), None, "another is in its place");
}

#[test]
fn a_command_starts_in_a_folder_of_the_root() {
    on_each_walker(|world| {
        world.put("a/file", "x");
        world.link("a", "link");
        world.link(&world.outside, "out");
        let here = world.root.working_dir(None).unwrap();
        assert_eq!(here.path, world.work);
        let there = world.root.working_dir(Some("link")).unwrap();
        assert_eq!(there.path, world.at("a"));
        assert!(rustix::fs::statat(&there.dir, "file", rustix::fs::AtFlags::empty()).is_ok());
        assert_err!(world.root.working_dir(Some("nope")), JailError::NotFound { .. });
        assert_err!(world.root.working_dir(Some("a/file")), JailError::NotADirectory { .. });
        assert_err!(world.root.working_dir(Some("out")), JailError::OutsideRoot { .. });
        assert_err!(world.root.working_dir(Some("..")), JailError::OutsideRoot { .. });
    });
}
