//! Consent prompts as windows: answered by a person with the pointer, attacked as an agent would.

use std::time::{Duration, Instant};

use crate::screen::until;
use crate::stage::Stage;
use crate::tray::Tray;

/// Where the page has its buttons, from the window's lower left corner. `ui/src/prompt/Answers.svelte` places them.
mod at {
    pub(super) const DENY: (i32, i32) = (90, -85);
    pub(super) const ALLOW_ONCE: (i32, i32) = (255, -85);
    pub(super) const ALLOW_FOR: (i32, i32) = (425, -85);
    pub(super) const ALLOW_CHAT: (i32, i32) = (380, -150);
    pub(super) const DENY_AND_DISCONNECT: (i32, i32) = (95, -30);
}

fn press(stage: &Stage, window: &str, (x, y): (i32, i32)) {
    let (_, height) = stage.screen.size(window);
    stage.screen.click(window, x, height + y);
}

/// Presses until it has worked: the first press on a window without the focus only gives it that, and Allow is closed for
/// 700 ms after.
fn press_until(stage: &Stage, window: &str, place: (i32, i32), mut done: impl FnMut() -> bool) {
    let mut next = Instant::now();
    until("the press is taken", || {
        if !done() && Instant::now() >= next {
            press(stage, window, place);
            next = Instant::now() + Duration::from_secs(2);
        }
        done()
    });
}

#[test]
fn a_command_runs_when_a_person_clicks_allow_and_not_before() {
    let stage = Stage::in_tray();
    let session = stage.session();
    let command = stage.command(&session, "echo allowed > proof");
    let window = stage.prompt();
    stage.screen.settle(&window);
    stage.screen.picture("prompt");
    assert!(!stage.has("proof"));
    press_until(&stage, &window, at::ALLOW_ONCE, || stage.has("proof"));
    stage.no_prompt();
    assert_eq!(stage.refusal(command), None);
    // Once means once.
    let again = stage.command(&session, "echo again > proof2");
    stage.prompt();
    assert!(!stage.has("proof2"));
    drop(again);
}

#[test]
fn deny_denies() {
    let stage = Stage::in_tray();
    let command = stage.command(&stage.session(), "touch proof");
    let window = stage.prompt();
    stage.screen.settle(&window);
    press(&stage, &window, at::DENY);
    assert_eq!(stage.refusal(command).as_deref(), Some("CONSENT_REQUIRED"));
    assert!(!stage.has("proof"));
    stage.no_prompt();
}

#[test]
fn for_this_chat_settles_what_comes_after() {
    let stage = Stage::in_tray();
    let session = stage.session();
    let command = stage.command(&session, "touch one");
    let window = stage.prompt();
    stage.screen.settle(&window);
    stage.screen.focus(&window);
    stage.screen.settle(&window);
    press(&stage, &window, at::ALLOW_FOR);
    stage.screen.settle(&window);
    stage.screen.picture("prompt-allow-for");
    press_until(&stage, &window, at::ALLOW_CHAT, || stage.has("one"));
    assert_eq!(stage.refusal(command), None);
    assert_eq!(stage.refusal(stage.command(&session, "touch two")), None);
    assert!(stage.has("two"));
}

#[test]
fn deny_and_disconnect_ends_the_chat() {
    let stage = Stage::in_tray();
    let command = stage.command(&stage.session(), "touch proof");
    let window = stage.prompt();
    stage.screen.settle(&window);
    press(&stage, &window, at::DENY_AND_DISCONNECT);
    assert!(stage.refusal(command).is_some());
    let tray = Tray::of(&stage.screen);
    until("the chat has ended", || !tray.entries().iter().any(|entry| entry.label == "Disconnect this chat"));
    assert!(!stage.has("proof"));
}

#[test]
fn closing_the_question_denies() {
    let stage = Stage::in_tray();
    let command = stage.command(&stage.session(), "touch proof");
    let window = stage.prompt();
    stage.screen.settle(&window);
    stage.screen.close(&window);
    assert_eq!(stage.refusal(command).as_deref(), Some("CONSENT_REQUIRED"));
    assert!(!stage.has("proof"));
}

