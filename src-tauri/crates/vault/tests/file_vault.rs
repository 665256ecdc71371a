//! The encrypted file, through the public interface and with the real key derivation.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use vault::{Backend, BackendChoice, ExposeSecret, SecretString, Tokens, Vault, VaultError, VaultOptions};

fn options(state_dir: &Path, passphrase: &str) -> VaultOptions {
    VaultOptions {
        state_dir: state_dir.to_owned(),
        service: "unused".to_owned(),
        passphrase: Some(SecretString::from(passphrase)),
        backend: BackendChoice::File,
    }
}

fn open(state_dir: &Path) -> Vault {
    Vault::open(&options(state_dir, "correct horse")).unwrap()
}

fn failure<T>(result: Result<T, VaultError>) -> VaultError {
    result.err().expect("an error")
}

fn tokens(access: &str) -> Tokens {
    Tokens {
        access_token: SecretString::from(access),
        refresh_token: None,
        expires_at: 1_700_000_000.25,
        platform: "https://platform.example/".to_owned(),
        client_id: "client".to_owned(),
    }
}

#[test]
fn secrets_survive_a_restart_and_are_nowhere_in_the_clear() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("made/by/the/vault");
    let vault = open(&state);
    assert_eq!(vault.backend(), Backend::File);
    assert!(vault.tokens().unwrap().is_none());
    vault.store_tokens(&tokens("very-secret-token")).unwrap();
    vault.store(&[("recording-key", &[7; 32]), ("other", b"")]).unwrap();
    let key = vault.audit_key().unwrap();
    vault.round_trip().unwrap();

    let again = open(&state);
    let kept = again.tokens().unwrap().unwrap();
    assert_eq!(kept.access_token.expose_secret(), "very-secret-token");
    assert_eq!((kept.expires_at, kept.refresh_token.is_none()), (1_700_000_000.25, true));
    assert_eq!(again.load("recording-key").unwrap().unwrap().expose_secret(), [7; 32]);
    assert_eq!(again.load("other").unwrap().unwrap().expose_secret(), b"");
    assert_eq!(*again.audit_key().unwrap(), *key);
    assert!(again.load("round-trip").unwrap().is_none());

    for entry in fs::read_dir(&state).unwrap() {
        let content = fs::read(entry.unwrap().path()).unwrap();
        assert!(!content.windows(6).any(|window| window == b"secret"));
    }
}

#[cfg(unix)]
#[test]
fn the_files_belong_to_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    open(&state).store_tokens(&tokens("x")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    for entry in fs::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_wrong_passphrase_is_told_at_open_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).store_tokens(&tokens("x")).unwrap();
    let before = fs::read(dir.path().join("vault.json")).unwrap();
    let wrong = failure(Vault::open(&options(dir.path(), "wrong horse")));
    assert!(matches!(wrong, VaultError::WrongPassphrase { .. }), "{wrong}");
    assert_eq!(fs::read(dir.path().join("vault.json")).unwrap(), before);
}

#[test]
fn a_damaged_file_is_an_error_for_every_call_and_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let vault = open(dir.path());
    vault.audit_key().unwrap();
    let path = dir.path().join("vault.json");
    let mut text = fs::read(&path).unwrap();
    text.truncate(text.len() / 2);
    fs::write(&path, &text).unwrap();
    for result in [
        vault.audit_key().map(drop),
        vault.store_tokens(&tokens("x")),
        vault.delete("other"),
        vault.tokens().map(drop),
        Vault::open(&options(dir.path(), "correct horse")).map(drop),
    ] {
        assert!(matches!(failure(result), VaultError::Damaged { .. }));
    }
    assert_eq!(fs::read(&path).unwrap(), text);
}

#[test]
fn a_removed_file_does_not_bring_a_new_audit_key() {
    let dir = tempfile::tempdir().unwrap();
    let vault = open(dir.path());
    vault.audit_key().unwrap();
    fs::remove_file(dir.path().join("vault.json")).unwrap();
    assert!(matches!(failure(vault.audit_key()), VaultError::AuditKeyGone { .. }));
}

#[test]
fn what_another_process_stored_is_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    // Two vaults share nothing but the file, as two processes do.
    let (running, login) = (open(dir.path()), open(dir.path()));
    running.store_tokens(&tokens("old")).unwrap();
    login.store_tokens(&tokens("new")).unwrap();
    assert_eq!(running.tokens().unwrap().unwrap().access_token.expose_secret(), "new");
    running.clear_tokens().unwrap();
    assert!(login.tokens().unwrap().is_none());
    // Also when it was made anew, under another salt.
    fs::remove_file(dir.path().join("vault.json")).unwrap();
    open(dir.path()).store_tokens(&tokens("newer")).unwrap();
    assert_eq!(running.tokens().unwrap().unwrap().access_token.expose_secret(), "newer");
}

#[test]
fn writers_take_turns_and_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).store(&[("seed", b"x")]).unwrap();
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for writer in 0..4 {
            let (start, dir) = (&start, dir.path());
            scope.spawn(move || {
                let vault = open(dir);
                start.wait();
                for item in 0..10 {
                    vault.store(&[(&format!("item-{writer}-{item}"), b"x")]).unwrap();
                }
            });
        }
    });
    let vault = open(dir.path());
    for (writer, item) in (0..4).flat_map(|writer| (0..10).map(move |item| (writer, item))) {
        assert!(vault.load(&format!("item-{writer}-{item}")).unwrap().is_some(), "{writer} {item}");
    }
}

#[test]
fn one_audit_key_is_made_by_processes_that_start_together() {
    let dir = tempfile::tempdir().unwrap();
    let start = Barrier::new(3);
    let keys: Vec<[u8; 32]> = thread::scope(|scope| {
        let (start, dir) = (&start, dir.path());
        let asking: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(move || {
                    let vault = open(dir);
                    start.wait();
                    *vault.audit_key().unwrap()
                })
            })
            .collect();
        asking.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
}

#[test]
fn names_and_sizes_out_of_bounds_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let vault = open(dir.path());
    let long = "n".repeat(65);
    for name in ["", "../x", "A", "a.b", "a:b", long.as_str()] {
        assert!(matches!(failure(vault.store(&[(name, b"x")])), VaultError::Refused(_)), "{name}");
        assert!(matches!(failure(vault.load(name)), VaultError::Refused(_)), "{name}");
    }
    let big = vec![0; 64 * 1024 + 1];
    assert!(matches!(failure(vault.store(&[("ok", b"x"), ("big", &big)])), VaultError::Refused(_)));
    assert!(vault.load("ok").unwrap().is_none(), "all or nothing");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_without_hanging() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vault.json");
    // By its program: rustix has no mkfifo for macOS.
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(matches!(
        failure(Vault::open(&options(dir.path(), "correct horse"))),
        VaultError::Damaged { .. }
    ));
}

#[test]
fn a_write_that_was_cut_off_leaves_the_old_content_and_does_not_hinder_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let vault = open(dir.path());
    vault.store_tokens(&tokens("old")).unwrap();
    fs::write(dir.path().join("vault.new"), b"half a vau").unwrap();
    assert_eq!(open(dir.path()).tokens().unwrap().unwrap().access_token.expose_secret(), "old");
    vault.store_tokens(&tokens("new")).unwrap();
    assert!(!dir.path().join("vault.new").exists());
    assert_eq!(open(dir.path()).tokens().unwrap().unwrap().access_token.expose_secret(), "new");
}
