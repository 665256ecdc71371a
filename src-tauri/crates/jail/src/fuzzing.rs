//! Entry points for a fuzzer. They panic when a promise is broken; any answer is fine otherwise.

use crate::request::{Anchor, Step, names_of};
use crate::root::RootDir;
use crate::rules::{self, Flavor};

/// A path of any form, against the rules of every system: none may panic, and what is taken apart has only plain names.
pub fn path_text(path: &str) {
    for portable in [false, true] {
        let _ = rules::check(path, Flavor::Unix { max_bytes: 4096, portable });
    }
    let _ = rules::check(path, Flavor::Windows);
    let anchor = Anchor {
        roots: vec![names_of(std::path::Path::new("/home/u/work"))],
        home: Some(names_of(std::path::Path::new("/home/u"))),
        folds: false,
        flavor: Flavor::native(true),
    };
    let Ok(steps) = anchor.parse(path) else { return };
    for step in &steps.steps {
        if let Step::Down(name) = step {
            assert!(!name.is_empty() && name != "." && name != "..", "{path:?} has the step {name:?}");
            assert!(!name.as_encoded_bytes().contains(&b'/'), "{path:?} has the step {name:?}");
        }
    }
}

/// A path against a real tree: what a stat says of it lies in the root by name, and by the kernel's own account.
pub fn resolve(root: &RootDir, path: &str) {
    let Ok(stat) = root.stat(path, true) else { return };
    let found = std::path::Path::new(&stat.path);
    assert!(found.starts_with(root.path()), "{path:?} led to {found:?}");
    if stat.exists
        && let Ok(real) = found.canonicalize()
    {
        assert!(real.starts_with(root.path()), "{path:?} led to {real:?}");
    }
}
