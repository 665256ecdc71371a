//! The tray: what it shows, and what its entries do.

use serde_json::json;

use crate::screen::until;
use crate::stage::{MAIN, Stage};
use crate::tray::Tray;

#[test]
fn the_tray_shows_the_state_and_its_entries_do_what_they_say() {
    let mut stage = Stage::new();
    let app = stage.start(&["--hidden"]);
    stage.wait(stage.platform.machine(None));
    let tray = Tray::of(&stage.screen);
    tray.entry("Disconnect");
    stage.screen.picture("tray");
    assert!(!stage.screen.has_window(MAIN), "hidden means no window");
    tray.click("Pause for 15 minutes");
    tray.entry("Paused: every request is refused");
    tray.click("Resume");
    tray.entry("Pause for 15 minutes");
    tray.click("Open Deskhand");
    stage.screen.window(MAIN);
    tray.click("Disconnect");
    tray.entry("Connect…");
    assert_eq!(stage.wait(stage.platform.get("/api/copilot/executors")), json!({"executors": []}));
    tray.click("Connect…");
    stage.wait(stage.platform.machine(None));
    tray.click("Stop everything");
    tray.entry("Connect…");
    until("the kill switch is in the log", || stage.rig.logged("KILL_SWITCH").len() == 1);
    tray.click("Quit");
    assert!(stage.screen.ended(app).success());
}

#[test]
fn a_chat_is_in_the_menu_and_can_be_ended_there() {
    let stage = Stage::in_tray();
    let tray = Tray::of(&stage.screen);
    let session = stage.session();
    let chat = format!("Chat {} — {}", &session[..8], stage.rig.root.display());
    until("the chat is in the menu", || {
        tray.entries().iter().any(|entry| chat.starts_with(entry.label.trim_end_matches('…')))
    });
    tray.click("Disconnect this chat");
    until("no chat is left", || !tray.entries().iter().any(|entry| entry.label == "Disconnect this chat"));
}

#[test]
fn without_a_tray_the_window_stays_in_the_task_bar() {
    let mut stage = Stage::new();
    stage.screen.close_panel();
    stage.start(&[]);
    let window = stage.screen.window(MAIN);
    stage.wait(stage.platform.machine(None));
    stage.screen.picture("no-tray");
    stage.screen.close(&window);
    until("it is minimised", || !stage.screen.has_window(MAIN));
    assert!(
        !stage.screen.run("xdotool", &["search", "--name", MAIN]).is_empty(),
        "the window is gone, and nothing is left"
    );
}
