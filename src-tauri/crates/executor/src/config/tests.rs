use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::*;
use crate::consent::Capability;

fn load(text: &str) -> Result<Loaded, ConfigError> {
    load_with(text, &[], &Overrides::default())
}

fn load_with(text: &str, environment: &[(&str, &str)], overrides: &Overrides) -> Result<Loaded, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, text).unwrap();
    let environment = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Config::load(&file, environment, overrides)
}

fn complaint(text: &str) -> String {
    let message = load(text).expect_err(text).to_string();
    message.rsplit_once("config.toml ").map_or(message.clone(), |(_, rest)| rest.to_owned())
}

#[test]
fn without_a_file_the_documented_defaults_hold() {
    let loaded = Config::load(Path::new("/nonexistent/config.toml"), [], &Overrides::default()).unwrap();
    let config = loaded.config;
    assert_eq!(config, Config::default());
    assert_eq!(config.platform_url, "https://platform.autogpt.net");
    assert_eq!(loaded.platform.control().as_str(), "wss://platform.autogpt.net/ws/local-executor");
    assert_eq!((config.max_concurrent, config.command_timeout_seconds), (4, 30));
    assert_eq!(config.max_file_size_bytes, 10_485_760);
    assert_eq!(config.capabilities, Capabilities::default());
    let asked: Vec<_> =
        Capability::ALL.into_iter().filter(|c| config.consent.of(*c) == Decision::Ask).collect();
    assert_eq!(asked, Capability::ALL[2..]);
    assert!(!config.display_name().is_empty());
}

#[test]
fn every_documented_key_is_read() {
    let text = r#"
        platform_url = "https://p.example/base/"
        platform_ws_url = "wss://s.example/x"
        display_name = "desk"
        roots = ["~/a", "~"]
        browse_home = true
        trash = false
        max_concurrent = 8
        command_timeout_seconds = 5
        max_file_size_bytes = 1000
        oauth = { client_id = "me", redirect = "deep_link" }
        [capabilities]
        shell = true
        computer_use = ["screen", "apps"]
        clipboard = "write_back"
        local_llm = true
        recording = true
        hardware = true
        [consent]
        read = "ask"
        write = "deny"
        shell = "allow"
        screen = "allow"
        input = "deny"
        clipboard = "deny"
        recording = "allow"
        [[rules]]
        capability = "shell"
        program = "git"
        root = "~/work"
        decision = "allow"
        [rates]
        commands_per_minute = 6
        screenshots_per_minute = 120
        [reconnect]
        base_seconds = 0.5
        max_seconds = 2
        jitter_seconds = 0
        [local_llm]
        url = "http://[::1]:1"
        [recording]
        keep = 1
        keep_days = 2
        platform_review = true
    "#;
    let Loaded { config, platform, warnings } = load(text).unwrap();
    // Not every machine has the program of the rule.
    assert!(warnings.iter().all(|warning| warning.contains("\"git\", which is not found")), "{warnings:?}");
    assert_eq!(platform.http(), "https://p.example/base");
    assert_eq!(platform.endpoint("/api/oauth/token").as_str(), "https://p.example/base/api/oauth/token");
    assert_eq!(platform.control().as_str(), "wss://s.example/x");
    assert_eq!(platform.data("a:b").as_str(), "wss://s.example/x/a%3Ab");
    assert_eq!(platform.host(), "p.example");
    let home = directories::BaseDirs::new().unwrap().home_dir().to_owned();
    assert_eq!(config.roots(), [home.join("a"), home]);
    let switches = ComputerUse { screen: true, apps: true, ..ComputerUse::default() };
    assert_eq!(config.capabilities.computer_use, switches);
    assert_eq!(config.capabilities.clipboard, Clipboard::WriteBack);
    assert_eq!(config.oauth.redirect, Redirect::DeepLink);
    assert_eq!(config.consent.of(Capability::Record), Decision::Allow);
    let rule = Rule {
        capability: Capability::Shell,
        program: Some("git".into()),
        root: Some("~/work".into()),
        decision: Decision::Allow,
    };
    assert_eq!(config.rules, [rule]);
    assert_eq!((config.reconnect.base_seconds, config.reconnect.max_seconds), (0.5, 2.0));
    // What is read can be written and read again.
    assert_eq!(load(&toml::to_string(&config).unwrap()).unwrap().config, config);
}

