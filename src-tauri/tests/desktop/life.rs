//! From the start to the end of the app: sign-in, one instance, take-over, the kill switch's keys, crashes, log-out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

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
    let machine = stage.wait(stage.platform.machine(None));
    until("the folder is offered", || {
        let roots = stage.wait(stage.platform.browse(&machine, None, None));
        roots["entries"].as_array().is_some_and(|entries| !entries.is_empty())
    });
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

/// A command that runs until it is killed; its process.
fn endless(stage: &Stage) -> PathBuf {
    drop(stage.command(&stage.session(), "echo $$ > pid; exec sleep 600"));
    let mut pid = String::new();
    until("the command runs", || {
        pid = std::fs::read_to_string(stage.rig.root.join("pid")).unwrap_or_default();
        pid.ends_with('\n')
    });
    Path::new("/proc").join(pid.trim())
}

/// Presses the keys; all must end, and stay off.
fn keys_stop(stage: &Stage) {
    let command = endless(stage);
    let pressed = Instant::now();
    stage.screen.keys(&["ctrl+alt+shift+Escape"]);
    until("the command is dead", || !command.exists());
    println!("dead {} ms after the keys were pressed", pressed.elapsed().as_millis());
    until("it is in the log", || !stage.rig.logged("KILL_SWITCH").is_empty());
    until("no machine is left", || {
        stage.wait(stage.platform.get("/api/copilot/executors"))["executors"] == serde_json::json!([])
    });
    Tray::of(&stage.screen).entry("Connect…");
}

#[test]
fn the_keys_of_the_kill_switch_work_without_a_window() {
    let mut stage = Stage::new();
    stage.screen.shell = "allow";
    stage.start(&["--hidden"]);
    keys_stop(&stage);
}

#[test]
fn the_keys_of_the_kill_switch_work_while_the_window_hangs() {
    let mut stage = Stage::new();
    stage.screen.shell = "allow";
    let app = stage.start(&[]);
    let window = stage.screen.window(MAIN);
    stage.screen.settle(&window);
    let pages = stage.screen.run("pgrep", &["-P", &app.to_string(), "-f", "WebKitWebProcess"]);
    assert!(!pages.is_empty(), "no page to hang");
    for page in pages.lines() {
        stage.screen.run("kill", &["-STOP", page]);
    }
    keys_stop(&stage);
}

#[test]
fn a_folder_is_picked_in_the_desktops_own_dialog() {
    let mut stage = Stage::new();
    std::fs::remove_file(stage.rig.dirs.state.join("app.json")).unwrap();
    let folder = stage.screen.home().join("papers");
    std::fs::create_dir(&folder).unwrap();
    stage.start(&[]);
    let window = stage.screen.window(MAIN);
    stage.screen.settle(&window);
    stage.screen.focus(&window);
    stage.screen.keys(&["shift+Tab", "Return"]);
    stage.screen.settle(&window);
    stage.screen.keys(&["Tab", "Tab", "Tab", "Return"]);
    stage.screen.settle(&window);
    stage.screen.keys(&["Tab", "Tab", "Return"]);
    let dialog = stage.screen.window("^Choose a folder");
    stage.screen.settle(&dialog);
    stage.screen.focus(&dialog);
    // The first character opens the field that the others go to.
    let (first, rest) = folder.to_str().unwrap().split_at(1);
    stage.screen.text(first);
    stage.screen.settle(&dialog);
    stage.screen.text(rest);
    stage.screen.picture("folder-dialog");
    stage.screen.keys(&["Return"]);
    let listed = || std::fs::read_to_string(stage.rig.dirs.config_file()).unwrap();
    until("the folder is in the configuration", || listed().contains(folder.to_str().unwrap()));
}

#[test]
fn the_app_takes_over_from_the_program_in_the_background() {
    let mut stage = Stage::new();
    let headless = stage.screen.headless(&stage.rig.dirs);
    let before = stage.wait(stage.platform.machine(None));
    stage.start(&["--hidden"]);
    let question = stage.screen.window("^Deskhand is running$");
    stage.screen.settle(&question);
    stage.screen.picture("take-over");
    stage.screen.focus(&question);
    stage.screen.keys(&["Return"]);
    stage.screen.ended(headless);
    stage.wait(stage.platform.machine(Some(&before)));
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
