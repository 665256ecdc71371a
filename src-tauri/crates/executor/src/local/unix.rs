//! A Unix socket.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, geteuid, kill_process, test_kill_process};
use sha2::{Digest, Sha256};
use tokio::net::{UnixListener, UnixStream};

/// Longest path of a socket, one byte for the closing zero left out: 108 bytes on Linux, 104 on macOS (`sun_path`).
const LONGEST_PATH: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

pub(super) type ServerStream = UnixStream;
pub(super) type ClientStream = UnixStream;

/// A bound socket; its file goes when this is dropped.
pub(super) struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Binds in `runtime_dir`, or in a private folder of `/tmp` when that path is too long. What a killed process left
    /// there is replaced: the caller holds the instance. Needs a runtime.
    pub(super) fn bind(runtime_dir: &Path) -> io::Result<Self> {
        let path = socket_path(runtime_dir)?;
        match std::fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = Self { listener: UnixListener::bind(&path)?, path };
        std::fs::set_permissions(&listener.path, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    }

    /// What a client connects to.
    pub(super) fn address(&self) -> io::Result<String> {
        let text = self.path.to_str().map(str::to_owned);
        text.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the runtime folder's path is not UTF-8")
        })
    }

    /// The next peer. `None`: it is another user's, or already gone.
    pub(super) async fn accept(&mut self) -> io::Result<Option<(ServerStream, Option<u32>)>> {
        let (stream, _) = self.listener.accept().await?;
        let Ok(credentials) = stream.peer_cred() else { return Ok(None) };
        if credentials.uid() != geteuid().as_raw() {
            return Ok(None);
        }
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
        Ok(Some((stream, pid)))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Left over, the next start replaces it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Connects to a server of the same user; nobody else's is believed.
pub(super) async fn connect(address: &str) -> io::Result<ClientStream> {
    let stream = UnixStream::connect(address).await?;
    if stream.peer_cred()?.uid() != geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the socket is another user's"));
    }
    Ok(stream)
}

/// Whether there is such a process.
pub(super) fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| matches!(test_kill_process(pid), Ok(()) | Err(rustix::io::Errno::PERM)))
}

/// Ends a process that does not listen any more, what it runs first: a command may have stopped both it and the
/// supervisor that would otherwise see to that.
pub(super) fn kill(pid: u32) -> io::Result<()> {
    let raw = |pid: u32| i32::try_from(pid).ok().and_then(Pid::from_raw);
    let itself = raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    // It is stopped, so that it starts nothing more; orphans of those killed become its own children, and are found next.
    let _ = kill_process(itself, Signal::STOP);
    for _ in 0..MOST_GENERATIONS {
        let running = descendants(pid);
        if running.is_empty() {
            break;
        }
        for signal in [Signal::STOP, Signal::KILL] {
            for child in running.iter().filter_map(|child| raw(*child)) {
                // One that is gone meanwhile is what is wanted.
                let _ = kill_process(child, signal);
            }
        }
        std::thread::sleep(BETWEEN_GENERATIONS);
    }
    Ok(kill_process(itself, Signal::KILL)?)
}

/// How often the processes below are looked for again. Each time kills a whole tree; more are only needed for what was
/// being started just then.
const MOST_GENERATIONS: usize = 200;
/// For the killed ones to be gone from the table.
const BETWEEN_GENERATIONS: std::time::Duration = std::time::Duration::from_millis(5);

/// Living processes below `pid`, near ones first. Only Linux keeps orphans below it.
fn descendants(pid: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // `pid (name) state ppid …`; a name may hold anything, a bracket too.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let (state, parent) = (fields.next(), fields.next().and_then(|parent| parent.parse::<u32>().ok()));
        if let (Some(state), Some(parent)) = (state, parent)
            && !matches!(state, "Z" | "X")
        {
            parents.push((child, parent));
        }
    }
    let mut found = vec![pid];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        at += 1;
    }
    found.split_off(1)
}

fn socket_path(runtime_dir: &Path) -> io::Result<PathBuf> {
    let path = runtime_dir.join("deskhand.sock");
    if path.as_os_str().len() <= LONGEST_PATH {
        return Ok(path);
    }
    let folder = PathBuf::from(format!("/tmp/deskhand-{}", geteuid().as_raw()));
    private(&folder)?;
    let name = hex::encode(&Sha256::digest(runtime_dir.as_os_str().as_bytes())[..16]);
    Ok(folder.join(format!("{name}.sock")))
}

/// `/tmp` is everybody's: what stands there must be a real folder, ours, and closed to others.
fn private(folder: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let metadata = std::fs::symlink_metadata(folder)?;
    if metadata.is_dir() && metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{} must be a folder of yours with mode 0700: remove it", folder.display()),
    ))
}
