//! What a supervisor is told to run: four handles in one message, the words of the command in the first of
//! them. One message of a few bytes never blocks the sender, however long the command is and whatever state
//! the supervisor is in.

use std::fs::File;
use std::io::{self, IoSlice, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::unix::Words;

/// The one argument that makes a process of ours a supervisor. Nothing a person would type.
pub(super) const ARGUMENT: &str = "--exec-supervisor-of-a-command";

/// The name it shows in a process list.
pub(super) const TITLE: &str = "deskhand: command supervisor";

pub(super) const FDS: usize = 4;

/// An order as received.
pub(super) struct Order {
    words: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) cwd: OwnedFd,
}

impl Order {
    pub(super) fn from_fds(fds: Vec<OwnedFd>) -> io::Result<Order> {
        let [words, stdout, stderr, cwd] =
            <[OwnedFd; FDS]>::try_from(fds).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Order { words, stdout, stderr, cwd })
    }

    pub(super) fn words(&self) -> io::Result<Words> {
        let mut bytes = Vec::new();
        File::from(self.words.try_clone()?).read_to_end(&mut bytes)?;
        Words::decode(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Sends an order to a supervisor.
pub(super) fn send(
    control: impl AsFd,
    words: &Words,
    stdout: impl AsFd,
    stderr: impl AsFd,
    cwd: impl AsFd,
) -> io::Result<()> {
    let mut text = File::from(memfd_create("command", MemfdFlags::CLOEXEC)?);
    text.write_all(&words.encode())?;
    text.rewind()?;
    let fds = [text.as_fd(), stdout.as_fd(), stderr.as_fd(), cwd.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(control, &[IoSlice::new(&[1])], &mut ancillary, flags)?;
    Ok(())
}
