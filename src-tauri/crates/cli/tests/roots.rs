//! `deskhand roots`

mod common;

use common::Desk;

#[test]
fn folders_are_added_listed_and_removed() {
    let desk = Desk::new();
    let folder = desk.path("share/more");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.canonicalize().unwrap().display().to_string();
    desk.run(&["roots", "add", &folder]).expect(0);
    let again = desk.run(&["roots", "add", &folder]).expect(0);
    assert!(again.stdout.contains("already"), "{}", again.stdout);
    let listed = desk.run(&["roots", "list"]).expect(0).stdout;
    // Windows' canonical form is not for people.
    let shown = folder.trim_start_matches(r"\\?\");
    assert_eq!(listed, format!("{}\n{shown}\n", desk.path("share").display()));
    desk.run(&["roots", "remove", &folder]).expect(0);
    let gone = desk.run(&["roots", "remove", &folder]).expect(64);
    assert!(gone.stderr.contains("not shared"), "{}", gone.stderr);
    assert_eq!(desk.run(&["roots", "list"]).expect(0).stdout.lines().count(), 1);
}

#[test]
fn a_relative_folder_is_one_of_the_current_folder() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("share/x")).unwrap();
    let mut command = desk.command(&["roots", "add", "x"]);
    command.current_dir(desk.path("share"));
    common::finish(command, "").expect(0);
    let listed = desk.run(&["roots", "list"]).expect(0).stdout;
    assert!(
        listed.ends_with(&format!("{}\n", std::path::Path::new("share").join("x").display())),
        "{listed}"
    );
}

#[test]
fn what_may_not_be_shared_is_refused_and_the_configuration_left_alone() {
    let desk = Desk::new();
    desk.run(&["stop"]).expect(0); // makes the state folder
    let before = std::fs::read(desk.path("config/config.toml")).unwrap();
    for folder in ["state", "config", "share/none", "config/config.toml"] {
        let ended = desk.run(&["roots", "add", desk.path(folder).to_str().unwrap()]).expect(78);
        assert!(ended.stderr.contains("cannot be shared"), "{folder}: {}", ended.stderr);
    }
    if cfg!(unix) {
        for folder in ["/", "/etc", "/proc"] {
            desk.run(&["roots", "add", folder]).expect(78);
        }
    }
    assert_eq!(std::fs::read(desk.path("config/config.toml")).unwrap(), before);
}

#[test]
fn a_folder_that_is_gone_can_still_be_removed() {
    let desk = Desk::new();
    std::fs::remove_dir(desk.path("share")).unwrap();
    let listed = desk.run(&["roots", "list"]).expect(0);
    let share = desk.path("share");
    for part in ["does not exist", "mkdir", &format!("deskhand roots remove {}", share.display())] {
        assert!(listed.stderr.contains(part), "{part}: {}", listed.stderr);
    }
    desk.run(&["roots", "remove", desk.path("share").to_str().unwrap()]).expect(0);
    assert_eq!(desk.run(&["roots", "list"]).expect(0).stdout, "");
}
