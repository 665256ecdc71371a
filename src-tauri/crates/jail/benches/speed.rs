//! A recursive listing against a bare walk by the `ignore` crate that asks for the metadata of as many files, in one
//! process; and what one stat costs. Run with `cargo bench -p deskhand-jail`.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run should say where")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use jail::{ListOptions, MAX_ENTRIES, ReadRange, RootDir, RootOptions, Walker};

const FILES: usize = 20_000;
const ROUNDS: usize = 15;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..FILES {
        let parent = folder.path().join(format!("d{}/e{}", number % 20, number % 200));
        fs::create_dir_all(&parent).unwrap();
        fs::write(parent.join(format!("file-{number}.txt")), "x").unwrap();
    }
    let roots = [Walker::Kernel, Walker::Portable]
        .map(|walker| (walker, RootDir::open_with(folder.path(), &RootOptions::default(), walker).unwrap()));
    let bare = best(|| bare_walk(folder.path()));
    println!("bare walk, {MAX_ENTRIES} of {FILES} files with metadata: {bare:?}");
    for (walker, root) in &roots {
        let options = ListOptions { recursive: true, max_entries: MAX_ENTRIES, ..ListOptions::default() };
        let listed = best(|| root.list("", &options, &|| false).unwrap().entries.len());
        println!(
            "list, {walker:?}: {listed:?}, {:.2} times the bare walk",
            listed.as_secs_f64() / bare.as_secs_f64()
        );
        let one = |name: &str, operation: &dyn Fn(&str)| {
            let spent = best(|| {
                for number in 0..1000 {
                    operation(&format!("d{0}/e{0}/file-{0}.txt", number % 20));
                }
            });
            println!("{name}, {walker:?}: {:?} each", spent / 1000);
        };
        one("stat", &|path| drop(black_box(root.stat(path, true).unwrap())));
        one("read", &|path| drop(black_box(root.read(path, ReadRange::default(), 1000).unwrap())));
    }
}

/// The best of some rounds: the others were disturbed.
fn best<T>(mut work: impl FnMut() -> T) -> Duration {
    let timed = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    };
    (0..ROUNDS).map(timed).min().unwrap()
}

fn bare_walk(path: &Path) -> u64 {
    let walk = ignore::WalkBuilder::new(path).standard_filters(false).build();
    walk.filter_map(Result::ok).skip(1).take(MAX_ENTRIES).map(|entry| entry.metadata().unwrap().len()).sum()
}
