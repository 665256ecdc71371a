//! Real folders, a real vault, and small servers that each go wrong in their own way.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use audit::{AuditKey, AuditLog, Entry, Identity, Options};
use vault::{BackendChoice, SecretString, Tokens, Vault, VaultOptions};

use super::{Check, Diagnosis, Status, Subject, examine, platform};
use crate::config::{Config, Dirs, Loaded, Overrides};
use crate::local::Instance;

/// Answers each connection with `answer(request head)`.
fn server(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = request(&mut stream);
            // The client may have hung up.
            let _ = stream.write_all(&answer(&head));
        }
    });
    port
}

fn request(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// A platform as it should be, but for the status to a WebSocket and how far its clock is from ours.
fn platform_like(web_socket: &'static str, clock: fn(SystemTime) -> SystemTime) -> u16 {
    server(move |head| {
        let status = if head.contains("websocket") { web_socket } else { "404 Not Found" };
        assert!(!head.to_ascii_lowercase().contains("authorization"), "no token is sent: {head}");
        let date = httpdate::fmt_http_date(clock(SystemTime::now()));
        format!("HTTP/1.1 {status}\r\nDate: {date}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    })
}

fn load(text: &str) -> Loaded {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    std::fs::write(&file, text).unwrap();
    Config::load(&file, [], &Overrides::default()).unwrap()
}

fn reached(url: &str) -> Vec<Check> {
    platform::check(Some(&load(&format!("platform_url = \"{url}\"")).platform))
}

/// The statuses of name, connection, TLS, HTTP, clock, WebSocket.
fn statuses(checks: &[Check]) -> Vec<Status> {
    let names: Vec<_> = checks.iter().map(|check| check.name).collect();
    assert_eq!(
        names,
        ["platform.dns", "platform.tcp", "platform.tls", "platform.http", "clock", "platform.websocket"]
    );
    checks.iter().map(|check| check.status).collect()
}

use Status::{Fail, Ok as Good, Skipped, Warn};

#[test]
fn a_platform_that_answers_passes_every_step() {
    for status in ["101 Switching Protocols", "401 Unauthorized", "403 Forbidden"] {
        let port = platform_like(status, |now| now);
        let checks = reached(&format!("http://127.0.0.1:{port}"));
        assert_eq!(statuses(&checks), [Good, Good, Skipped, Good, Good, Good], "{checks:?}");
    }
}

#[test]
fn a_name_that_does_not_exist_is_told_from_all_else() {
    let checks = reached("https://nowhere.invalid");
    assert_eq!(statuses(&checks), [Fail, Skipped, Skipped, Skipped, Skipped, Skipped]);
    assert!(checks[0].detail.starts_with("nowhere.invalid"), "{checks:?}");
}

#[test]
fn a_port_where_nobody_listens_is_told_from_all_else() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let checks = reached(&format!("http://127.0.0.1:{port}"));
    assert_eq!(statuses(&checks), [Good, Fail, Skipped, Skipped, Skipped, Skipped]);
    assert!(checks[1].advice.as_ref().unwrap().contains("nothing listens"), "{checks:?}");
}

#[test]
fn a_server_without_tls_is_told_from_all_else() {
    let port = platform_like("401 Unauthorized", |now| now);
    let checks = reached(&format!("https://127.0.0.1:{port}"));
    assert_eq!(statuses(&checks), [Good, Good, Fail, Skipped, Skipped, Skipped], "{checks:?}");
}

#[test]
fn what_does_not_speak_http_is_told_from_all_else() {
    let endless = [b"HTTP/1.1 200 OK\r\n".to_vec(), b"X: y\r\n".repeat(20_000)].concat();
    let answers = [
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        b"HTTP/1.1 2".to_vec(),
        b"HTTP/1.1 x\r\n\r\n".to_vec(),
        Vec::new(),
        endless,
    ];
    for answer in answers {
        let port = server(move |_| answer.clone());
        let checks = reached(&format!("http://127.0.0.1:{port}"));
        assert_eq!(statuses(&checks), [Good, Good, Skipped, Fail, Skipped, Skipped], "{checks:?}");
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let checks = reached(&format!("http://127.0.0.1:{port}"));
    assert_eq!(statuses(&checks), [Good, Good, Skipped, Fail, Skipped, Skipped]);
    assert_eq!(checks[3].detail, "no answer within 1 s");
}

#[test]
fn a_proxy_that_swallows_web_sockets_is_told_from_all_else() {
    let port = platform_like("200 OK", |now| now);
    let checks = reached(&format!("http://127.0.0.1:{port}"));
    assert_eq!(statuses(&checks), [Good, Good, Skipped, Good, Good, Fail]);
    let port = platform_like("503 Service Unavailable", |now| now);
    assert_eq!(statuses(&reached(&format!("http://127.0.0.1:{port}")))[5], Warn);
}

#[test]
fn a_clock_that_is_wrong_is_noticed_whichever_way() {
    type Shift = fn(SystemTime) -> SystemTime;
    let shifts: [(Shift, Status, &str); 4] = [
        (|now| now - Duration::from_secs(3600), Fail, "ahead of"),
        (|now| now + Duration::from_secs(3600), Fail, "behind"),
        (|now| now + Duration::from_secs(60), Warn, "behind"),
        (|now| now - Duration::from_secs(10), Good, "ahead of"),
    ];
    for (shift, status, word) in shifts {
        let port = platform_like("401 Unauthorized", shift);
        let checks = reached(&format!("http://127.0.0.1:{port}"));
        assert_eq!(checks[4].status, status, "{checks:?}");
        assert!(checks[4].detail.contains(word), "{checks:?}");
    }
}

/// An installation in a folder of its own.
struct Installation {
    _dir: tempfile::TempDir,
    subject: Subject,
}

fn installation(config: &str) -> Installation {
    let dir = tempfile::tempdir().unwrap();
    let share = dir.path().join("share");
    std::fs::create_dir(&share).unwrap();
    let dirs = Dirs::find(Some(&dir.path().join("config")), Some(&dir.path().join("state"))).unwrap();
    dirs.create().unwrap();
    // Within TOML's quotation marks.
    let share = share.to_str().unwrap().replace('\\', "\\\\");
    // No network: these are about this computer.
    let text = format!("platform_url = \"http://127.0.0.1:9\"\n{}", config.replace("SHARE", &share));
    std::fs::write(dirs.config_file(), text).unwrap();
    let config = Config::load(&dirs.config_file(), [], &Overrides::default());
    let vault = VaultOptions {
        state_dir: dirs.state.clone(),
        service: "deskhand-doctor-test".into(),
        passphrase: Some(SecretString::from("doctor")),
        backend: BackendChoice::File,
    };
    Installation { _dir: dir, subject: Subject { dirs, config, vault } }
}

impl Installation {
    fn new() -> Self {
        installation("roots = [\"SHARE\"]\n")
    }

    fn examine(&self) -> Diagnosis {
        examine(&self.subject)
    }

    fn vault(&self) -> Vault {
        Vault::open(&self.subject.vault).unwrap()
    }

    fn log(&self) -> AuditLog {
        let key = AuditKey::new(*self.vault().audit_key().unwrap());
        let identity = Identity { machine_id: "m".into(), shim_version: "0".into() };
        AuditLog::open(&self.subject.dirs.logs, key, identity, Options::default()).unwrap()
    }

    fn sign_in(&self, platform: &str, refresh: bool, expires_in: f64) {
        let tokens = Tokens {
            access_token: SecretString::from("at-secret"),
            refresh_token: refresh.then(|| SecretString::from("rt-secret")),
            expires_at: super::secrets::now() + expires_in,
            platform: platform.into(),
            client_id: "c".into(),
        };
        self.vault().store_tokens(&tokens).unwrap();
    }
}

fn of<'a>(found: &'a Diagnosis, name: &str) -> &'a Check {
    found.checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("{name}: {found:#?}"))
}

#[test]
fn a_fresh_installation_lacks_only_a_sign_in() {
    let found = Installation::new().examine();
    assert!(!found.ok);
    for name in ["folders", "config", "roots", "keychain", "audit", "process", "machine"] {
        assert_eq!(of(&found, name).status, Good, "{found:#?}");
    }
    assert_eq!(of(&found, "sign_in").status, Fail);
    assert_eq!(of(&found, "sign_in").advice.as_deref(), Some("`deskhand login`"));
    assert_eq!(of(&found, "audit").detail, "no log yet; the first `run` begins it");
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["ok"], false);
    assert_eq!(json["checks"][0]["name"], "folders");
    assert_eq!(json["checks"][0]["status"], "ok");
    assert!(
        found.checks.iter().all(|check| { check.advice.is_some() == matches!(check.status, Warn | Fail) })
    );
}

