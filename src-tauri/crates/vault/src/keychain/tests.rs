//! Against a real gnome-keyring on a bus of its own: each test runs one case in a child of `dbus-run-session`.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};

use super::*;
use crate::{Backend, BackendChoice, Tokens, Vault, VaultOptions};

const CASE: &str = "DESKHAND_VAULT_TEST_CASE";

/// Runs `case` in a session of its own with `home` as its home; with no bus at all when `bus` is false.
fn run(case: &str, home: &Path, bus: bool) {
    for program in ["dbus-run-session", "gnome-keyring-daemon", "dbus-send"] {
        let mut probe = Command::new(program);
        if let Err(e) = probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
            println!("skipped: {program}: {e} (Debian: gnome-keyring dbus)");
            return;
        }
    }
    let runtime = home.join("runtime");
    crate::atomic::make_folder(&runtime).unwrap();
    let exe = env::current_exe().unwrap();
    let mut command = if bus {
        let mut command = Command::new("dbus-run-session");
        command.arg("--").arg(exe);
        command
    } else {
        Command::new(exe)
    };
    let output = command
        .args(["--exact", "keychain::tests::in_a_session", "--nocapture", "--test-threads=1"])
        .env(CASE, case)
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", &runtime)
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{case}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn run_fresh(case: &str) {
    let home = tempfile::tempdir().unwrap();
    run(case, home.path(), true);
}

/// The body of every case; without one, there is nothing to do.
#[test]
fn in_a_session() {
    let Ok(case) = env::var(CASE) else { return };
    match case.as_str() {
        "keeps" => keeps(),
        "unlocked" => makes_the_key_while_unlocked(),
        "locked" => refuses_while_locked(),
        "silent" => gives_up_on_a_silent_one(),
        "restarted" => outlives_a_restart(),
        "long" => keeps_long_values(),
        "gone" => notices_that_the_key_is_gone(),
        "no bus" => does_without_a_bus(),
        other => panic!("no case {other}"),
    }
}

/// A daemon in the foreground: its process id is ours to stop, and it dies with the test.
struct Daemon(Child);

impl Daemon {
    fn start(password: Option<&str>) -> Self {
        let mut command = Command::new("gnome-keyring-daemon");
        command.args(["--foreground", "--components=secrets"]);
        command.arg(if password.is_some() { "--unlock" } else { "--start" });
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(password.unwrap_or_default().as_bytes()).unwrap();
        drop(stdin);
        wait_for_owner(true);
        Self(child)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the bus has (or has not) a Secret Service. There is no event to wait for without a bus library.
fn wait_for_owner(wanted: bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let output = Command::new("dbus-send")
            .args(["--session", "--print-reply", "--dest=org.freedesktop.DBus", "/"])
            .args(["org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"])
            .output()
            .unwrap();
        if String::from_utf8_lossy(&output.stdout).contains("boolean true") == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "the Secret Service did not come up or go away");
        thread::sleep(Duration::from_millis(20));
    }
}

fn state_dir() -> PathBuf {
    PathBuf::from(env::var_os("HOME").unwrap()).join("state")
}

fn options(backend: BackendChoice, passphrase: Option<&str>) -> VaultOptions {
    VaultOptions {
        state_dir: state_dir(),
        service: "deskhand-test".to_owned(),
        passphrase: passphrase.map(SecretString::from),
        backend,
    }
}

fn failure<T>(result: Result<T, VaultError>) -> VaultError {
    result.err().expect("an error")
}

fn tokens(access: &str) -> Tokens {
    Tokens {
        access_token: SecretString::from(access),
        refresh_token: Some(SecretString::from("refresh-é")),
        expires_at: 1.5,
        platform: "https://platform.example".to_owned(),
        client_id: "client".to_owned(),
    }
}

#[test]
fn a_keychain_is_chosen_and_keeps_secrets_over_processes() {
    run_fresh("keeps");
}

