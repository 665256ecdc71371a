//! `deskhand demo`: it does what it shows, and leaves nothing behind whatever ends it.

#![cfg(all(unix, feature = "platform"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

use common::{Desk, Going, finish};

/// The demo, with a folder of its own for its temporary folder.
fn demo(desk: &Desk) -> Command {
    let mut command = desk.command(&["demo"]);
    command.env("TMPDIR", desk.path("run"));
    command
}

/// Nothing of it runs, and none of its files is there.
fn assert_nothing_is_left(folder: &Path) {
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
        assert!(!arguments.contains(folder.to_str().unwrap()), "{arguments}");
    }
}

#[test]
fn every_step_does_what_it_promises_and_nothing_is_left() {
    let desk = Desk::new();
    let ended = finish(demo(&desk), "").expect(0);
    for promised in [
        "FAIL  three books, a tenth off: expected 2700, got 3000",
        "ok    three books, a tenth off",
        "PATH_OUTSIDE_ALLOWED_ROOT",
        "shell: denied (rule)",
        "off until: deskhand connect",
        "MACHINE_OFFLINE",
    ] {
        assert!(ended.stdout.contains(promised), "{promised}: {ended:#?}");
    }
    assert_eq!(ended.stderr, "");
    assert_nothing_is_left(&desk.path("run"));
    assert!(!desk.path("state").exists(), "the person's own installation is not touched");
}

#[test]
fn interrupted_in_the_middle_it_clears_everything_away() {
    let desk = Desk::new();
    for until in ["deskhand run", "exit code 1"] {
        let mut demo = Going::start(demo(&desk), false);
        demo.await_line(until);
        demo.signal("INT");
        assert_eq!(demo.ended(), 1);
        assert_nothing_is_left(&desk.path("run"));
    }
}

#[test]
fn it_clears_everything_away_when_nobody_reads_any_more() {
    let desk = Desk::new();
    let mut process = demo(&desk).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(1), "after {line}");
    assert_nothing_is_left(&desk.path("run"));
}
