//! What a process does once, at its start: each case runs in a child of its own, before the test harness starts its
//! threads.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use vault::{
    BackendChoice, ExposeSecret, SecretString, Vault, VaultError, VaultOptions, harden_process,
    passphrase_from_env,
};

const CASE: &str = "DESKHAND_VAULT_TEST_CASE";
const DIR: &str = "DESKHAND_VAULT_TEST_DIR";
const VARIABLE: &str = "DESKHAND_KEYCHAIN_PASSPHRASE";
const FILE: &str = "DESKHAND_KEYCHAIN_PASSPHRASE_FILE";

fn child(case: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(CASE, case);
    command.env_remove(VARIABLE).env_remove(FILE).env_remove("CREDENTIALS_DIRECTORY");
    command
}

fn passed(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// Where a case is named, this process is its child and ends with it; a panic here aborts.
#[ctor::ctor(unsafe)]
fn run_the_case() {
    let Ok(case) = env::var(CASE) else { return };
    match case.as_str() {
        "from the variable" => from_the_variable(),
        "expect" => assert_eq!(read().unwrap().as_deref(), Some("from a file")),
        "expect none" => assert_eq!(read().unwrap(), None),
        "unusable" => assert!(matches!(read(), Err(VaultError::PassphraseUnusable(_)))),
        "too late" => too_late(),
        "hardened" => hardened(),
        "full disk" => full_disk(),
        other => panic!("no case {other}"),
    }
    std::process::exit(0);
}

fn read() -> Result<Option<String>, VaultError> {
    passphrase_from_env().map(|secret| secret.map(|secret| secret.expose_secret().to_owned()))
}

#[test]
fn the_variable_is_read_and_wiped_from_the_process() {
    passed(
        &child("from the variable").env(VARIABLE, "pass=phräse").env(FILE, "/nonexistent").output().unwrap(),
    );
}

fn from_the_variable() {
    let shown = || fs::read("/proc/self/environ").unwrap();
    let contains = |text: &[u8]| text.windows(5).any(|window| window == b"pass=");
    assert!(contains(&shown()), "the child was not given the variable");
    assert_eq!(read().unwrap().as_deref(), Some("pass=phräse"));
    assert!(!contains(&shown()), "it is still in the environment block");
    assert!(env::var_os(VARIABLE).is_none());
    let inherited = Command::new("env").output().unwrap();
    assert!(!contains(&inherited.stdout), "a child inherits it");
    assert_eq!(env::var(FILE).unwrap(), "/nonexistent", "other variables stay");
    assert_eq!(env::var(CASE).unwrap(), "from the variable", "other variables stay");
}

#[test]
fn a_file_or_a_credential_can_carry_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deskhand-passphrase");
    passed(&child("expect none").env("CREDENTIALS_DIRECTORY", dir.path()).output().unwrap());
    fs::write(&path, "from a file\n").unwrap();
    passed(&child("expect").env(FILE, &path).output().unwrap());
    passed(&child("expect").env("CREDENTIALS_DIRECTORY", dir.path()).output().unwrap());
    passed(&child("expect none").output().unwrap());
}

#[test]
fn an_unusable_passphrase_is_an_error_not_none() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    passed(&child("unusable").env(VARIABLE, "").output().unwrap());
    passed(&child("unusable").env(VARIABLE, OsStr::from_bytes(b"\xff")).output().unwrap());
    passed(&child("unusable").env(FILE, "/nonexistent").output().unwrap());
}

#[test]
fn the_variable_is_not_touched_while_other_threads_run() {
    passed(&child("too late").env(VARIABLE, "x").output().unwrap());
}

fn too_late() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || stopped.recv());
    assert!(matches!(read(), Err(VaultError::PassphraseUnusable(_))));
    drop(stop);
    thread.join().unwrap().unwrap_err();
}

#[test]
fn a_hardened_process_is_closed_to_others_of_its_user() {
    passed(&child("hardened").output().unwrap());
}

fn hardened() {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    // As an ordinary user: root may look into everything.
    if rustix::process::getuid().is_root() {
        let exe = Path::new("/proc/self/exe").canonicalize().unwrap();
        let copy = tempfile::tempdir().unwrap();
        let runnable = copy.path().join("test");
        fs::copy(exe, &runnable).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(copy.path(), open).unwrap();
        let output = Command::new(&runnable).current_dir("/").uid(65534).gid(65534).output().unwrap();
        return passed(&output);
    }
    let me = format!("/proc/{}", std::process::id());
    let readable = |name: &str| {
        let mut cat = Command::new("cat");
        cat.arg(format!("{me}/{name}")).stdout(Stdio::null()).stderr(Stdio::null());
        cat.status().unwrap().success()
    };
    assert!(readable("environ"), "the test cannot tell the difference");
    harden_process().unwrap();
    assert!(!readable("environ"));
    assert_eq!(fs::metadata(format!("{me}/mem")).unwrap().uid(), 0);
    let limits = fs::read_to_string(format!("{me}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
}

#[test]
fn a_full_disk_leaves_the_old_vault() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).store(&[("small", b"old")]).unwrap();
    // A file size limit fails a write as a full disk does, and needs no disk.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\""])
        .arg(env::current_exe().unwrap())
        .env(CASE, "full disk")
        .env(DIR, dir.path())
        .output()
        .unwrap();
    passed(&output);
    let vault = open(dir.path());
    assert_eq!(vault.load("small").unwrap().unwrap().expose_secret(), b"old");
    assert!(vault.load("big").unwrap().is_none());
    assert!(!dir.path().join("vault.new").exists());
}

fn full_disk() {
    let vault = open(Path::new(&env::var_os(DIR).unwrap()));
    let big = vec![1; 40_000];
    let failed = vault.store(&[("small", b"new"), ("big", &big)]);
    assert!(matches!(failed, Err(VaultError::Io { .. })));
    assert_eq!(vault.load("small").unwrap().unwrap().expose_secret(), b"old");
}

fn open(dir: &Path) -> Vault {
    Vault::open(&VaultOptions {
        state_dir: dir.to_owned(),
        service: "unused".to_owned(),
        passphrase: Some(SecretString::from("correct horse")),
        backend: BackendChoice::File,
    })
    .unwrap()
}
