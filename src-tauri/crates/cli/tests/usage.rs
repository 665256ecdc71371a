//! The command line as a person and a script meet it.

mod common;

use common::Desk;

const COMMANDS: [&[&str]; 29] = [
    &["run"],
    &["login"],
    &["logout"],
    &["connect"],
    &["disconnect"],
    &["pause"],
    &["resume"],
    &["stop"],
    &["status"],
    &["doctor"],
    &["roots"],
    &["roots", "add"],
    &["roots", "remove"],
    &["roots", "list"],
    &["audit"],
    &["audit", "tail"],
    &["audit", "show"],
    &["audit", "verify"],
    &["audit", "verify-all"],
    &["audit", "rotate"],
    &["audit", "prune"],
    &["audit", "export"],
    &["audit", "key"],
    &["service"],
    &["service", "install"],
    &["service", "uninstall"],
    &["service", "status"],
    #[cfg(feature = "platform")]
    &["platform"],
    #[cfg(feature = "platform")]
    &["demo"],
    #[cfg(not(feature = "platform"))]
    &["run"],
    #[cfg(not(feature = "platform"))]
    &["run"],
];

#[test]
fn every_command_takes_the_global_flags_and_explains_itself() {
    let desk = Desk::new();
    for command in COMMANDS {
        let flags = ["--config-dir", "c", "--state-dir", "s", "--platform-url", "u", "--help"];
        let help = desk.run(&[command, &flags].concat()).expect(0);
        assert!(help.stdout.contains("Usage: deskhand"), "{command:?}: {}", help.stdout);
        for flag in ["--config-dir", "--state-dir", "--platform-url"] {
            assert!(help.stdout.contains(flag), "{command:?} {flag}: {}", help.stdout);
        }
        assert_eq!(help.stderr, "");
    }
}