fn keeps() {
    let _daemon = Daemon::start(Some("pw"));
    let vault = Vault::open(&options(BackendChoice::Auto, Some("passphrase"))).unwrap();
    assert_eq!(vault.backend(), Backend::Keychain);
    assert!(vault.tokens().unwrap().is_none());
    vault.store_tokens(&tokens("one")).unwrap();
    vault.store_tokens(&tokens("two")).unwrap();
    let key = vault.audit_key().unwrap();
    assert!(!state_dir().join("vault.json").exists());

    let again = Vault::open(&options(BackendChoice::Auto, None)).unwrap();
    let kept = again.tokens().unwrap().unwrap();
    assert_eq!(kept.access_token.expose_secret(), "two");
    assert_eq!(kept.refresh_token.unwrap().expose_secret(), "refresh-é");
    assert_eq!(*again.audit_key().unwrap(), *key);

    let other =
        VaultOptions { service: "deskhand-other".to_owned(), ..options(BackendChoice::Keychain, None) };
    assert!(Vault::open(&other).unwrap().tokens().unwrap().is_none());
    again.clear_tokens().unwrap();
    again.clear_tokens().unwrap();
    assert!(vault.tokens().unwrap().is_none());
}

#[test]
fn a_locked_keychain_is_an_error_and_the_audit_key_survives_it() {
    let home = tempfile::tempdir().unwrap();
    run("unlocked", home.path(), true);
    run("locked", home.path(), true);
    run("unlocked", home.path(), true);
}

/// Also that it finds the key an earlier session made.
fn makes_the_key_while_unlocked() {
    let _daemon = Daemon::start(Some("pw"));
    let vault = Vault::open(&options(BackendChoice::Auto, None)).unwrap();
    let key = vault.audit_key().unwrap();
    let copy = state_dir().join("copy-of-the-key");
    match fs::read(&copy) {
        Ok(earlier) => assert_eq!(earlier, *key),
        Err(_) => fs::write(&copy, *key).unwrap(),
    }
}

fn refuses_while_locked() {
    let _daemon = Daemon::start(None);
    let started = Instant::now();
    let auto = failure(Vault::open(&options(BackendChoice::Auto, Some("passphrase"))));
    assert!(matches!(auto, VaultError::Locked(_)), "{auto}");
    let vault = Vault::on_keychain_unproven(&options(BackendChoice::Keychain, None)).unwrap();
    let key = failure(vault.audit_key());
    assert!(matches!(key, VaultError::Locked(_)), "{key}");
    assert!(matches!(failure(vault.store_tokens(&tokens("x"))), VaultError::Locked(_)));
    assert!(started.elapsed() < KEYCHAIN_PATIENCE, "it waited");
}

#[test]
fn a_keychain_that_does_not_answer_is_given_up_on_and_taken_up_again() {
    run_fresh("silent");
}

fn gives_up_on_a_silent_one() {
    let daemon = Daemon::start(Some("pw"));
    let keychain = Keychain::with_limits("deskhand-test", Duration::from_millis(400), LONGEST).unwrap();
    keychain.store(&[("item", b"kept")]).unwrap();
    daemon.signal(rustix::process::Signal::STOP);
    assert!(matches!(failure(keychain.load("item")), VaultError::TimedOut(_)));
    let started = Instant::now();
    assert!(matches!(failure(keychain.load("item")), VaultError::TimedOut(_)));
    assert!(started.elapsed() < Duration::from_millis(200), "a stuck keychain fails at once");
    daemon.signal(rustix::process::Signal::CONT);
    let deadline = Instant::now() + Duration::from_secs(10);
    let kept = loop {
        match keychain.load("item") {
            Err(VaultError::TimedOut(_)) if Instant::now() < deadline => thread::yield_now(),
            other => break other.unwrap().unwrap(),
        }
    };
    assert_eq!(kept.expose_secret(), b"kept");
}

#[test]
fn a_restarted_keychain_is_connected_to_again() {
    run_fresh("restarted");
}

fn outlives_a_restart() {
    let daemon = Daemon::start(Some("pw"));
    let vault = Vault::open(&options(BackendChoice::Keychain, None)).unwrap();
    let key = vault.audit_key().unwrap();
    drop(daemon);
    wait_for_owner(false);
    let _daemon = Daemon::start(Some("pw"));
    assert_eq!(*vault.audit_key().unwrap(), *key);
    vault.round_trip().unwrap();
}

