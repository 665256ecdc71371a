//! A flag that a `poll` can wait for.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

pub(crate) struct Wake {
    raised: UnixStream,
    raise: UnixStream,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Wake> {
        let (raised, raise) = UnixStream::pair()?;
        raised.set_nonblocking(true)?;
        raise.set_nonblocking(true)?;
        Ok(Wake { raised, raise })
    }

    pub(crate) fn raise(&self) {
        // A full buffer means that it is raised already.
        let _ = (&self.raise).write(&[1]);
    }

    pub(crate) fn lower(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.raised).read(&mut bytes), Ok(64)) {}
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.raised.as_fd()
    }
}
