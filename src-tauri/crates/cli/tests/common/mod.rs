//! An installation in a folder of its own, and the real binary run on it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Nothing that is waited for takes nearly as long, on a machine that is busy too.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Desk {
    dir: tempfile::TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Fails with all that was said unless the exit code is `code`.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

impl Desk {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["home", "run", "bin", "share"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let desk = Self { dir };
        desk.configure("");
        desk
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn log(&self) -> PathBuf {
        self.path("state/audit.log")
    }

    /// Writes config.toml: the shared folder, and `more`.
    pub fn configure(&self, more: &str) {
        std::fs::create_dir_all(self.path("config")).unwrap();
        let share = self.path("share");
        let text = format!("roots = ['{}']\n{more}\n", share.display());
        std::fs::write(self.path("config/config.toml"), text).unwrap();
    }

    /// The binary with an environment in which there is no keychain, but a passphrase.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare(arguments);
        command.env("DESKHAND_CONFIG_DIR", self.path("config")).env("DESKHAND_STATE_DIR", self.path("state"));
        command
    }

    /// The same, without a word about folders.
    pub fn bare(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deskhand"));
        command.args(arguments).env_clear();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.path("bin")).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(paths).unwrap());
        // What Windows' own libraries need.
        for name in ["SystemRoot", "TEMP", "TMP", "USERNAME"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for name in ["HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
            command.env(name, self.path("home"));
        }
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("DESKHAND_KEYCHAIN_PASSPHRASE", "a passphrase for tests");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs to the end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        finish(self.command(arguments), "")
    }

    /// Runs to the end with `input` on standard input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Ended {
        finish(self.command(arguments), input)
    }

    pub fn log_records(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub fn finish(mut command: Command, input: &str) -> Ended {
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may end without having read anything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A process that goes on, and the lines it says.
pub struct Going {
    pub child: Child,
    lines: Receiver<String>,
    said: VecDeque<String>,
}

impl Going {
    /// Listens to standard error when `errors`, else to standard output.
    pub fn start(mut command: Command, errors: bool) -> Self {
        if errors {
            command.stdout(Stdio::null());
        } else {
            command.stderr(Stdio::null());
        }
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let read = move |from: &mut dyn std::io::Read| {
            for line in BufReader::new(from).lines() {
                // Whoever listened may have gone.
                let _ =
                    sender.send(String::from_utf8_lossy(line.unwrap_or_default().as_bytes()).into_owned());
            }
        };
        match (child.stdout.take(), child.stderr.take()) {
            (Some(mut stdout), _) => thread::spawn(move || read(&mut stdout)),
            (None, stderr) => {
                let mut stderr = stderr.unwrap();
                thread::spawn(move || read(&mut stderr))
            }
        };
        Self { child, lines, said: VecDeque::new() }
    }

    /// Waits for a line that has `text` in it.
    #[track_caller]
    pub fn await_line(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("it never said {text:?}, but: {:#?}", self.said);
            };
            self.said.push_back(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Everything it has said, after its end.
    pub fn all(&mut self) -> String {
        self.said.extend(self.lines.iter());
        self.said.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Its exit code; it has to end by itself.
    #[track_caller]
    pub fn ended(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "it does not end: {:#?}", self.said);
            thread::yield_now();
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Puts a program in front of the real one on PATH.
#[cfg(unix)]
pub fn fake(desk: &Desk, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = desk.path("bin").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