#[test]
fn help_tells_the_exit_codes_and_version_the_version() {
    let desk = Desk::new();
    let help = desk.run(&["--help"]).expect(0);
    for code in ["64", "65", "69", "77", "78"] {
        assert!(help.stdout.contains(&format!("  {code}  ")), "{}", help.stdout);
    }
    let version = desk.run(&["--version"]).expect(0);
    assert_eq!(version.stdout.trim(), format!("deskhand {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_is_no_command_line_exits_64_and_says_so_on_standard_error() {
    let desk = Desk::new();
    let wrong: [&[&str]; 9] = [
        &[],
        &["explode"],
        &["run", "--explode"],
        &["roots"],
        &["audit", "show"],
        &["audit", "show", "one"],
        &["audit", "prune"],
        &["audit", "prune", "--older-than", "90"],
        &["login", "--no-browser", "--with-token"],
    ];
    for arguments in wrong {
        let ended = desk.run(arguments).expect(64);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert!(!ended.stderr.is_empty(), "{arguments:?}");
    }
    assert!(desk.run(&["statsu"]).expect(64).stderr.contains("'status'"));
}

#[test]
fn a_key_that_does_not_exist_is_an_error_that_names_the_nearest() {
    let desk = Desk::new();
    desk.configure("max_concurent = 2");
    for arguments in [&["run"][..], &["login", "--with-token"], &["logout"], &["roots", "list"]] {
        let ended = desk.run(arguments).expect(78);
        assert!(ended.stderr.contains("did you mean `max_concurrent`"), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("line 2"), "{}", ended.stderr);
    }
    let doctor = desk.run(&["doctor"]).expect(78);
    assert!(doctor.stdout.contains("did you mean `max_concurrent`"), "{}", doctor.stdout);
}

#[test]
fn a_variable_that_does_not_exist_is_a_warning() {
    let desk = Desk::new();
    let mut command = desk.command(&["roots", "list"]);
    command.env("DESKHAND_MAX_CONCURENT", "2");
    let ended = common::finish(command, "").expect(0);
    assert!(ended.stderr.contains("DESKHAND_MAX_CONCURRENT"), "{}", ended.stderr);
    assert_eq!(ended.stdout.trim(), desk.path("share").display().to_string());
}

#[test]
fn flags_win_over_variables_and_an_empty_variable_is_none() {
    let desk = Desk::new();
    let other = desk.path("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("config.toml"), "roots = []\n").unwrap();
    let listed = desk.run(&["roots", "list", "--config-dir", other.to_str().unwrap()]).expect(0);
    assert_eq!(listed.stdout, "");
    let mut command = desk.bare(&["roots", "list"]);
    command.env("DESKHAND_CONFIG_DIR", "").env("DESKHAND_STATE_DIR", "");
    let listed = common::finish(command, "").expect(0);
    // Windows asks the profile, which no variable moves: there it may be a person's own configuration.
    if cfg!(unix) {
        // The usual folder, where there is no configuration: the usual root, which does not exist.
        assert_eq!(listed.stdout.trim(), desk.path("home/Deskhand").display().to_string());
        assert!(listed.stderr.contains("does not exist"), "{}", listed.stderr);
    }
}

#[test]
fn a_platform_in_plain_text_elsewhere_is_refused() {
    let desk = Desk::new();
    let ended = desk.run(&["login", "--with-token", "--platform-url", "http://platform.example"]).expect(64);
    assert!(ended.stderr.contains("not encrypted"), "{}", ended.stderr);
}

#[test]
fn run_without_a_sign_in_exits_77_and_leaves_no_process() {
    let desk = Desk::new();
    let ended = desk.run(&["run"]).expect(77);
    assert!(ended.stderr.contains("deskhand login"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    desk.run(&["status"]).expect(69);
}

/// Windows and macOS are never without a keychain.
#[cfg(target_os = "linux")]
#[test]
fn without_a_keychain_and_a_passphrase_nothing_that_needs_secrets_starts() {
    let desk = Desk::new();
    for arguments in [&["run"][..], &["logout"], &["audit", "verify-all"]] {
        let mut command = desk.command(arguments);
        command.env_remove("DESKHAND_KEYCHAIN_PASSPHRASE");
        let ended = common::finish(command, "").expect(78);
        assert!(ended.stderr.contains("DESKHAND_KEYCHAIN_PASSPHRASE"), "{}", ended.stderr);
    }
}

#[test]
fn a_passphrase_that_cannot_be_used_keeps_nothing_from_working_that_needs_none() {
    let desk = Desk::new();
    let mut command = desk.command(&["roots", "list"]);
    command.env("DESKHAND_KEYCHAIN_PASSPHRASE", "");
    common::finish(command, "").expect(0);
}

#[test]
fn what_is_no_token_is_refused_and_not_repeated() {
    let desk = Desk::new();
    let inputs = [
        "",
        "tok-secret-1",
        "{\"access_token\": \"tok-secret-1\", ",
        "{\"access_token\": \"\", \"refresh_token\": \"tok-secret-1\", \"expires_in\": 60}",
        "{\"access_token\": \"tok-secret-1\", \"refresh_token\": 7, \"expires_in\": 60}",
        "{\"access_token\": \"tok-secret-1\", \"refresh_token\": \"r\", \"expires_in\": -5}",
    ];
    for input in inputs {
        let ended = desk.run_with(&["login", "--with-token"], input).expect(64);
        assert!(!ended.stderr.contains("tok-secret"), "{}", ended.stderr);
        assert!(ended.stderr.starts_with("deskhand: "), "{}", ended.stderr);
    }
    let long = format!("{{\"access_token\": \"{}\"}}", "x".repeat(70_000));
    desk.run_with(&["login", "--with-token"], &long).expect(64);
    desk.run(&["run"]).expect(77);
}

#[test]
fn logging_out_of_nothing_is_fine() {
    let ended = Desk::new().run(&["logout"]).expect(0);
    assert_eq!(ended.stdout, "nobody was signed in\n");
}

#[test]
fn commands_to_a_process_that_is_not_there_exit_69() {
    let desk = Desk::new();
    for command in ["connect", "pause", "resume", "status"] {
        let ended = desk.run(&[command]).expect(69);
        assert!((ended.stdout + &ended.stderr).contains("not running"), "{command}");
    }
    assert_eq!(desk.run(&["status", "--json"]).expect(69).json()["running"], false);
}

#[test]
fn stop_and_disconnect_said_while_none_runs_keep_the_next_one_off() {
    for command in ["stop", "disconnect"] {
        let desk = Desk::new();
        desk.run(&[command]).expect(0);
        let status = desk.run(&["status", "--json"]).expect(69).json();
        assert!(status["off"].as_str().unwrap().contains("deskhand connect"), "{status}");
    }
}

#[cfg(feature = "platform")]
#[test]
fn a_platform_with_options_it_cannot_use_says_so_and_nothing_else() {
    let desk = Desk::new();
    let long = "n".repeat(129);
    let wrong: [&[&str]; 3] =
        [&["--user", ""], &["--user", &long], &["--public-url", "ftp://platform.example"]];
    for options in wrong {
        let arguments = [&["platform", "--listen", "127.0.0.1:0"], options].concat();
        let ended = desk.run(&arguments).expect(64);
        assert_eq!(ended.stdout, "");
        assert!(!ended.stderr.contains("forgotten"), "{ended:?}");
    }
}

#[test]
fn doctor_tells_a_script_what_it_tells_a_person() {
    let desk = Desk::new();
    desk.configure("platform_url = \"http://127.0.0.1:9\"");
    let found = desk.run(&["doctor", "--json"]).expect(78).json();
    assert_eq!(found["ok"], false);
    let check = |name: &str| {
        let checks = found["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap()["status"].clone()
    };
    assert_eq!(check("keychain"), "ok");
    assert_eq!(check("sign_in"), "fail");
    assert_eq!(check("platform.tcp"), "fail");
    assert_eq!(check("platform.http"), "skipped");
    let text = desk.run(&["doctor"]).expect(78).stdout;
    assert!(text.contains("FAIL sign_in") && text.contains("→ `deskhand login`"), "{text}");
}

#[test]
fn a_stop_that_cannot_be_noted_down_says_that_the_next_start_connects() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.path("state/off.new")).unwrap(); // as on a full disk, no new file can be made
    let failed = desk.run(&["stop"]).expect(1);
    assert!(failed.stderr.contains("not running now, but it WILL CONNECT at its next start"), "{failed:?}");
    // One that was said before holds.
    std::fs::write(desk.path("state/off"), "disconnected").unwrap();
    assert!(desk.run(&["stop"]).expect(0).stdout.contains("stays off"));
}
