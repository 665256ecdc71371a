//! `deskhand run` against the reference platform, and the commands that steer it.

#![cfg(all(unix, feature = "platform"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Desk, Going, finish};
use platform::{Platform, PlatformOptions};
use serde_json::json;
use tokio::runtime::Runtime;

/// The other side, and an installation that is signed in to it.
struct Rig {
    desk: Desk,
    runtime: Runtime,
    platform: Option<Platform>,
    secrets: [String; 2],
}

impl Rig {
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (platform, tokens) = runtime.block_on(async {
            let platform = Platform::start(PlatformOptions::default()).await.unwrap();
            platform.add_user("ann", "correct horse").await.unwrap();
            let tokens = platform.issue_tokens("ann", platform::DEFAULT_CLIENT_ID).await.unwrap();
            (platform, tokens)
        });
        let desk = Desk::new();
        desk.configure(&format!("platform_url = '{}'\n[reconnect]\njitter_seconds = 0", platform.url()));
        let secrets = [tokens.access_token, tokens.refresh_token];
        let rig = Self { desk, runtime, platform: Some(platform), secrets };
        let ended = rig.desk.run_with(&["login", "--with-token"], &rig.token()).expect(0);
        assert!(ended.stdout.starts_with("signed in to 127.0.0.1"), "{}", ended.stdout);
        assert_eq!(ended.stdout.lines().count(), 1, "the configuration stays: {}", ended.stdout);
        rig
    }

    /// What `login --with-token` takes.
    fn token(&self) -> String {
        json!({"access_token": self.secrets[0], "refresh_token": self.secrets[1], "expires_in": 3600})
            .to_string()
    }

    fn start(&self) -> Going {
        Going::start(self.desk.command(&["run"]), true)
    }

    fn start_connected(&self) -> Going {
        let mut running = self.start();
        running.await_line("platform: connected");
        running
    }

    fn connection(&self) -> String {
        let status = self.desk.run(&["status", "--json"]).expect(0).json();
        status["connection"]["state"].as_str().unwrap().to_owned()
    }

    fn stop_platform(&mut self) {
        if let Some(platform) = self.platform.take() {
            self.runtime.block_on(platform.stop());
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop_platform();
    }
}

#[test]
fn a_run_connects_is_steered_and_ends_in_order() {
    let rig = Rig::new();
    let desk = &rig.desk;
    let mut running = rig.start_connected();
    let status = desk.run(&["status", "--json"]).expect(0).json();
    assert_eq!(status["running"], true);
    assert_eq!(status["pid"], running.child.id());
    assert!(desk.run(&["status"]).expect(0).stdout.contains("connected"));

    desk.run(&["pause"]).expect(0);
    running.await_line("paused");
    assert_eq!(desk.run(&["status", "--json"]).expect(0).json()["paused"], true);
    desk.run(&["resume"]).expect(0);
    running.await_line("resumed");
    let unknown = desk.run(&["resume", "no-such-session"]).expect(1);
    assert!(unknown.stderr.contains("not paused"), "{}", unknown.stderr);

    desk.run(&["disconnect"]).expect(0);
    assert_eq!(rig.connection(), "off");
    desk.run(&["connect"]).expect(0);
    running.await_line("platform: connected");
    desk.run(&["audit", "rotate"]).expect(0);
    desk.run(&["audit", "verify-all"]).expect(0);

    let pruned = desk.run(&["audit", "prune", "--older-than", "0s"]).expect(0).stdout;
    assert!(pruned.lines().count() == 1 && pruned.contains("audit.log.2"), "{pruned}");
    assert!(!std::path::Path::new(pruned.trim()).exists());
    assert_eq!(desk.log_records().last().unwrap()["op"], "LOG_PRUNED");
    assert_eq!(desk.run(&["audit", "prune", "--older-than", "0s"]).expect(0).stdout, "");
    desk.run(&["audit", "verify-all"]).expect(0);

    running.signal("TERM");
    assert_eq!(running.ended(), 0, "{}", running.all());
    let records = desk.log_records();
    let last = records.last().unwrap();
    assert_eq!(
        (last["op"].as_str(), last["details"]["reason"].as_str()),
        (Some("SHIM_STOP"), Some("SIGTERM"))
    );
    desk.run(&["audit", "verify-all"]).expect(0);
    desk.run(&["status"]).expect(69);
}

