//! Any text as a path of a request: first as text against every system's rules, then against a real tree that has links
//! of all kinds, by the kernel's own walk and by ours. Nothing may lead out.
#![no_main]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::LazyLock;

use jail::{RootDir, RootOptions, Walker};
use libfuzzer_sys::fuzz_target;

static ROOTS: LazyLock<[RootDir; 2]> = LazyLock::new(|| {
    let tree = plant(Path::new(env!("CARGO_MANIFEST_DIR")));
    let options = RootOptions { home: Some(tree.clone()), ..RootOptions::default() };
    let root = tree.join("root");
    [Walker::Kernel, Walker::Portable].map(|w| RootDir::open_with(&root, &options, w).expect("the tree is a root"))
});

fuzz_target!(|path: &str| {
    jail::fuzzing::path_text(path);
    for root in ROOTS.iter() {
        jail::fuzzing::resolve(root, path);
    }
});

/// The tree, the same in every run; short names, so that they are hit on.
fn plant(fuzz: &Path) -> std::path::PathBuf {
    let tree = fuzz.join("target/tree");
    let root = tree.join("root");
    if tree.exists() {
        fs::remove_dir_all(&tree).expect("an old tree can be removed");
    }
    fs::create_dir_all(root.join("d/e")).expect("folders can be made");
    fs::create_dir_all(tree.join("out")).expect("folders can be made");
    fs::write(root.join("f"), "inside").expect("files can be written");
    fs::write(root.join("d/e/g"), "inside").expect("files can be written");
    fs::write(tree.join("out/s"), "outside").expect("files can be written");
    let inside = root.join("d");
    let outside = tree.join("out");
    let links: [(&str, &Path); 9] = [
        ("i", "d/e".as_ref()),           // stays inside
        ("a", &inside),                  // absolute, and inside all the same
        ("o", "../out".as_ref()),        // leaves
        ("p", &outside),                 // absolute, and leaves
        ("d/u", "../../out/s".as_ref()), // leaves for a file
        ("n", "nowhere/x".as_ref()),     // dangles
        ("m", "../out/new".as_ref()),    // dangles outside
        ("l", "l".as_ref()),             // leads to itself
        ("z", "/proc/self/root".as_ref()), // the kernel's own way out
    ];
    for (name, target) in links {
        symlink(target, root.join(name)).expect("links can be made");
    }
    tree
}
