//! What a platform is started with.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use protocol::Limits;
use url::Url;

/// The public client that Deskhand signs in with.
pub const DEFAULT_CLIENT_ID: &str = "autogpt-local-executor";

/// The ports that the client may listen on for its redirect; the hosted platform registered just these.
pub const LOOPBACK_PORTS: std::ops::RangeInclusive<u16> = 41899..=41910;

/// Where state lives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Database {
    /// Gone when the platform stops; for tests and the demo.
    #[default]
    Memory,
    /// A SQLite file, made with mode 0600 when it is missing.
    File(PathBuf),
}

/// A registered public OAuth client. There are no secrets: PKCE binds a code to whoever asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// `client_id`.
    pub id: String,
    /// Shown on the approval page.
    pub name: String,
    /// A redirect must equal one of these, byte for byte.
    pub redirect_uris: Vec<String>,
}

impl Client {
    /// `autogpt-local-executor` with its twelve loopback redirects and the deep link.
    #[must_use]
    pub fn local_executor() -> Self {
        let loopback = LOOPBACK_PORTS.map(|port| format!("http://localhost:{port}/callback"));
        Self {
            id: DEFAULT_CLIENT_ID.to_owned(),
            name: "Deskhand".to_owned(),
            redirect_uris: loopback.chain(["deskhand://oauth/callback".to_owned()]).collect(),
        }
    }
}

/// What is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Machines may connect and sessions may target them. Off: sockets close 4403, routes answer 403.
    pub local_executor: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self { local_executor: true }
    }
}

/// How long things may take. The defaults are the contract's; tests shorten them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// From the upgrade to HELLO (wire: 10 s).
    pub hello_timeout: Duration,
    /// Between two PINGs (wire: 30 s).
    pub ping_every: Duration,
    /// From PING to PONG (wire: 10 s).
    pub pong_timeout: Duration,
    /// From a request to its answer, on top of a command's own timeout. Long, because the person may be looking at a
    /// consent prompt, which stays for 60 s and longer when it is touched.
    pub request_timeout: Duration,
    /// From a folder or session request to its answer; nobody is asked there.
    pub control_timeout: Duration,
    /// How long a request waits for a free slot of the machine.
    pub capacity_wait: Duration,
    /// How long a request waits for a machine that lost its connection.
    pub reconnect_wait: Duration,
    /// From an activation to the data connection's HELLO.
    pub data_connection_wait: Duration,
    /// Life of an access token (platform: 1 h). Its sockets close 4401 at the end.
    pub access_token_ttl: Duration,
    /// Life of a refresh token that nobody uses.
    pub refresh_token_ttl: Duration,
    /// Life of an authorization code (RFC 6749, 4.1.2, recommends 10 minutes at most).
    pub code_ttl: Duration,
    /// Life of a signed-in browser.
    pub sign_in_ttl: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            hello_timeout: Duration::from_secs(10),
            ping_every: Duration::from_secs(30),
            pong_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(120),
            control_timeout: Duration::from_secs(20),
            capacity_wait: Duration::from_secs(30),
            reconnect_wait: Duration::from_secs(15),
            data_connection_wait: Duration::from_secs(15),
            access_token_ttl: Duration::from_secs(3600),
            refresh_token_ttl: Duration::from_secs(30 * 24 * 3600),
            code_ttl: Duration::from_secs(300),
            sign_in_ttl: Duration::from_secs(12 * 3600),
        }
    }
}

/// What a platform is started with.
#[derive(Debug, Clone, PartialEq)]
pub struct PlatformOptions {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where state lives.
    pub database: Database,
    /// What is switched on.
    pub features: Features,
    /// Sent in every HELLO_ACK.
    pub limits: Limits,
    /// How long things may take.
    pub timings: Timings,
    /// How browsers and machines reach this platform, when that is not `http://<listen>` (behind a proxy that ends TLS).
    /// With `https` cookies are marked Secure.
    pub public_url: Option<Url>,
    /// Who may sign in.
    pub clients: Vec<Client>,
}

impl Default for PlatformOptions {
    /// On a free port of 127.0.0.1, in memory.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            database: Database::Memory,
            features: Features::default(),
            limits: Limits {
                max_file_size_bytes: 10 * 1024 * 1024,
                command_timeout_seconds: 30.0,
                max_concurrent: 4,
            },
            timings: Timings::default(),
            public_url: None,
            clients: vec![Client::local_executor()],
        }
    }
}
