//! As little HTTP/1.1 as it takes to tell a web server from something else, over a stream whose every stage is known.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_platform_verifier::ConfigVerifierExt as _;
use url::Url;

/// For each of: the name, one address, the TLS handshake, an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });
/// A response head is far shorter; what is longer is not one.
const LONGEST_HEAD: usize = 64 * 1024;

/// A stream to the platform: plain, or TLS over it.
pub(super) trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Host and port of a URL.
pub(super) fn host(url: &Url) -> (String, u16) {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    (host, url.port_or_known_default().unwrap_or(443))
}

/// Looks the name up; the OS's own patience may be longer than ours.
pub(super) fn resolve(url: &Url) -> io::Result<Vec<SocketAddr>> {
    let host = host(url);
    let (answer, answered) = mpsc::channel();
    thread::Builder::new().name("resolve".into()).spawn(move || {
        // Nobody listens any more when it took too long.
        let _ = answer.send(host.to_socket_addrs().map(Iterator::collect::<Vec<_>>));
    })?;
    let addresses =
        answered.recv_timeout(PATIENCE).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if addresses.is_empty() { Err(io::Error::other("the name has no address")) } else { Ok(addresses) }
}

/// Connects to the first address that answers.
pub(super) fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::other("no address");
    for address in addresses {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = io::Error::new(error.kind(), format!("{address}: {error}")),
        }
    }
    Err(last)
}

/// Shakes hands, verified by the OS's own trust store, and says which version it came to.
pub(super) fn tls(url: &Url, stream: TcpStream) -> io::Result<(Box<dyn Stream>, String)> {
    // Named once a process; one that is there already is ring too.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = ClientConfig::with_platform_verifier().map_err(io::Error::other)?;
    let name = ServerName::try_from(host(url).0).map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let deadline = Instant::now() + PATIENCE;
    while stream.conn.is_handshaking() {
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.conn.complete_io(&mut stream.sock)?;
    }
    let version = stream.conn.protocol_version().map_or_else(String::new, |version| format!("{version:?}"));
    Ok((Box::new(stream), version))
}

/// The head of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The status code.
    pub(super) status: u16,
    /// What the other side's clock said.
    pub(super) date: Option<SystemTime>,
}

/// Asks for `url` and reads the head of the answer.
pub(super) fn get(stream: &mut dyn Stream, url: &Url, extra: &str) -> io::Result<Head> {
    let (host, port) = host(url);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let authority = if url.port().is_some() { format!("{host}:{port}") } else { host };
    let agent = concat!("deskhand/", env!("CARGO_PKG_VERSION"), " (doctor)");
    write!(stream, "GET {} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {agent}\r\n{extra}\r\n", url.path())?;
    stream.flush()?;
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let read = match stream.read(&mut buffer) {
            // How a timeout of a socket shows on Unix.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            read => read?,
        };
        if read == 0 && head.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up without an answer"));
        }
        head.extend_from_slice(&buffer[..read]);
        let begins = head.len().min(5);
        if read == 0 || head.len() > LONGEST_HEAD || head[..begins] != b"HTTP/"[..begins] {
            return Err(not_http());
        }
    }
    parse(&head).ok_or_else(not_http)
}

fn not_http() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "what answers there does not speak HTTP")
}

fn parse(head: &[u8]) -> Option<Head> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let mut words = lines.next()?.split(' ');
    words.next()?.strip_prefix("HTTP/1.")?;
    let status = words.next()?.parse().ok()?;
    let date = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("date"))
        .and_then(|(_, value)| httpdate::parse_http_date(value.trim()).ok());
    Some(Head { status, date })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_gives_its_status_and_date() {
        let head = b"HTTP/1.1 204 No Content\r\nX: y\r\ndAtE: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(parse(head), Some(Head { status: 204, date: Some(date) }));
        assert_eq!(parse(b"HTTP/1.1 200\r\n\r\n"), Some(Head { status: 200, date: None }));
        assert_eq!(parse(b"HTTP/2 200\r\n\r\n"), None);
        assert_eq!(parse(b"SSH-2.0-x\r\n\r\n"), None);
    }
}