#[test]
fn the_sign_in_is_told_apart_by_platform_and_age_and_no_token_is_shown() {
    let installation = Installation::new();
    let here = "http://127.0.0.1:9";
    let cases = [
        (here, true, -10.0, Good),
        (here, true, 600.0, Good),
        (here, false, 600.0, Warn),
        (here, false, -10.0, Fail),
        ("https://elsewhere.example", true, 600.0, Fail),
    ];
    for (platform, refresh, expires_in, status) in cases {
        installation.sign_in(platform, refresh, expires_in);
        let found = installation.examine();
        assert_eq!(of(&found, "sign_in").status, status, "{platform} {refresh} {expires_in}: {found:#?}");
        assert!(!format!("{found:?}").contains("secret\""), "{found:#?}");
        assert!(!format!("{found:?}").contains("at-secret"));
    }
}

#[test]
fn a_log_is_verified_while_it_is_written_and_a_changed_one_is_named() {
    let installation = Installation::new();
    let log = installation.log();
    for _ in 0..3 {
        log.record(Entry::event("SHIM_START", serde_json::Map::new())).unwrap();
    }
    log.sync().unwrap();
    let found = installation.examine();
    assert_eq!(of(&found, "audit").status, Good, "{found:#?}");
    drop(log);
    let path = installation.subject.dirs.audit_log();
    let text = std::fs::read_to_string(&path).unwrap().replacen("SHIM_START", "SHIM_STOPS", 1);
    std::fs::write(&path, text).unwrap();
    let found = installation.examine();
    assert_eq!(of(&found, "audit").status, Fail);
    assert!(of(&found, "audit").detail.contains("line 1: tampered"), "{found:#?}");
}

