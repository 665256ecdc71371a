//! `deskhand service` with a stand-in for systemd's own tool.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Desk, fake};

const RECORDS_ITSELF: &str = r#"echo "$@" >> "$0.called""#;

fn called(desk: &Desk) -> Vec<String> {
    let text = std::fs::read_to_string(desk.path("bin/systemctl.called")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_service_is_installed_for_this_installation_and_removed() {
    let desk = Desk::new();
    fake(&desk, "systemctl", RECORDS_ITSELF);
    std::fs::write(desk.path("pass%word"), "x").unwrap();
    let passphrase = desk.path("pass%word").display().to_string();
    desk.run(&["service", "install", "--passphrase-file", &passphrase]).expect(0);

    let unit_path = desk.path("home/.config/systemd/user/deskhand.service");
    let unit = std::fs::read_to_string(&unit_path).unwrap();
    let config = desk.path("config").display().to_string();
    let state = desk.path("state").display().to_string();
    let line = format!(
        "ExecStart=\"{}\" \"--config-dir\" \"{config}\" \"--state-dir\" \"{state}\" run\n",
        env!("CARGO_BIN_EXE_deskhand")
    );
    assert!(unit.contains(&line), "{unit}");
    let mut settings = unit.lines().filter(|line| !line.starts_with('#'));
    assert!(settings.all(|line| !line.contains('@')), "{unit}");
    let drop_in = desk.path("home/.config/systemd/user/deskhand.service.d/passphrase.conf");
    assert!(std::fs::read_to_string(&drop_in).unwrap().contains("pass%%word"));
    assert_eq!(
        called(&desk),
        ["--user daemon-reload", "--user enable deskhand.service", "--user restart deskhand.service"]
    );
    desk.run(&["service", "status"]).expect(0);

    // Installed again without a passphrase it has none any more.
    desk.run(&["service", "install"]).expect(0);
    assert!(!drop_in.exists());
    desk.run(&["service", "uninstall"]).expect(0);
    assert!(!unit_path.exists());
    assert!(called(&desk).contains(&"--user disable --now deskhand.service".to_owned()));
    let gone = desk.run(&["service", "status"]).expect(69);
    assert_eq!(gone.stdout, "not installed\n");
    assert_eq!(desk.run(&["service", "uninstall"]).expect(0).stdout, "it was not installed\n");
}

#[test]
fn where_systemd_cannot_be_reached_the_person_is_told_what_is_left_to_do() {
    let desk = Desk::new();
    fake(&desk, "systemctl", "echo 'Failed to connect to bus' >&2; exit 1");
    let ended = desk.run(&["service", "install"]).expect(69);
    assert!(ended.stderr.contains("systemctl --user enable --now deskhand.service"), "{}", ended.stderr);
    assert!(ended.stderr.contains("Failed to connect to bus"), "{}", ended.stderr);
    let status = desk.run(&["service", "status"]).expect(69);
    assert!(status.stdout.contains("not running"), "{}", status.stdout);
}

#[test]
fn a_service_that_could_not_run_is_not_installed() {
    let desk = Desk::new();
    fake(&desk, "systemctl", RECORDS_ITSELF);
    desk.configure("nonsense = 1");
    desk.run(&["service", "install"]).expect(78);
    desk.configure("");
    desk.run(&["service", "install", "--passphrase-file", "/nonexistent"]).expect(78);
    assert_eq!(called(&desk), [""; 0]);
}
