//! The listener that the browser comes back to.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

use super::{OAuthError, page};

/// The ports a platform knows this client's redirect by.
pub const PORTS: RangeInclusive<u16> = 41899..=41910;

/// A browser sends its few lines at once, and reads the page at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// A browser's request head; its cookies for `localhost` can be many.
const LONGEST_HEAD: usize = 32 * 1024;
/// Browsers open a handful; more is somebody holding connections open.
const MOST_CONNECTIONS: usize = 32;

/// An address the browser came back to, and where to say how it went.
pub(super) struct Arrival {
    pub(super) address: Url,
    pub(super) page: Option<oneshot::Sender<Page>>,
}

/// How it went, for the person at the browser.
pub(super) struct Page {
    pub(super) worked: bool,
    pub(super) text: String,
    /// Told when the browser has it.
    pub(super) written: oneshot::Sender<()>,
}

/// The first free port of [`PORTS`], on the loopback.
pub(super) async fn bind() -> Result<(TcpListener, Url), OAuthError> {
    bind_in(PORTS).await
}

pub(super) async fn bind_in(ports: RangeInclusive<u16>) -> Result<(TcpListener, Url), OAuthError> {
    for port in ports {
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            let redirect = format!("http://localhost:{port}/callback");
            let redirect = Url::parse(&redirect).map_err(|_| OAuthError::BadBase(redirect))?;
            return Ok((listener, redirect));
        }
    }
    Err(OAuthError::NoPort)
}

/// Serves until dropped; then nothing of it is left.
pub(super) async fn serve(
    listener: TcpListener,
    redirect: Url,
    arrivals: mpsc::Sender<Arrival>,
) -> OAuthError {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        // The semaphore is never closed, so there is always a place in the end.
        let place = Arc::clone(&places).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let (redirect, arrivals) = (redirect.clone(), arrivals.clone());
                connections.spawn(async move {
                    let _place = place;
                    // A browser that goes away midway is its own business.
                    let _ = answer(stream, &redirect, &arrivals).await;
                });
            }
            // The connection was gone before it was taken, or no file handle is free: the next may do.
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(e) => return OAuthError::Listener(e),
        }
    }
}

async fn answer(
    mut stream: TcpStream,
    redirect: &Url,
    arrivals: &mpsc::Sender<Arrival>,
) -> std::io::Result<()> {
    let head = timeout(PATIENCE, read_head(&mut stream)).await??;
    let not_found = || page::response("404 Not Found", "Nothing here", "Only a sign-in comes back here.");
    match callback(&head, redirect) {
        Asked::Callback(address) => match settled(address, arrivals).await {
            Some(Page { worked, text, written }) => {
                let (status, title) =
                    if worked { ("200 OK", "Signed in") } else { ("400 Bad Request", "Not signed in") };
                write(&mut stream, &page::response(status, title, &text)).await?;
                // Nobody waits any more when the attempt was given up.
                let _ = written.send(());
                Ok(())
            }
            None => {
                let over = page::response("410 Gone", "Not signed in", "This sign-in is over.");
                write(&mut stream, &over).await
            }
        },
        Asked::Elsewhere => write(&mut stream, &not_found()).await,
        Asked::Wrongly => {
            let refused =
                page::response("400 Bad Request", "Nothing here", "Only a sign-in comes back here.");
            write(&mut stream, &refused).await
        }
    }
}

/// Hands the callback over and waits for how it went; `None` when the attempt ended without looking at it.
async fn settled(address: Url, arrivals: &mpsc::Sender<Arrival>) -> Option<Page> {
    let (page, settled) = oneshot::channel();
    arrivals.send(Arrival { address, page: Some(page) }).await.ok()?;
    settled.await.ok()
}

async fn write(stream: &mut TcpStream, response: &[u8]) -> std::io::Result<()> {
    timeout(PATIENCE, async {
        stream.write_all(response).await?;
        stream.shutdown().await
    })
    .await?
}

async fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::with_capacity(4096);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > LONGEST_HEAD || stream.read_buf(&mut head).await? == 0 {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
    }
    String::from_utf8(head).map_err(|_| std::io::ErrorKind::InvalidData.into())
}

enum Asked {
    Callback(Url),
    /// The browser's own extras (`/favicon.ico`).
    Elsewhere,
    /// Not a browser's GET, or for a name that is not ours (DNS rebinding).
    Wrongly,
}

fn callback(head: &str, redirect: &Url) -> Asked {
    let mut lines = head.split("\r\n");
    let mut request = lines.next().unwrap_or_default().split(' ');
    let (Some("GET"), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (request.next(), request.next(), request.next(), request.next())
    else {
        return Asked::Wrongly;
    };
    let host = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, host)| host.trim());
    let port = redirect.port().unwrap_or_default();
    if host != Some(&format!("localhost:{port}")) && host != Some(&format!("127.0.0.1:{port}")) {
        return Asked::Wrongly;
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path != redirect.path() {
        return Asked::Elsewhere;
    }
    let mut address = redirect.clone();
    address.set_query(Some(query));
    Asked::Callback(address)
}