#[test]
fn a_value_longer_than_an_item_is_kept_in_parts() {
    run_fresh("long");
}

fn keeps_long_values() {
    let _daemon = Daemon::start(Some("pw"));
    let keychain = Keychain::with_limits("deskhand-test", KEYCHAIN_PATIENCE, 100).unwrap();
    let value = |seed: u8, length: usize| (0..length).map(|at| seed ^ at as u8).collect::<Vec<_>>();
    let mut parts_seen = Vec::new();
    for (seed, length) in [(1, 75), (2, 76), (3, 1000), (4, 300), (5, 75)] {
        keychain.store(&[("item", &value(seed, length))]).unwrap();
        assert_eq!(keychain.load("item").unwrap().unwrap().expose_secret(), value(seed, length));
        if let Some(list) = keychain.parts_of("item").unwrap() {
            parts_seen.extend(list.names("item"));
        }
    }
    assert!(parts_seen.iter().any(|name| name == "item.a0"), "{parts_seen:?}");
    assert!(parts_seen.iter().any(|name| name == "item.b0"), "{parts_seen:?}");
    for name in &parts_seen {
        assert!(keychain.call(name, Ask::Get).unwrap().is_none(), "{name} is left over");
    }

    keychain.store(&[("item", &value(6, 300))]).unwrap();
    let list = keychain.parts_of("item").unwrap().unwrap();
    let part = list.names("item").nth(1).unwrap();
    keychain.call(&part, Ask::Set(Zeroizing::new(b"something else".to_vec()))).unwrap();
    assert!(matches!(failure(keychain.load("item")), VaultError::Damaged { .. }));
    keychain.delete("item").unwrap();
    assert!(keychain.load("item").unwrap().is_none());
    assert!(keychain.call(&part, Ask::Get).unwrap().is_none());
}

#[test]
fn a_lost_audit_key_is_not_replaced_without_a_word() {
    run_fresh("gone");
}

fn notices_that_the_key_is_gone() {
    let _daemon = Daemon::start(Some("pw"));
    let vault = Vault::open(&options(BackendChoice::Auto, None)).unwrap();
    let key = vault.audit_key().unwrap();
    vault.delete("audit-key").unwrap();
    let gone = failure(vault.audit_key());
    assert!(matches!(gone, VaultError::AuditKeyGone { .. }), "{gone}");
    let elsewhere = Vault::open(&options(BackendChoice::File, Some("passphrase"))).unwrap();
    assert!(matches!(failure(elsewhere.audit_key()), VaultError::AuditKeyGone { .. }));
    fs::remove_file(state_dir().join("vault-store.json")).unwrap();
    assert_ne!(*vault.audit_key().unwrap(), *key);
}

#[test]
fn without_a_bus_it_is_the_file_or_an_error_that_names_the_variables() {
    let home = tempfile::tempdir().unwrap();
    run("no bus", home.path(), false);
}

fn does_without_a_bus() {
    let none = failure(Vault::open(&options(BackendChoice::Auto, None)));
    assert!(matches!(none, VaultError::NoStore { .. }), "{none}");
    let text = none.to_string();
    assert!(
        text.contains("DESKHAND_KEYCHAIN_PASSPHRASE ") && text.contains("DESKHAND_KEYCHAIN_PASSPHRASE_FILE")
    );
    let forced = failure(Vault::open(&options(BackendChoice::Keychain, Some("passphrase"))));
    assert!(matches!(forced, VaultError::Unavailable(_)), "{forced}");
    let vault = Vault::open(&options(BackendChoice::Auto, Some("passphrase"))).unwrap();
    assert_eq!(vault.backend(), Backend::File);
    vault.store_tokens(&tokens("one")).unwrap();
    let missing = failure(Vault::open(&options(BackendChoice::Auto, None)));
    assert!(matches!(missing, VaultError::PassphraseMissing { .. }), "{missing}");
}