#[test]
fn a_log_that_is_deleted_with_all_that_stands_beside_it_is_missed() {
    let rig = Rig::new();
    let desk = &rig.desk;
    let mut running = rig.start_connected();
    running.signal("TERM");
    assert_eq!(running.ended(), 0);
    desk.run(&["audit", "verify-all"]).expect(0);
    // An earlier state of both, such as a backup has it, is missed too.
    let files = ["state/audit.log", "state/audit.head"].map(|name| desk.path(name));
    let earlier = files.each_ref().map(|file| std::fs::read(file).unwrap());
    let mut running = rig.start_connected();
    running.signal("TERM");
    assert_eq!(running.ended(), 0);
    files.iter().zip(&earlier).for_each(|(file, bytes)| std::fs::write(file, bytes).unwrap());
    for command in ["verify", "verify-all"] {
        let missed = desk.run(&["audit", command]).expect(65);
        assert!(missed.stdout.contains("the end is missing"), "{missed:?}");
    }

    files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let missed = desk.run(&["audit", "verify-all"]).expect(65);
    assert!(missed.stdout.contains("the log is gone"), "{missed:?}");
    desk.run(&["audit", "verify"]).expect(65);
    assert!(desk.run(&["doctor"]).expect(78).stdout.contains("FAIL audit"));
    // A start does not make it good: the new log says what it does not hold.
    let mut running = rig.start_connected();
    let missed = desk.run(&["audit", "verify-all"]).expect(65);
    assert!(missed.stdout.contains("went missing before this one was written"), "{missed:?}");
    running.signal("TERM");
    assert_eq!(running.ended(), 0);
}

#[test]
fn stop_throws_the_switch_and_it_stays_off_over_a_restart_until_connect() {
    let rig = Rig::new();
    let mut running = rig.start_connected();
    let stopped = rig.desk.run(&["stop"]).expect(0).stdout;
    let took = stopped.strip_prefix("stopped in ").and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(took.parse::<u64>().unwrap() <= 250, "{stopped}");
    assert_eq!(rig.connection(), "off");
    running.signal("INT");
    assert_eq!(running.ended(), 0);

    let mut running = rig.start();
    running.await_line("off, as was said last");
    assert_eq!(rig.connection(), "off");
    rig.desk.run(&["connect"]).expect(0);
    running.await_line("platform: connected");
    running.signal("TERM");
    assert_eq!(running.ended(), 0);
    rig.start_connected();
}

#[test]
fn connect_while_nothing_runs_lets_the_next_run_connect() {
    let rig = Rig::new();
    for command in ["stop", "disconnect"] {
        rig.desk.run(&[command]).expect(0);
        let said = rig.desk.run(&["connect"]).expect(0).stdout;
        assert!(said.contains("the next one connects: deskhand run"), "{said}");
        let none = rig.desk.run(&["connect"]).expect(69);
        assert!(none.stderr.contains("not running"), "{}", none.stderr);
        let mut running = rig.start_connected();
        running.signal("TERM");
        assert_eq!(running.ended(), 0);
    }
    rig.desk.run(&["stop"]).expect(0);
    let mut running = rig.start();
    assert!(running.await_line("off, as was said last").contains("`deskhand connect`"));
}

#[test]
fn the_platform_of_a_login_becomes_that_of_the_other_commands() {
    let rig = Rig::new();
    let desk = &rig.desk;
    let url = rig.platform.as_ref().unwrap().url();
    let base = url.as_str().trim_end_matches('/');
    // The sign-in is for another platform than the one configured now.
    desk.configure("# mine\nmax_concurrent = 2 # few");
    let other = desk.run(&["run"]).expect(77);
    let doctor = desk.run(&["doctor"]).expect(78);
    for text in [&other.stderr, &doctor.stdout] {
        for way in
            [&format!("--platform-url {base}"), &format!("platform_url = \"{base}\""), "deskhand login"]
        {
            assert!(text.contains(way), "{way} in {text}");
        }
    }

    let login = ["login", "--with-token", "--platform-url", url.as_str()];
    let said = desk.run_with(&login, &rig.token()).expect(0).stdout;
    assert!(said.contains("platform_url in ") && said.contains(&format!("is now {base}")), "{said}");
    let text = std::fs::read_to_string(desk.path("config/config.toml")).unwrap();
    assert!(text.contains("# mine\nmax_concurrent = 2 # few\n"), "{text}");
    assert!(text.contains(&format!("platform_url = \"{base}\"")), "{text}");
    let again = desk.run_with(&login, &rig.token()).expect(0);
    assert_eq!((again.stdout.lines().count(), again.stderr.as_str()), (1, ""));
    rig.start_connected();

    let mut command = desk.command(&login);
    command.env("DESKHAND_PLATFORM_URL", "https://other.example");
    let said = finish(command, &rig.token()).expect(0).stderr;
    assert!(said.contains("DESKHAND_PLATFORM_URL"), "{said}");
}

