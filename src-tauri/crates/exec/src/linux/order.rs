//! What a supervisor is told to run: four handles in one message, the words of the command in the first of them. One message
//! of a few bytes never blocks the sender, however long the command is and whatever state the supervisor is in.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, IoSlice, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::error::ExecError;
use crate::sys::Launch;

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

/// The program, its arguments and its environment, as `execve` takes them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) program: CString,
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
}

impl Words {
    pub(super) fn of(launch: &Launch) -> Result<Words, ExecError> {
        let word = |word: &OsStr| {
            CString::new(word.as_bytes()).map_err(|_| ExecError::BadSpec("the command contains a NUL"))
        };
        let variable = |(name, value): &(_, _)| {
            let mut text = std::ffi::OsString::clone(name);
            text.push("=");
            text.push::<&std::ffi::OsString>(value);
            word(&text)
        };
        Ok(Words {
            program: word(launch.invocation.program.as_os_str())?,
            argv: launch.invocation.argv.iter().map(|argument| word(argument)).collect::<Result<_, _>>()?,
            env: launch.env.iter().map(variable).collect::<Result<_, _>>()?,
        })
    }

    /// The number of arguments, then each word with its NUL.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = u64::to_le_bytes(self.argv.len() as u64).to_vec();
        for word in std::iter::once(&self.program).chain(&self.argv).chain(&self.env) {
            bytes.extend_from_slice(word.as_bytes_with_nul());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Words> {
        let (count, words) = bytes.split_first_chunk::<8>()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let mut words = words
            .split_inclusive(|byte| *byte == 0)
            .map(|word| CString::from_vec_with_nul(word.to_vec()).ok())
            .collect::<Option<Vec<_>>>()?
            .into_iter();
        let program = words.next()?;
        let argv: Vec<_> = words.by_ref().take(count).collect();
        (argv.len() == count).then(|| Words { program, argv, env: words.collect() })
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_arrive_as_they_were_sent(
            program in "[^\0]+",
            argv in prop::collection::vec("[^\0]*", 0..6),
            env in prop::collection::vec("[^\0]*", 0..6),
        ) {
            let words = |words: Vec<String>| words.into_iter().map(|word| CString::new(word).unwrap()).collect();
            let sent = Words { program: CString::new(program).unwrap(), argv: words(argv), env: words(env) };
            prop_assert_eq!(Words::decode(&sent.encode()), Some(sent));
        }

        #[test]
        fn anything_else_is_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Words::decode(&bytes);
        }
    }
}