#[test]
fn a_log_without_its_key_is_a_fault_and_no_key_is_made() {
    let installation = Installation::new();
    std::fs::write(installation.subject.dirs.audit_log(), "{}\n").unwrap();
    let found = installation.examine();
    assert!(of(&found, "audit").detail.contains("no key"), "{found:#?}");
    assert!(installation.vault().load("audit-key").unwrap().is_none());
}

#[test]
fn a_wrong_passphrase_fails_what_needs_the_vault_and_nothing_else() {
    let mut installation = Installation::new();
    installation.sign_in("http://127.0.0.1:9", true, 60.0);
    installation.subject.vault.passphrase = Some(SecretString::from("wrong"));
    let found = installation.examine();
    assert_eq!(of(&found, "keychain").status, Fail);
    assert_eq!(of(&found, "sign_in").status, Skipped);
    assert_eq!(of(&found, "audit").status, Skipped);
    assert_eq!(of(&found, "roots").status, Good);
}

#[cfg(unix)]
#[test]
fn a_state_folder_that_others_can_write_is_a_fault() {
    use std::os::unix::fs::PermissionsExt;
    let installation = Installation::new();
    let state = &installation.subject.dirs.state;
    std::fs::set_permissions(state, std::fs::Permissions::from_mode(0o777)).unwrap();
    let found = installation.examine();
    assert_eq!(of(&found, "folders").status, Fail);
    assert!(of(&found, "folders").detail.contains("other users can write"), "{found:#?}");
    assert_eq!(of(&found, "keychain").status, Skipped);
}

