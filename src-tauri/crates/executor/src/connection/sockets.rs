//! Every open socket, so that the kill switch can cut them without the runtime's help.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpStream as TokioStream;

/// A second handle on each open socket. Its lock is held for a map operation only, never across a system call that waits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sockets(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    handles: HashMap<u64, TcpStream>,
}

/// Keeps one socket on the list; drop it with the connection.
#[derive(Debug)]
pub(crate) struct Registration {
    sockets: Sockets,
    key: u64,
}

impl Sockets {
    /// Puts a socket on the list.
    ///
    /// # Errors
    ///
    /// When the OS gives no second handle. A socket that the kill switch cannot reach must not be used.
    pub(crate) fn register(&self, stream: &TokioStream) -> std::io::Result<Registration> {
        #[cfg(unix)]
        let handle = TcpStream::from(std::os::fd::AsFd::as_fd(stream).try_clone_to_owned()?);
        #[cfg(windows)]
        let handle = TcpStream::from(std::os::windows::io::AsSocket::as_socket(stream).try_clone_to_owned()?);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = open.next;
        open.next += 1;
        open.handles.insert(key, handle);
        Ok(Registration { sockets: self.clone(), key })
    }

    /// Cuts every one of them, in both directions, at once.
    pub(crate) fn shutdown_all(&self) {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for handle in open.handles.values() {
            // One that is already cut says so; there is nothing else to do about it.
            let _ = handle.shutdown(Shutdown::Both);
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).handles.len()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.sockets.0.lock().unwrap_or_else(PoisonError::into_inner).handles.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_cut_socket_ends_for_both_sides_and_leaves_the_list() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TokioStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut theirs, _) = listener.accept().await.unwrap();
        let sockets = Sockets::default();
        let registration = sockets.register(&ours).unwrap();
        assert_eq!(sockets.count(), 1);
        std::thread::spawn({
            let sockets = sockets.clone();
            move || sockets.shutdown_all()
        })
        .join()
        .unwrap();
        assert_eq!(theirs.read(&mut [0; 8]).await.unwrap(), 0, "the peer sees the end");
        drop(registration);
        assert_eq!(sockets.count(), 0);
    }
}