#[test]
fn an_unknown_key_is_an_error_that_names_the_nearest_one_and_the_line() {
    for (text, message) in [
        ("\nmax_concurent = 3", "line 2: there is no key `max_concurent`; did you mean `max_concurrent`?"),
        ("shell = true", "line 1: there is no key `shell`; did you mean `capabilities.shell`?"),
        (
            "[capabilities]\n\ncomputer-use = true",
            "line 3: there is no key `capabilities.computer-use`; did you mean `capabilities.computer_use`?",
        ),
        (
            "[capability]\nshell = true",
            "line 1: there is no key `capability`; did you mean `rules.capability`?",
        ),
        (
            "[[rules]]\ncapability = \"shell\"\nprogramm = \"git\"\ndecision = \"allow\"",
            "line 3: there is no key `rules.programm`; did you mean `rules.program`?",
        ),
        ("[rates.commands_per_minute]\nx = 1", "line 2: there is no key `rates.commands_per_minute.x`"),
    ] {
        let complaint = complaint(text);
        assert!(complaint.starts_with(message), "{complaint}");
    }
}

#[test]
fn a_wrong_value_is_an_error_that_names_its_key_and_line() {
    for (text, message) in [
        ("\n\ntrash = \"yes\"", "line 3: `trash` is wrong: invalid type: string \"yes\""),
        ("max_concurrent = 0", "line 1: `max_concurrent` = 0 must be between 1 and 64"),
        ("max_concurrent = -1", "line 1: `max_concurrent` is wrong: "),
        (
            "[rates]\nscreenshots_per_minute = 121",
            "line 2: `rates.screenshots_per_minute` = 121 must be between 1",
        ),
        ("[consent]\nshell = \"always\"", "line 2: `consent.shell` is wrong: unknown variant `always`"),
        (
            "[capabilities]\ncomputer_use = [\"eyes\"]",
            "line 2: `capabilities.computer_use` is wrong: invalid value",
        ),
        ("roots = [\"work\"]", "line 1: `roots` has \"work\""),
        ("roots = [\"~anna/work\"]", "line 1: `roots` has"),
        ("display_name = \"\\u001b[2J\"", "line 1: `display_name` must have"),
        ("[reconnect]\nmax_seconds = 0.5", "line 2: `reconnect.max_seconds` must not be below"),
        ("[reconnect]\nbase_seconds = nan", "line 2: `reconnect.base_seconds` = NaN must be"),
        ("[local_llm]\nurl = \"http://gpu.example\"", "line 2: `local_llm.url` is not encrypted"),
        ("trash = ", "line 1: "),
        (
            "[[rules]]\ncapability = \"shell\"\nprogram = \"git status\"\ndecision = \"allow\"",
            "line 3: `rules.program`",
        ),
        (
            "[[rules]]\ncapability = \"shell\"\nprogram = \"./git\"\ndecision = \"allow\"",
            "line 3: `rules.program`",
        ),
        (
            "[[rules]]\ncapability = \"read\"\nprogram = \"git\"\ndecision = \"deny\"",
            "line 3: `rules.program` goes with",
        ),
        ("[[rules]]\ncapability = \"shell\"", "line 1: "),
    ] {
        let complaint = complaint(text);
        assert!(complaint.starts_with(message), "{text:?}: {complaint}");
    }
}

