//! A command of an agent's runs `deskhand` itself.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::Desk;
use exec::{CommandSpec, Cwd, Host, Mark, Outcome, Program};

#[ctor::ctor(unsafe)]
fn be_the_supervisor_if_asked() {
    exec::supervisor::run_if_asked();
}

/// As a command of another installation, or of this one before it ended: nothing runs that could be asked.
fn as_a_command(desk: &Desk, host: &Host, arguments: &[&str]) -> Outcome {
    let command = desk.command(arguments);
    let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
    let spec = CommandSpec {
        program: Program::Argv(
            std::iter::once(command.get_program()).chain(command.get_args()).map(text).collect(),
        ),
        cwd: Cwd::open(&desk.path("share")).unwrap(),
        timeout: Duration::from_secs(60),
        env: command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect(),
        output_limit: 100_000,
    };
    host.start("chat", spec).unwrap().wait()
}

#[test]
fn what_is_the_persons_to_do_is_refused_to_a_command() {
    let desk = Desk::new();
    let host = Host::with_mark(Mark(std::process::id())).unwrap();
    if !host.is_marking() {
        return; // within a command of another Deskhand, all of this is refused in any case
    }
    let before = std::fs::read(desk.path("config/config.toml")).unwrap();
    let folder = desk.path("home").display().to_string();
    let share = desk.path("share").display().to_string();
    let zip = desk.path("share/log.zip").display().to_string();
    let refused: [&[&str]; 12] = [
        &["run"],
        &["login", "--with-token"],
        &["logout"],
        &["roots", "add", &folder],
        &["roots", "remove", &share],
        &["audit", "rotate"],
        &["audit", "prune", "--older-than", "0s"],
        &["audit", "export", &zip],
        &["audit", "key", "--show"],
        &["service", "install"],
        &["service", "uninstall"],
        &["--state-dir", &folder, "roots", "add", &folder],
    ];
    for arguments in refused {
        let outcome = as_a_command(&desk, &host, arguments);
        assert_eq!(outcome.exit_code, 78, "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains("only the person"), "{arguments:?}: {outcome:?}");
    }
    assert_eq!(std::fs::read(desk.path("config/config.toml")).unwrap(), before);
    assert!(!desk.path("state").exists(), "nothing was begun");
    let allowed: [(&[&str], i32); 4] =
        [(&["roots", "list"], 0), (&["status"], 69), (&["audit", "tail"], 0), (&["stop"], 0)];
    for (arguments, code) in allowed {
        let outcome = as_a_command(&desk, &host, arguments);
        assert_eq!(outcome.exit_code, code, "{arguments:?}: {outcome:?}");
    }
    desk.run(&["roots", "add", &folder]).expect(0);
    // Off is taken back by the person alone.
    desk.run(&["stop"]).expect(0);
    let outcome = as_a_command(&desk, &host, &["connect"]);
    assert_eq!(outcome.exit_code, 78, "{outcome:?}");
    assert!(outcome.stderr.contains("only the person"), "{outcome:?}");
    assert!(desk.run(&["status"]).expect(69).stdout.contains("stays off"));
    desk.run(&["connect"]).expect(0);
    assert_eq!(desk.run(&["status"]).expect(69).stdout, "deskhand is not running\n");
}
