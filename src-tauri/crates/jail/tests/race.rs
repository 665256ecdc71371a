//! The attack: a directory is swapped with a link to the outside as fast as can be, while every operation goes through
//! it. For `DESKHAND_RACE_SECONDS` (60), nothing outside is read or changed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jail::{DeleteOptions, ListOptions, ReadRange, RootDir, RootOptions, Walker};
use rustix::fs::{CWD, RenameFlags, renameat_with};

const LIMIT: u64 = 1 << 20;

/// Everything about a tree that an operation could change, and when it last changed.
fn snapshot(path: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let meta = fs::symlink_metadata(&folder).unwrap();
        found.insert(folder.clone(), (meta.ino(), meta.ctime(), meta.ctime_nsec(), Vec::new()));
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path);
            } else {
                found.insert(
                    path.clone(),
                    (meta.ino(), meta.ctime(), meta.ctime_nsec(), fs::read(&path).unwrap()),
                );
            }
        }
    }
    found
}

/// The same names inside and outside, so that whatever works on one would work on the other.
fn furnish(folder: &Path, content: &str) {
    fs::create_dir_all(folder.join("sub/deeper")).unwrap();
    for name in ["file", "victim", "sub/file", "sub/deeper/file"] {
        fs::write(folder.join(name), content).unwrap();
    }
}

struct Attack {
    root: RootDir,
    over: AtomicBool,
    done: AtomicU64,
    through: AtomicU64,
}

impl Attack {
    fn going_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    fn count<T, E>(&self, result: &Result<T, E>) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.through.fetch_add(u64::from(result.is_ok()), Ordering::Relaxed);
    }

    fn read(&self) {
        while self.going_on() {
            for path in [
                "swap/file",
                "swap/sub/file",
                "swap/sub/deeper/../file",
                "inner/swap/file",
                "link/file",
                "leaf",
            ] {
                let read = self.root.read(path, ReadRange::default(), LIMIT);
                self.count(&read);
                if let Ok(contents) = read {
                    assert_eq!(contents.bytes, b"inside", "{path} was read outside");
                }
                let stat = self.root.stat(path, true);
                self.count(&stat);
                for stat in [stat.ok(), self.root.stat_from_memory(path, true)].into_iter().flatten() {
                    assert!(
                        stat.metadata.is_none_or(|metadata| metadata.size == 6),
                        "{path} was seen outside"
                    );
                }
            }
        }
    }

    fn list(&self) {
        let options = ListOptions { recursive: true, include_hidden: true, ..ListOptions::default() };
        while self.going_on() {
            for path in ["", "swap", "swap/sub", "inner"] {
                let listing = self.root.list(path, &options, &|| false);
                self.count(&listing);
                for entry in listing.into_iter().flat_map(|listing| listing.entries) {
                    assert_ne!(entry.name, "only-outside", "{} was listed outside", entry.path);
                }
            }
        }
    }

    fn change(&self, worker: usize) {
        let mut round = 0_u64;
        while self.going_on() {
            round += 1;
            let name = format!("new-{worker}-{}", round % 4);
            self.count(&self.root.write(&format!("swap/{name}"), b"inside", false, LIMIT));
            self.count(&self.root.write(&format!("swap/{name}.d/a/b"), b"inside", true, LIMIT));
            self.count(&self.root.write("swap/file", b"inside", false, LIMIT));
            self.count(&self.root.rename(
                &format!("swap/{name}"),
                &format!("swap/sub/{name}"),
                true,
                &|| false,
            ));
            self.count(&self.root.rename(&format!("swap/sub/{name}"), &name, true, &|| false));
            self.count(&self.root.rename(&name, &format!("inner/swap/{name}"), true, &|| false));
            for (path, trash) in [
                (format!("swap/{name}"), false),
                (format!("swap/{name}.d"), round.is_multiple_of(8)),
                ("swap/victim".into(), false),
            ] {
                let options = DeleteOptions { recursive: true, missing_ok: false, trash };
                self.count(&self.root.delete(&path, &options, &|| false));
            }
            self.count(&self.root.working_dir(Some("swap/sub")));
        }
    }
}

fn swap(pairs: &[(PathBuf, PathBuf)], over: &AtomicBool) -> u64 {
    let mut swaps = 0;
    while !over.load(Ordering::Relaxed) {
        for (one, other) in pairs {
            renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
            swaps += 1;
        }
    }
    swaps
}

fn attack(walker: Walker, duration: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let (work, outside) = (base.join("home/work"), base.join("outside"));
    furnish(&work.join("swap"), "inside");
    furnish(&work.join("inner/swap"), "inside");
    furnish(&outside, "OUTSIDE IS LONGER");
    fs::write(outside.join("only-outside"), "OUTSIDE IS LONGER").unwrap();
    symlink(&outside, work.join("evil")).unwrap();
    symlink("../../../outside", work.join("inner/evil")).unwrap();
    symlink("swap", work.join("link")).unwrap();
    symlink(&outside, work.join("link-evil")).unwrap();
    fs::write(work.join("leaf"), "inside").unwrap();
    symlink(outside.join("file"), work.join("leaf-evil")).unwrap();
    let before = snapshot(&outside);
    let options = RootOptions { home: Some(base.join("home")), ..RootOptions::default() };
    let attack = Attack {
        root: RootDir::open_with(&work, &options, walker).unwrap(),
        over: AtomicBool::new(false),
        done: AtomicU64::new(0),
        through: AtomicU64::new(0),
    };
    let pairs = [
        (work.join("swap"), work.join("evil")),
        (work.join("inner/swap"), work.join("inner/evil")),
        (work.join("link"), work.join("link-evil")),
        (work.join("leaf"), work.join("leaf-evil")),
    ];
    let swaps = std::thread::scope(|scope| {
        let workers = [
            scope.spawn(|| attack.read()),
            scope.spawn(|| attack.list()),
            scope.spawn(|| attack.change(1)),
            scope.spawn(|| attack.change(2)),
        ];
        let swapper = scope.spawn(|| swap(&pairs, &attack.over));
        let end = Instant::now() + duration;
        // A worker that ends early has found something.
        while Instant::now() < end && !workers.iter().any(|worker| worker.is_finished()) {
            std::thread::park_timeout(Duration::from_millis(50));
        }
        attack.over.store(true, Ordering::Relaxed);
        swapper.join().unwrap()
    });
    assert_eq!(snapshot(&outside), before, "something outside was changed");
    let (done, through) = (attack.done.into_inner(), attack.through.into_inner());
    println!("{walker:?}: {swaps} swaps, {done} operations, {through} of them done inside");
    assert!(swaps > 0 && through > 0 && through < done, "the attack did not meet the operations");
}

#[test]
fn nothing_outside_is_read_or_changed_while_a_folder_turns_into_a_link() {
    let seconds =
        std::env::var("DESKHAND_RACE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60.0);
    for walker in [Walker::Kernel, Walker::Portable] {
        attack(walker, Duration::from_secs_f64(seconds / 2.0));
    }
}