#[test]
fn of_two_at_once_one_runs_and_the_other_names_it() {
    let rig = Rig::new();
    let mut going = [rig.start(), rig.start()];
    let first = going[0].child.id();
    // Whichever it is: one ends, the other connects.
    let loser = loop {
        if let Some(loser) = going.iter_mut().position(|going| going.child.try_wait().unwrap().is_some()) {
            break loser;
        }
        std::thread::yield_now();
    };
    let pids = [first, going[1].child.id()];
    assert_eq!(going[loser].ended(), 78);
    let said = going[loser].all();
    assert!(said.contains(&format!("process {}", pids[1 - loser])), "{said}");
    going[1 - loser].await_line("platform: connected");
    let third = rig.desk.run(&["run"]).expect(78);
    assert!(third.stderr.contains("already running"), "{}", third.stderr);
}

#[test]
fn what_a_killed_run_leaves_is_no_obstacle() {
    let rig = Rig::new();
    let mut running = rig.start_connected();
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    rig.desk.run(&["status"]).expect(69);
    rig.desk.run(&["connect"]).expect(69);
    let mut running = rig.start_connected();
    rig.desk.run(&["audit", "verify-all"]).expect(0);
    running.signal("TERM");
    assert_eq!(running.ended(), 0);
}

#[test]
fn stop_ends_a_run_that_hangs_and_the_next_one_stays_off() {
    let rig = Rig::new();
    let mut running = rig.start_connected();
    running.signal("STOP");
    // Collected by us, as by a shell: else the process would stay in the table.
    let pid = running.child.id();
    let stop = std::thread::scope(|scope| {
        let stop = scope.spawn(|| rig.desk.run(&["stop"]));
        running.child.wait().unwrap();
        stop.join().unwrap()
    });
    let stopped = stop.expect(0);
    assert!(stopped.stdout.contains(&format!("process {pid} was ended")), "{stopped:?}");
    let mut running = rig.start();
    running.await_line("off, as was said last");
}

#[test]
fn a_hang_up_reads_the_configuration_again_and_a_faulty_one_changes_nothing() {
    let rig = Rig::new();
    let mut running = rig.start_connected();
    let url = rig.platform.as_ref().unwrap().url();
    rig.desk.configure(&format!("platform_url = '{url}'\nmax_concurrent = 'many'"));
    running.signal("HUP");
    running.await_line("the configuration stays as it was");
    rig.desk.configure(&format!("platform_url = '{url}'\n[rates]\ncommands_per_minute = 7"));
    running.signal("HUP");
    running.await_line("the configuration was read again");
    let records = rig.desk.log_records();
    let reloaded = records.iter().find(|record| record["op"] == "CONFIG_RELOADED").unwrap();
    assert!(reloaded["details"]["keys"].to_string().contains("rates.commands_per_minute"), "{reloaded}");
    // And a shared folder counts at once.
    std::fs::create_dir(rig.desk.path("home/new")).unwrap();
    rig.desk.run(&["roots", "add", rig.desk.path("home/new").to_str().unwrap()]).expect(0);
    let reloads = rig.desk.log_records().iter().filter(|record| record["op"] == "CONFIG_RELOADED").count();
    assert_eq!(reloads, 2);
}

#[test]
fn a_run_without_its_platform_waits_for_it_and_is_still_steered() {
    let mut rig = Rig::new();
    rig.stop_platform();
    let mut running = rig.start();
    running.await_line("trying again");
    assert!(rig.desk.run(&["doctor"]).expect(78).stdout.contains("FAIL platform.tcp"));
    rig.desk.run(&["stop"]).expect(0);
    assert_eq!(rig.connection(), "off");
    let logout = rig.desk.run(&["logout"]).expect(69);
    assert!(logout.stderr.contains("still signed in"), "{}", logout.stderr);
}

