//! What is reported of a command over its control socket: records of a fixed size, so that none is ever read
//! in part.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Where a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Order,
    Cwd,
    Spawn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The command runs, with this process id.
    Started(i32),
    /// It did not start: an errno.
    Failed(Stage, i32),
    /// It has ended: its exit code, or −signal. Others of the tree may live on.
    Exited(i32),
    /// The tree is empty; the socket closes next.
    Done,
}

const SIZE: usize = 8;

impl Notice {
    fn encode(self) -> [u8; SIZE] {
        let (kind, value) = match self {
            Notice::Started(pid) => (1, pid),
            Notice::Failed(Stage::Order, errno) => (2, errno),
            Notice::Failed(Stage::Cwd, errno) => (3, errno),
            Notice::Failed(Stage::Spawn, errno) => (4, errno),
            Notice::Exited(code) => (5, code),
            Notice::Done => (6, 0),
        };
        let mut record = [0; SIZE];
        record[0] = kind;
        record[4..].copy_from_slice(&i32::to_le_bytes(value));
        record
    }

    fn decode(record: [u8; SIZE]) -> Option<Notice> {
        let [kind, _, _, _, a, b, c, d] = record;
        let value = i32::from_le_bytes([a, b, c, d]);
        match kind {
            1 => Some(Notice::Started(value)),
            2 => Some(Notice::Failed(Stage::Order, value)),
            3 => Some(Notice::Failed(Stage::Cwd, value)),
            4 => Some(Notice::Failed(Stage::Spawn, value)),
            5 => Some(Notice::Exited(value)),
            6 => Some(Notice::Done),
            _ => None,
        }
    }

    /// Best effort: a reader that has gone needs no report.
    pub(crate) fn send(self, socket: impl AsFd) {
        #[cfg(target_os = "linux")]
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        #[cfg(not(target_os = "linux"))]
        let flags = SendFlags::DONTWAIT;
        let _ = send(socket, &self.encode(), flags);
    }

    /// The next one, without waiting: `Err(WouldBlock)` when there is none yet, `Ok(None)` when none will
    /// come any more. Linux reports, once and before that, `Err(ConnectionReset)` when the other end closed
    /// without reading what we sent it.
    pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<Notice>> {
        let mut record = [0; SIZE];
        loop {
            return match recv(socket.as_fd(), &mut record, RecvFlags::DONTWAIT) {
                Ok((_, SIZE)) => Ok(Notice::decode(record)),
                Ok(_) => Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn every_notice_arrives_as_it_was_sent_and_then_the_end() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        assert_eq!(Notice::receive(&ours).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let notices = [
            Notice::Started(4711),
            Notice::Failed(Stage::Order, 1),
            Notice::Failed(Stage::Cwd, 2),
            Notice::Failed(Stage::Spawn, 13),
            Notice::Exited(-9),
            Notice::Done,
        ];
        for notice in notices {
            notice.send(&theirs);
        }
        drop(theirs);
        for notice in notices {
            assert_eq!(Notice::receive(&ours).unwrap(), Some(notice));
        }
        assert_eq!(Notice::receive(&ours).unwrap(), None);
    }
}
