//! From the start to the end of the app: sign-in, one instance, take-over, the kill switch's keys, crashes, log-out.

use std::process::Command;

use system_tests::reference::{PASSWORD, USER};

use crate::screen::until;
use crate::stage::{MAIN, Stage};
use crate::tray::Tray;

/// The person in their browser, on the platform's own pages.
fn approve(address: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../ui/tests/person/sign-in.mjs");
    let browser = Command::new("node").args([script, address, USER, PASSWORD, "approve"]).output().unwrap();
    assert!(browser.status.success(), "{}", String::from_utf8_lossy(&browser.stderr));
}

/// What a person does on the first day, by keyboard: what this is, sign in, a folder; then the agent writes in it.
#[test]
fn from_the_first_run_to_the_first_file() {
    let mut stage = Stage::new();
    std::fs::remove_file(stage.rig.dirs.state.join("app.json")).unwrap();
    stage.rig.vault.clear_tokens().unwrap();
    std::fs::write(
        stage.rig.dirs.config_file(),
        format!("platform_url = {:?}\nroots = []\n[capabilities]\nshell = true\n", stage.platform.url()),
    )
    .unwrap();
    stage.start(&[]);
    let window = stage.screen.window(MAIN);
    stage.screen.settle(&window);
    stage.screen.focus(&window);
    stage.screen.picture("first-run-1");
    stage.screen.keys(&["shift+Tab", "Return"]);
    stage.screen.settle(&window);
    stage.screen.picture("first-run-2");
    stage.screen.keys(&["Tab", "Return"]);
    let address = stage.screen.opened();
    stage.screen.settle(&window);
    stage.screen.picture("first-run-2-waiting");
    approve(&address);
    stage.wait(stage.platform.machine(None));
    stage.screen.settle(&window);
    stage.screen.picture("first-run-2-signed-in");
    stage.screen.keys(&["Tab", "Tab", "Tab", "Return"]);
    stage.screen.settle(&window);
    stage.screen.picture("first-run-3");
    stage.screen.keys(&["Tab", "Return"]);
    let folder = stage.screen.home().join("Deskhand");
    until("the folder is made", || folder.is_dir());
    let session = stage.session();
    let written = serde_json::json!({"path": "hello.txt", "content": "from the agent"});
    stage.wait(stage.platform.tool(&session, "write_file", written));
    assert_eq!(std::fs::read_to_string(folder.join("hello.txt")).unwrap(), "from the agent");
    stage.screen.picture("home");
}

#[test]
fn a_second_start_opens_the_window_of_the_first() {
    let mut stage = Stage::in_tray();
    assert!(!stage.screen.has_window(MAIN));
    let second = stage.start(&[]);
    assert!(stage.screen.ended(second).success());
    stage.screen.window(MAIN);
}

/// The keys work with no window open, while a command runs, and all of it is gone.
#[test]
fn the_keys_of_the_kill_switch_work_without_a_window() {
    let stage = Stage::in_tray();
    let session = stage.session();
    stage.wait(stage.platform.tool(&session, "write_file", serde_json::json!({"path": "a", "content": "a"})));
    stage.screen.keys(&["ctrl+alt+shift+Escape"]);
    until("it is off", || !stage.rig.logged("KILL_SWITCH").is_empty());
    let tray = Tray::of(&stage.screen);
    tray.entry("Connect…");
}

#[test]
fn a_killed_app_comes_back_as_it_was() {
    let mut stage = Stage::new();
    let app = stage.start(&["--hidden"]);
    let before = stage.wait(stage.platform.machine(None));
    assert!(Command::new("kill").args(["-KILL", &app.to_string()]).status().unwrap().success());
    stage.screen.ended(app);
    stage.start(&["--hidden"]);
    stage.wait(stage.platform.machine(Some(&before)));
}

#[test]
fn a_log_out_ends_it_in_order() {
    let mut stage = Stage::new();
    let app = stage.start(&["--hidden"]);
    stage.wait(stage.platform.machine(None));
    assert!(Command::new("kill").args(["-TERM", &app.to_string()]).status().unwrap().success());
    assert!(stage.screen.ended(app).success());
    assert_eq!(stage.rig.logged("SHIM_STOP").len(), 1);
}

/// No keychain and no passphrase from the environment: it is asked for, and a wrong one does not open.
#[test]
fn the_passphrase_is_asked_for_where_there_is_no_keychain() {
    let mut stage = Stage::new();
    stage.screen.has_passphrase = false;
    stage.start(&["--hidden"]);
    let window = stage.screen.window("^Unlock Deskhand$");
    stage.screen.settle(&window);
    stage.screen.focus(&window);
    stage.screen.text("wrong");
    stage.screen.keys(&["Return"]);
    stage.screen.settle(&window);
    stage.screen.picture("unlock");
    assert!(stage.screen.has_window("^Unlock Deskhand$"));
    stage.screen.keys(&["ctrl+a"]);
    stage.screen.text(system_tests::rig::PASSPHRASE);
    stage.screen.keys(&["Return"]);
    stage.wait(stage.platform.machine(None));
    until("the question is gone", || !stage.screen.has_window("^Unlock Deskhand$"));
}