#[test]
fn a_watcher_is_told_what_happens_until_the_end() {
    let rig = Rig::new();
    let mut running = rig.start_connected();
    let mut watching = Going::start(rig.desk.command(&["status", "--watch", "--json"]), false);
    let first = watching.await_line("machine_id");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&first).unwrap()["running"], true);
    let mut reading = Going::start(rig.desk.command(&["status", "--watch"]), false);
    reading.await_line("sessions");
    rig.desk.run(&["pause"]).expect(0);
    let event = watching.await_line("paused");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&event).unwrap(),
        json!({"event": "paused", "paused": true, "reason": null})
    );
    reading.await_line("paused");
    running.signal("TERM");
    assert_eq!(running.ended(), 0);
    assert_eq!((watching.ended(), reading.ended()), (0, 0));
}

#[test]
fn a_healthy_installation_passes_doctor_while_it_runs() {
    let rig = Rig::new();
    let _running = rig.start_connected();
    let found = rig.desk.run(&["doctor", "--json"]).expect(0).json();
    let checks = found["checks"].as_array().unwrap();
    for name in ["process", "platform.http", "platform.websocket", "sign_in", "audit", "keychain", "roots"] {
        let check = checks.iter().find(|check| check["name"] == name).unwrap();
        assert_eq!(check["status"], "ok", "{check}");
    }
    // Looking at it has not disturbed it.
    assert_eq!(rig.connection(), "connected");
}

#[test]
fn signing_out_revokes_and_a_new_run_needs_a_sign_in() {
    let rig = Rig::new();
    assert_eq!(rig.desk.run(&["logout"]).expect(0).stdout, "signed out\n");
    rig.desk.run(&["run"]).expect(77);
    // The revoked tokens are worth nothing: a run with them is told so, and ends as one that is signed out.
    rig.desk.run_with(&["login", "--with-token"], &rig.token()).expect(0);
    let mut running = rig.start();
    assert_eq!(running.ended(), 77, "{}", running.all());
    assert_eq!(rig.desk.log_records().last().unwrap()["op"], "SHIM_STOP");
}

#[test]
fn no_token_and_no_passphrase_is_ever_logged() {
    let rig = Rig::new();
    let mut command = rig.desk.command(&["run"]);
    command.env("DESKHAND_LOG", "trace");
    let mut running = Going::start(command, true);
    running.await_line("platform: connected");
    rig.desk.run(&["stop"]).expect(0);
    // Nor does it stand in the environment that other programs of the user can read.
    let environment = std::fs::read(format!("/proc/{}/environ", running.child.id())).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&environment).contains("a passphrase for tests"));
    running.signal("TERM");
    assert_eq!(running.ended(), 0);
    let mut all = running.all();
    all.push_str(&std::fs::read_to_string(rig.desk.log()).unwrap());
    for secret in rig.secrets.iter().map(String::as_str).chain(["a passphrase for tests"]) {
        assert!(!all.contains(secret), "a secret was logged");
    }
}

#[test]
fn a_filter_that_is_none_is_said_and_does_no_harm() {
    let desk = Desk::new();
    let mut command = desk.command(&["roots", "list"]);
    command.env("DESKHAND_LOG", "=[nonsense");
    let ended = finish(command, "").expect(0);
    assert!(ended.stderr.contains("DESKHAND_LOG is not a filter"), "{}", ended.stderr);
}

#[test]
fn a_platform_of_ones_own_shows_its_user_once() {
    let desk = Desk::new();
    let database = desk.path("platform.db");
    let arguments =
        ["platform", "--listen", "127.0.0.1:0", "--database", database.to_str().unwrap(), "--user", "ann"];
    let mut serving = Going::start(desk.command(&arguments), false);
    let url = serving.await_line("url").split_whitespace().nth(1).unwrap().to_owned();
    assert!(serving.await_line("user").contains("ann"));
    serving.await_line("password");
    let second = desk.run(&arguments).expect(78);
    assert!(second.stderr.contains("in use") && second.stderr.contains("platform.db"), "{second:?}");
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let taken = desk.run(&["platform", "--listen", address]).expect(78);
    assert!(taken.stderr.contains(address) && taken.stderr.contains("--listen"), "{taken:?}");
    let found = desk.run(&["doctor", "--json", "--platform-url", &url]).expect(78).json();
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "platform.websocket").unwrap();
    assert_eq!(check["status"], "ok", "{check}");
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    // Nothing of the one that was killed is in the way.
    let mut serving = Going::start(desk.command(&arguments), false);
    serving.await_line("url");
    serving.signal("INT");
    assert_eq!(serving.ended(), 0);
    assert!(!serving.all().contains("password"), "{}", serving.all());
}