fn roots(config: &str) -> Vec<(String, Status)> {
    let installation = installation(config);
    let checks = super::folders::roots(&installation.subject.dirs, installation.subject.config.as_ref().ok());
    checks.into_iter().map(|check| (check.name.to_owned(), check.status)).collect()
}

#[test]
fn folders_that_cannot_be_shared_are_told_apart() {
    let is = |name: &str, status| (name.to_owned(), status);
    assert_eq!(roots("roots = [\"SHARE\"]"), [is("roots", Good)]);
    assert_eq!(roots("roots = []"), [is("roots", Fail)]);
    assert_eq!(roots("roots = [\"SHARE/none\"]"), [is("roots.missing", Warn), is("roots", Fail)]);
    assert_eq!(roots("roots = [\"SHARE\", \"SHARE/none\"]"), [is("roots", Good), is("roots.missing", Warn)]);
    assert_eq!(roots("roots = [\"SHARE/../state\"]")[0], is("roots", Fail));
    assert_eq!(roots("roots = [\"SHARE/../config/config.toml\"]")[0], is("roots", Fail));
    if cfg!(unix) {
        assert_eq!(roots("roots = [\"/etc\", \"SHARE\"]"), [is("roots", Fail), is("roots", Good)]);
    }
}

#[test]
fn a_whole_home_is_warned_of() {
    let Some(base) = directories::BaseDirs::new() else { return };
    let options = jail::RootOptions { home: Some(base.home_dir().to_owned()), ..Default::default() };
    if jail::check_root(base.home_dir(), &options).is_err() {
        return; // a service's user, whose home is no folder of a person's
    }
    assert!(roots("roots = [\"~\"]").contains(&("roots.home".to_owned(), Warn)));
}

#[test]
fn a_configuration_with_faults_and_risks_says_so() {
    let faulty = installation("roots = [\"SHARE\"]\nrooots = []\n").examine();
    let config = of(&faulty, "config");
    assert_eq!(config.status, Fail);
    assert!(config.detail.contains("did you mean `roots`"), "{config:?}");
    assert_eq!(of(&faulty, "roots").status, Skipped);
    assert_eq!(of(&faulty, "platform").status, Skipped);
    assert_eq!(of(&faulty, "keychain").status, Good);

    let risky = "roots = [\"SHARE\"]\n[capabilities]\nshell = true\ncomputer_use = true\n\
                 [consent]\nrecording = \"allow\"\nshell = \"allow\"\n";
    let mut installation = installation(risky);
    let variable = [("DESKHAND_MAX_CONCURENT".into(), "2".into())];
    let file = installation.subject.dirs.config_file();
    installation.subject.config = Config::load(&file, variable, &Overrides::default());
    let found = installation.examine();
    for name in ["consent.recording", "consent.shell", "config.ignored", "capabilities.computer_use"] {
        assert_eq!(of(&found, name).status, Warn, "{found:#?}");
    }
    assert!(of(&found, "config.ignored").detail.contains("DESKHAND_MAX_CONCURRENT"), "{found:#?}");
    let shell = of(&found, "capabilities.shell");
    assert_eq!(shell.status, Good);
    assert!(shell.detail.contains(if cfg!(windows) { "cmd" } else { "sh" }), "{shell:?}");
}

#[test]
fn a_process_that_runs_and_does_not_answer_is_a_fault_and_one_that_is_off_is_named() {
    let installation = Installation::new();
    let state: &Path = &installation.subject.dirs.state;
    crate::off::remember(state, crate::off::Off::Stopped).unwrap();
    let off = super::process::check(&installation.subject.dirs);
    assert_eq!(off[0].status, Warn);
    assert!(off[0].detail.contains("kill switch"), "{off:?}");
    let _instance = Instance::claim(state).unwrap();
    let silent = super::process::check(&installation.subject.dirs);
    assert_eq!(silent[0].status, Fail);
    assert!(silent[0].detail.contains(&std::process::id().to_string()), "{silent:?}");
}
