//! From a URL and a token to an open WebSocket.

use std::sync::Arc;
use std::time::Duration;

use protocol::MAX_FRAME_BYTES;
use rustls_platform_verifier::ConfigVerifierExt as _;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header::AUTHORIZATION};
use tokio_tungstenite::tungstenite::{self, protocol::WebSocketConfig};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config};
use url::Url;

use super::sockets::{Registration, Sockets};

/// An open socket of ours.
pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Name look-up, connecting, TLS and the upgrade together.
const DIAL_TIMEOUT: Duration = Duration::from_secs(15);

/// Linux only: how long sent bytes may stay unacknowledged before the OS gives the peer up. Twice the keep-alive's 10 s and some.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(30);

/// Read at once, in bytes. It is filled with zeros before each read, which for a request of a hundred bytes must not take
/// longer than all else; a frame of megabytes is still read in few calls.
const READ_BUFFER_BYTES: usize = 32 << 10;

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("the platform does not accept the access token (401)")]
    Unauthorized,
    #[error(
        "the platform refuses this machine (403): it belongs to another account, or the feature is off there"
    )]
    Forbidden,
    #[error("the platform answered {0} instead of opening a WebSocket")]
    Status(StatusCode),
    #[error("the platform was not reached: {0}")]
    Unreachable(String),
    #[error("the platform did not answer within {} s", DIAL_TIMEOUT.as_secs())]
    TimedOut,
}

/// Opens the socket. It is on the kill switch's list before its first byte.
pub(crate) async fn dial(
    url: &Url,
    token: &SecretString,
    sockets: &Sockets,
) -> Result<(Socket, Registration), DialError> {
    tokio::time::timeout(DIAL_TIMEOUT, open(url, token, sockets)).await.unwrap_or(Err(DialError::TimedOut))
}

async fn open(
    url: &Url,
    token: &SecretString,
    sockets: &Sockets,
) -> Result<(Socket, Registration), DialError> {
    let unreachable = |error: &dyn std::fmt::Display| DialError::Unreachable(error.to_string());
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or(443);
    let stream = TcpStream::connect((host, port)).await.map_err(|e| unreachable(&e))?;
    let registration = sockets.register(&stream).map_err(|e| unreachable(&e))?;
    tune(&stream);
    let mut request = url.as_str().into_client_request().map_err(|e| unreachable(&e))?;
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))
        .map_err(|_| DialError::Unauthorized)?;
    bearer.set_sensitive(true);
    request.headers_mut().insert(AUTHORIZATION, bearer);
    let connector = match url.scheme() {
        "wss" => Connector::Rustls(tls().map_err(|e| unreachable(&e))?),
        _ => Connector::Plain,
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES));
    match client_async_tls_with_config(request, stream, Some(config), Some(connector)).await {
        Ok((socket, _)) => Ok((socket, registration)),
        Err(tungstenite::Error::Http(response)) => Err(match response.status() {
            StatusCode::UNAUTHORIZED => DialError::Unauthorized,
            StatusCode::FORBIDDEN => DialError::Forbidden,
            other => DialError::Status(other),
        }),
        Err(error) => Err(unreachable(&error)),
    }
}

fn tune(stream: &TcpStream) {
    // Each only makes the connection better; without them the ping of the contract still finds a dead peer.
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT));
}

fn tls() -> Result<Arc<rustls::ClientConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let _ = rustls::crypto::CryptoProvider::install_default((*provider).clone());
    rustls::ClientConfig::with_platform_verifier().map(Arc::new)
}