#[test]
fn plain_text_goes_to_this_computer_only() {
    for url in [
        "http://localhost:8000",
        "ws://127.0.0.1",
        "http://127.8.9.1:1",
        "ws://[::1]:3/",
        "http://[::ffff:127.0.0.1]",
        "https://x.example",
        "wss://x.example",
    ] {
        load(&format!("platform_url = {url:?}")).expect(url);
    }
    for url in [
        "http://x.example",
        "ws://10.0.0.1",
        "http://localhost.example",
        "http://0.0.0.0",
        "http://127.0.0.1.example",
        "ws://[::2]",
        "http://localhost@evil.example",
        "https://user:secret@x.example",
        "https://x.example/?token=1",
        "ftp://x.example",
        "x.example",
        "file:///etc",
    ] {
        let error = load(&format!("platform_url = {url:?}")).expect_err(url).to_string();
        assert!(error.contains("`platform_url`"), "{error}");
    }
    let error = load("platform_ws_url = \"ws://x.example\"").unwrap_err().to_string();
    assert!(error.contains("`platform_ws_url` is not encrypted: `ws` is allowed"), "{error}");
    load("platform_ws_url = \"https://x.example\"").unwrap_err();
}

#[test]
fn addresses_follow_from_the_platform_url() {
    let platform = Platform::new("ws://localhost:8765/base/", None).unwrap();
    assert_eq!(platform.http(), "http://localhost:8765/base");
    assert_eq!(platform.control().as_str(), "ws://localhost:8765/base/ws/local-executor");
    assert_eq!(platform.host(), "localhost:8765");
    assert_eq!(
        platform.data("a/../b ?#é").as_str(),
        "ws://localhost:8765/base/ws/local-executor/a%2F..%2Fb%20%3F%23%C3%A9"
    );
}

#[test]
fn variables_win_over_the_file_and_flags_over_both() {
    let file = "max_concurrent = 2\nplatform_url = \"https://file.example\"\nplatform_ws_url = \"wss://file.example/\"";
    let environment = [
        ("DESKHAND_MAX_CONCURRENT", "3"),
        ("DESKHAND_CAPABILITIES__SHELL", "true"),
        ("DESKHAND_CAPABILITIES__COMPUTER_USE", "screen, input"),
        ("DESKHAND_CONSENT__SHELL", "deny"),
        ("DESKHAND_DISPLAY_NAME", "42"),
        ("DESKHAND_RECONNECT__BASE_SECONDS", "0.25"),
        ("DESKHAND_ROOTS", "[\"~/a\", \"~/b\"]"),
        ("DESKHAND_TRASH", ""),
        ("OTHER", "x"),
    ];
    let Loaded { config, platform, warnings } = load_with(file, &environment, &Overrides::default()).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(config.max_concurrent, 3);
    assert!(config.capabilities.shell && config.capabilities.computer_use.input);
    assert_eq!(config.consent.shell, Decision::Deny);
    assert_eq!(config.display_name(), "42");
    assert_eq!(config.roots, ["~/a", "~/b"]);
    assert_eq!(platform.control().host_str(), Some("file.example"));

    let overrides = Overrides { platform_url: Some("http://127.0.0.1:9".into()) };
    let environment = [("DESKHAND_PLATFORM_URL", "https://variable.example")];
    let by_variable = load_with(file, &environment, &Overrides::default()).unwrap();
    assert_eq!(by_variable.platform.control().as_str(), "wss://variable.example/ws/local-executor");
    let by_flag = load_with(file, &environment, &overrides).unwrap();
    assert_eq!(by_flag.platform.control().as_str(), "ws://127.0.0.1:9/ws/local-executor");
}

#[test]
fn a_variable_with_a_wrong_value_is_an_error_and_an_unknown_one_a_warning_without_its_value() {
    let fault = |name: &str, value: &str| {
        load_with("", &[(name, value)], &Overrides::default()).expect_err(name).to_string()
    };
    assert_eq!(fault("DESKHAND_TRASH", "maybe"), "DESKHAND_TRASH: `trash` must be true or false");
    assert_eq!(
        fault("DESKHAND_MAX_CONCURRENT", "100"),
        "DESKHAND_MAX_CONCURRENT: `max_concurrent` = 100 must be between 1 and 64"
    );
    assert!(
        fault("DESKHAND_CONSENT__SHELL", "yes")
            .starts_with("DESKHAND_CONSENT__SHELL: `consent.shell` is wrong")
    );
    assert!(fault("DESKHAND_PLATFORM_URL", "http://x.example").contains("is not encrypted"));

    let environment = [
        ("DESKHAND_KEYCHAIN_PASSPHRASE", "hush"),
        ("DESKHAND_LOG", "debug"),
        ("DESKHAND_KEYCHAIN_PASSFRASE", "hush"),
        ("DESKHAND_PLATFROM_URL", "hush"),
        ("DESKHAND_RULES", "hush"),
    ];
    let warnings = load_with("", &environment, &Overrides::default()).unwrap().warnings;
    assert_eq!(
        warnings,
        [
            "DESKHAND_KEYCHAIN_PASSFRASE is ignored: there is no such setting; did you mean DESKHAND_KEYCHAIN_PASSPHRASE?",
            "DESKHAND_PLATFROM_URL is ignored: there is no such setting; did you mean DESKHAND_PLATFORM_URL?",
            "DESKHAND_RULES is ignored: rules are read from config.toml alone",
        ]
    );
}

