//! Where the socket is: told by a file in the state folder, because a client may see another runtime folder than the
//! server does (a service has one, a shell of `su` or cron has none), and because a path can be too long for a socket.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::instance::{Instance, write_whole};

const POINTER: &str = "deskhand.socket";
/// No path or pipe name is longer.
const LONGEST: u64 = 4096;

/// The published address of a server; withdrawn when dropped.
pub(super) struct Published(PathBuf);

/// Lets clients find `address`.
pub(super) fn publish(instance: &Instance, address: &str) -> io::Result<Published> {
    let pointer = instance.state_dir().join(POINTER);
    write_whole(&pointer, address)?;
    Ok(Published(pointer))
}

impl Drop for Published {
    fn drop(&mut self) {
        // Left over, it leads a client to a socket where nobody listens.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The address that a server of this state folder has published; none when there is no such file.
pub(super) fn look_up(state_dir: &Path) -> io::Result<Option<String>> {
    let file = match File::open(state_dir.join(POINTER)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut address = String::new();
    file.take(LONGEST).read_to_string(&mut address)?;
    Ok(Some(address))
}