#[test]
fn enter_and_space_never_allow() {
    let stage = Stage::in_tray();
    let command = stage.command(&stage.session(), "touch proof");
    let window = stage.prompt();
    stage.screen.settle(&window);
    stage.screen.focus(&window);
    std::thread::sleep(Duration::from_secs(1)); // past the 700 ms: it is the keys that are refused
    for _ in 0..3 {
        stage.screen.keys(&["Tab", "space", "Return", "KP_Enter"]);
        if !stage.screen.has_prompt() {
            break; // one of them was Deny's
        }
    }
    assert!(!stage.has("proof"));
    drop(command);
}

/// What an agent with injected input would do: click where Allow will be, from before the window is there.
#[test]
fn clicks_in_the_first_700_ms_do_not_allow() {
    let stage = Stage::in_tray();
    let session = stage.session();
    let command = stage.command(&session, "touch proof");
    let window = stage.prompt();
    let seen = Instant::now();
    while seen.elapsed() < Duration::from_millis(500) {
        press(&stage, &window, at::ALLOW_ONCE);
    }
    assert!(!stage.has("proof"), "a click that nobody could have meant has allowed it");
    drop(command);
}

#[test]
fn the_prompt_does_not_take_the_focus_from_what_the_person_types_in() {
    let mut stage = Stage::in_tray();
    let session = stage.session();
    let editor = stage.screen.editor();
    stage.screen.focus(&editor);
    let command = stage.command(&session, "touch proof");
    let prompt = stage.prompt();
    stage.screen.settle(&prompt);
    assert_eq!(stage.screen.run("xdotool", &["getwindowfocus"]), editor);
    stage.screen.text("secret");
    stage.screen.keys(&["Return"]);
    assert!(!stage.has("proof"));
    assert!(stage.screen.has_prompt(), "what was typed elsewhere has answered it");
    drop(command);
}

#[test]
fn a_megabyte_of_command_and_bidi_text_are_shown_and_can_be_denied() {
    let stage = Stage::in_tray();
    let line = format!("echo '\u{202e}txt.exe' {}", "x".repeat(250_000));
    let command = stage.command(&stage.session(), &line);
    let window = stage.prompt();
    stage.screen.settle(&window);
    stage.screen.picture("prompt-long");
    press_until(&stage, &window, at::DENY, || !stage.screen.has_prompt());
    assert_eq!(stage.refusal(command).as_deref(), Some("CONSENT_REQUIRED"));
}

#[test]
fn a_locked_screen_denies_what_is_asked_and_what_is_open() {
    let stage = Stage::in_tray();
    let session = stage.session();
    let open = stage.command(&session, "touch proof");
    stage.prompt();
    stage.screen.lock(true);
    assert_eq!(stage.refusal(open).as_deref(), Some("CONSENT_REQUIRED"));
    assert_eq!(stage.refusal(stage.command(&session, "touch proof")).as_deref(), Some("CONSENT_REQUIRED"));
    stage.screen.lock(false);
    let asked = stage.command(&session, "touch proof");
    stage.prompt();
    assert!(!stage.has("proof"));
    drop(asked);
}

#[test]
fn without_an_answer_it_is_denied_and_goes_away() {
    let stage = Stage::in_tray();
    let session = stage.session();
    // Asked without waiting for the answer as long as the other tests do: it takes the whole minute.
    drop(stage.command(&session, "touch proof"));
    stage.prompt();
    let deadline = Instant::now() + Duration::from_secs(120);
    while stage.screen.has_prompt() {
        assert!(Instant::now() < deadline, "the prompt stays");
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(!stage.has("proof"));
    let said = stage.rig.logged("CONSENT");
    assert!(said.iter().any(|record| record.to_string().contains("timed_out")), "{said:?}");
}