#[test]
fn a_reload_names_the_keys_that_changed() {
    let old = load("[rates]\ncommands_per_minute = 5").unwrap().config;
    let new = load(
        "display_name = \"x\"\n[capabilities]\nshell = true\n[[rules]]\ncapability = \"read\"\ndecision = \"ask\"",
    );
    let new = new.unwrap().config;
    assert_eq!(new.diff(&old), ["capabilities.shell", "display_name", "rates.commands_per_minute", "rules"]);
    assert_eq!(new.diff(&new), Vec::<String>::new());
}

#[test]
fn an_edit_changes_one_key_and_keeps_comments_order_and_mode() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let text = "# mine\ntrash = false # really\nroots = [\n    \"~/a\", # first\n    \"~/b\", # second\n]\n\n[rates]\n# few\ncommands_per_minute = 5\n";
    fs::write(&file, text).unwrap();
    assert!(add_root(&file, "~/c").unwrap());
    assert!(!add_root(&file, "~/c").unwrap());
    assert!(remove_root(&file, "~/b").unwrap());
    assert!(!remove_root(&file, "~/b").unwrap());
    assert!(add_root(&file, "~/d").unwrap());
    assert!(remove_root(&file, "~/d").unwrap());
    assert!(set(&file, "trash", &true.into()).unwrap());
    assert!(set(&file, "capabilities.shell", &true.into()).unwrap());
    let edited = fs::read_to_string(&file).unwrap();
    for kept in [
        "# mine\ntrash = true # really\n",
        "\n    \"~/a\", # first\n    \"~/c\",\n]",
        "# few\ncommands_per_minute = 5\n",
    ] {
        assert!(edited.contains(kept), "{edited}");
    }
    assert!(load(&edited).unwrap().config.capabilities.shell);
    // Nothing of the writing is left behind but the lock.
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn rules_that_allow_nothing_or_everything_are_warned_of() {
    let rule = |more: &str| format!("[[rules]]\ncapability = \"shell\"\n{more}\n");
    let warnings = |text: &str| load(text).unwrap().warnings;
    let path = if cfg!(windows) { r"C:\no\such\program.exe" } else { "/no/such/program" };
    for program in ["no-such-program-anywhere", path] {
        let found = warnings(&rule(&format!("program = '{program}'\ndecision = \"allow\"")));
        assert!(
            found.len() == 1 && found[0].contains(&format!("{program:?}")) && found[0].contains("not found"),
            "{found:?}"
        );
    }
    let found = warnings(&rule("decision = \"allow\""));
    assert!(found.len() == 1 && found[0].contains("any command in any folder"), "{found:?}");
    let own = std::env::current_exe().unwrap().display().to_string();
    for fine in [
        format!("program = '{own}'\ndecision = \"allow\""),
        "root = \"~/work\"\ndecision = \"allow\"".to_owned(),
        "decision = \"deny\"".to_owned(),
        // Whatever is called so later is refused.
        "program = \"no-such-program-anywhere\"\ndecision = \"deny\"".to_owned(),
    ] {
        assert_eq!(warnings(&rule(&fine)), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn another_platform_takes_the_old_ones_socket_away_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(
        &file,
        "# mine\nplatform_url = \"https://a.example\" # work\nplatform_ws_url = \"wss://a.example/ws\"\n[rates]\n",
    )
    .unwrap();
    assert!(!set_platform(&file, "https://a.example").unwrap());
    assert!(set_platform(&file, "http://127.0.0.1:8750").unwrap());
    let edited = fs::read_to_string(&file).unwrap();
    assert_eq!(edited, "# mine\nplatform_url = \"http://127.0.0.1:8750\" # work\n[rates]\n");
    assert!(set_platform(&file, "http://elsewhere.example").is_err(), "plain text to another computer");
    assert_eq!(fs::read_to_string(&file).unwrap(), edited);
}

#[test]
fn the_first_added_folder_does_not_take_the_default_away() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new").join("config.toml");
    assert!(add_root(&file, "~/c").unwrap());
    assert_eq!(load(&fs::read_to_string(&file).unwrap()).unwrap().config.roots, ["~/Deskhand", "~/c"]);
    assert!(remove_root(&file, "~/Deskhand").unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), "roots = [\"~/c\"]");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn an_edit_that_would_break_the_file_leaves_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "trash = false\n").unwrap();
    assert!(matches!(set(&file, "max_concurrent", &0.into()), Err(EditError::Config(_))));
    assert!(matches!(set(&file, "max_concurent", &1.into()), Err(EditError::UnknownKey { .. })));
    assert!(matches!(add_root(&file, "here"), Err(EditError::Root(_))));
    assert_eq!(fs::read_to_string(&file).unwrap(), "trash = false\n");
}

