//! Random trees with links, and random paths in them, against a resolver that is slow, plain and ours alone.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use jail::{JailError, MAX_LINKS};
use proptest::prelude::*;

use crate::support::*;

#[derive(Debug, PartialEq)]
enum Led {
    Outside,
    Loop,
    Missing,
    To(u64),
}

/// Walks by text, one component and one lstat at a time. Leaving the root is final.
fn oracle(root: &Path, path: &str) -> Led {
    let mut pending: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut here: Vec<String> = Vec::new();
    let (mut links, mut gone) = (0, false);
    let real = |here: &[String]| here.iter().fold(root.to_owned(), |path, name| path.join(name));
    while let Some(name) = pending.pop() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                if here.pop().is_none() {
                    return Led::Outside;
                }
                continue;
            }
            _ => here.push(name),
        }
        if gone {
            continue;
        }
        let Ok(meta) = fs::symlink_metadata(real(&here)) else {
            gone = true;
            continue;
        };
        let more = pending.iter().any(|name| !name.is_empty() && name != ".") || !pending.is_empty();
        if meta.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Led::Loop;
            }
            let target = fs::read_link(real(&here)).unwrap();
            let mut target = target.to_str().unwrap().to_owned();
            if target.starts_with('/') {
                let Some(rest) = target.strip_prefix(root.to_str().unwrap()) else { return Led::Outside };
                target = rest.to_owned();
                here.clear();
            } else {
                here.pop();
            }
            pending.extend(target.split('/').rev().map(str::to_owned));
        } else if !meta.is_dir() && more {
            gone = true;
        }
    }
    if gone {
        return Led::Missing;
    }
    fs::symlink_metadata(real(&here)).map_or(Led::Missing, |meta| Led::To(meta.ino()))
}

/// What a stat of ours says, in the oracle's words.
fn ours(world: &World, path: &str) -> Led {
    for follow in [true, false] {
        if let Some(found) = world.root.stat_from_memory(path, follow) {
            assert_eq!(Ok(found), world.root.stat(path, follow).map_err(drop), "{path}");
        }
    }
    match world.root.stat(path, true) {
        Ok(stat) if stat.exists => Led::To(fs::symlink_metadata(PathBuf::from(stat.path)).unwrap().ino()),
        Ok(stat) => {
            assert!(Path::new(&stat.path).starts_with(&world.work), "{}", stat.path);
            Led::Missing
        }
        Err(JailError::OutsideRoot { .. }) => Led::Outside,
        Err(JailError::TooManyLinks { .. }) => Led::Loop,
        Err(other) => panic!("{path}: {other:?}"),
    }
}

#[derive(Clone, Debug)]
enum Node {
    File(String),
    Dir(String),
    Link(String, String),
    AbsoluteLink(String, String),
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![5 => "[ab]", 3 => "[cl]", 2 => Just("..".to_owned()), 1 => Just(".".to_owned()), 1 => Just(String::new())],
        1..7,
    )
    .prop_map(|names| names.join("/").trim_start_matches('/').to_owned())
}

fn plain() -> impl Strategy<Value = String> {
    proptest::collection::vec("[abcl]", 1..4).prop_map(|names| names.join("/"))
}

fn node() -> impl Strategy<Value = Node> {
    prop_oneof![
        plain().prop_map(Node::File),
        plain().prop_map(Node::Dir),
        (plain(), path()).prop_map(|(name, target)| Node::Link(name, target)),
        (plain(), path()).prop_map(|(name, target)| Node::AbsoluteLink(name, target)),
    ]
}

fn build(world: &World, nodes: &[Node]) {
    for node in nodes {
        let (Node::File(name) | Node::Dir(name) | Node::Link(name, _) | Node::AbsoluteLink(name, _)) = node;
        let at = world.at(name);
        // Parents may be links to anywhere by now: only plain places in the root are built on.
        let parents = Path::new(name).ancestors().skip(1).collect::<Vec<_>>();
        let plain = parents.iter().rev().all(|parent| {
            let parent = world.work.join(parent);
            let _ = fs::create_dir(&parent);
            fs::symlink_metadata(&parent).is_ok_and(|meta| meta.is_dir())
        });
        if !plain || fs::symlink_metadata(&at).is_ok() {
            continue;
        }
        match node {
            Node::File(_) => fs::write(at, "x").unwrap(),
            Node::Dir(_) => fs::create_dir(at).unwrap(),
            Node::Link(_, target) if target.is_empty() => {}
            Node::Link(_, target) => symlink(target, at).unwrap(),
            Node::AbsoluteLink(_, target) => symlink(world.work.join(target), at).unwrap(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn paths_lead_where_the_oracle_says(
        nodes in proptest::collection::vec(node(), 1..14),
        paths in proptest::collection::vec(path(), 1..30),
    ) {
        on_each_walker(|world| {
            build(world, &nodes);
            for path in &paths {
                assert_eq!(ours(world, path), oracle(&world.work, path), "{path} in {nodes:?}");
            }
        });
    }

    #[test]
    fn writes_stay_inside(
        nodes in proptest::collection::vec(node(), 1..14),
        paths in proptest::collection::vec(path(), 1..20),
    ) {
        on_each_walker(|world| {
            build(world, &nodes);
            for path in &paths {
                let led = oracle(&world.work, path);
                let written = world.root.write(path, b"written", true, LIMIT);
                if led == Led::Outside {
                    assert!(matches!(written, Err(JailError::OutsideRoot { .. })), "{path} in {nodes:?}: {written:?}");
                }
                if written.is_ok() {
                    let real = world.at(path).canonicalize().unwrap();
                    assert!(real.starts_with(&world.work), "{path} in {nodes:?}");
                    assert_eq!(fs::read_to_string(real).unwrap(), "written");
                }
                jail::fuzzing::resolve(&world.root, path);
                jail::fuzzing::path_text(path);
            }
            world.assert_outside_is_whole();
            assert_eq!(names(&world.home), ["work"]);
        });
    }
}
