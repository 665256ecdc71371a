//! A Unix socket.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, geteuid, kill_process};
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
///
/// Beside it the process that listens, where the OS tells.
pub(super) async fn connect(address: &str) -> io::Result<(ClientStream, Option<u32>)> {
    let stream = UnixStream::connect(address).await?;
    let server = stream.peer_cred()?;
    if server.uid() != geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the socket is another user's"));
    }
    // One of another PID namespace, which we do not see, has the number 0.
    let pid = server.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
    Ok((stream, pid))
}

/// Ends a process that does not listen any more, what it runs first: a command may have stopped both it and the
/// supervisor that would otherwise see to that. `is_it` is asked once the process cannot be taken for a later one of its
/// number any more; when it says no, nothing is done. Returns whether it was struck.
pub(super) fn kill(pid: u32, is_it: impl Fn() -> bool) -> io::Result<bool> {
    let raw = |pid: u32| i32::try_from(pid).ok().and_then(Pid::from_raw);
    let itself = match Target::new(raw(pid).ok_or(io::ErrorKind::InvalidInput)?) {
        Err(rustix::io::Errno::SRCH) => return Ok(false),
        target => target?,
    };
    if !is_it() {
        return Ok(false);
    }
    // It is stopped, so that it starts nothing more; orphans of those killed become its own children, and are found next.
    let _ = itself.signal(Signal::STOP);
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
    itself.signal(Signal::KILL)?;
    Ok(true)
}

/// A process to be struck.
#[cfg(target_os = "linux")]
enum Target {
    Handle(std::os::fd::OwnedFd),
    /// Before Linux 5.3.
    Number(Pid),
}

#[cfg(target_os = "linux")]
impl Target {
    fn new(pid: Pid) -> rustix::io::Result<Self> {
        match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            Ok(handle) => Ok(Self::Handle(handle)),
            Err(rustix::io::Errno::NOSYS) => Ok(Self::Number(pid)),
            Err(error) => Err(error),
        }
    }

    fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match self {
            Self::Handle(handle) => rustix::process::pidfd_send_signal(handle, signal),
            Self::Number(pid) => kill_process(*pid, signal),
        }
    }
}

/// There is nothing but its number.
#[cfg(not(target_os = "linux"))]
struct Target(Pid);

#[cfg(not(target_os = "linux"))]
impl Target {
    fn new(pid: Pid) -> rustix::io::Result<Self> {
        Ok(Self(pid))
    }

    fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        kill_process(self.0, signal)
    }
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