#[test]
fn edits_at_the_same_time_all_last() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let file = &file;
            scope.spawn(move || add_root(file, &format!("~/r{n}")).unwrap());
        }
    });
    assert_eq!(load(&fs::read_to_string(&file).unwrap()).unwrap().config.roots.len(), 9);
}

#[test]
fn a_given_state_folder_holds_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (config, state) = (folder.path().join("c"), folder.path().join("s"));
    let dirs = Dirs::find(Some(&config), Some(&state)).unwrap();
    assert_eq!(dirs.config_file(), config.join("config.toml"));
    assert!(dirs.all()[1..].iter().all(|dir| dir.starts_with(&state)));
    assert_eq!(dirs.audit_log(), state.join("audit.log"));
    dirs.create().unwrap();
    dirs.create().unwrap();
    assert!(dirs.all().iter().all(|dir| dir.is_dir()));
    let relative = Dirs::find(Some(Path::new("c")), None).unwrap();
    assert!(relative.config.is_absolute());
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Dirs::find(Some(&file), Some(&state)).unwrap().create().unwrap_err();
    assert!(matches!(error, DirsError::NotAFolder { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn our_folders_are_made_for_the_owner_alone_and_loose_ones_are_refused_untouched() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = tempfile::tempdir().unwrap();
    let (config, state) = (folder.path().join("c"), folder.path().join("deep").join("s"));
    let dirs = Dirs::find(Some(&config), Some(&state)).unwrap();
    dirs.create().unwrap();
    assert!(dirs.all().iter().all(|dir| mode(dir) == 0o700));
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(dirs.create(), Err(DirsError::NotPrivate { .. })));
    assert_eq!(mode(&state), 0o777);

    let file = dirs.config_file();
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let warnings = Config::load(&file, [], &Overrides::default()).unwrap().warnings;
    assert!(warnings[0].contains("can be written by other users"), "{warnings:?}");
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_configuration_or_an_error_and_never_a_panic(text in ".{0,200}", key in "[a-z_.]{1,30}") {
        let _ = load(&text);
        let _ = load(&format!("{key} = 1"));
    }

    #[test]
    fn any_session_id_stays_one_segment(id in ".{1,40}") {
        let platform = Platform::new("https://x.example", None).unwrap();
        let url = platform.data(&id);
        proptest::prop_assume!(id != "." && id != "..");
        proptest::prop_assert_eq!(url.path_segments().unwrap().count(), 3);
        proptest::prop_assert!(url.query().is_none() && url.fragment().is_none());
    }
}
