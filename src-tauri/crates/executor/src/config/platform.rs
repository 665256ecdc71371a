//! The addresses of one platform.

use std::net::Ipv6Addr;

use thiserror::Error;
use url::{Host, Url};

/// Where one platform is reached. Made from valid URLs alone: TLS, unless the host is this computer itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    http: Url,
    control: Url,
}

/// A URL that cannot be the platform's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadUrl {
    /// It does not parse.
    #[error("is not a URL: {0}")]
    Syntax(#[from] url::ParseError),
    /// Its scheme is another.
    #[error("has the scheme `{0}`; it must be one of {1}")]
    Scheme(String, &'static str),
    /// It names no host.
    #[error("names no host")]
    NoHost,
    /// Plain text to another computer.
    #[error("is not encrypted: `{0}` is allowed to this computer (localhost) only; use `{1}`")]
    Plain(&'static str, &'static str),
    /// It has a user name, a password, a query or a fragment.
    #[error("must not have a user name, a password, a `?` or a `#`")]
    Extra,
}

impl Platform {
    /// From the settings `platform_url` (`http`, `https`, `ws`, `wss`) and `platform_ws_url` (`ws`, `wss`).
    pub fn new(platform_url: &str, platform_ws_url: Option<&str>) -> Result<Self, (&'static str, BadUrl)> {
        let http = http_base(platform_url).map_err(|bad| ("platform_url", bad))?;
        let control = match platform_ws_url {
            Some(text) => web_socket(text).map_err(|bad| ("platform_ws_url", bad))?,
            None => {
                let mut control = with_path(&http, "/ws/local-executor");
                // `http` and `https` are special schemes like `ws` and `wss`, between which this cannot fail.
                let _ = control.set_scheme(if http.scheme() == "https" { "wss" } else { "ws" });
                control
            }
        };
        Ok(Self { http, control })
    }

    /// Base of the HTTP endpoints, without a slash at its end.
    pub fn http(&self) -> &str {
        self.http.as_str().trim_end_matches('/')
    }

    /// An HTTP endpoint: `path` starts with a slash.
    pub fn endpoint(&self, path: &str) -> Url {
        with_path(&self.http, path)
    }

    /// The control connection's URL.
    pub fn control(&self) -> &Url {
        &self.control
    }

    /// The data connection's URL for a session. Everything but unreserved characters is percent-encoded.
    pub fn data(&self, session_id: &str) -> Url {
        with_path(&self.control, &format!("/{}", percent_encode(session_id)))
    }

    /// Host, and port where it is not the usual one: how a person knows the platform.
    pub fn host(&self) -> String {
        let host = self.http.host_str().unwrap_or_default();
        match self.http.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }
}

/// Checks a URL that is reached by plain HTTP or HTTPS and is not the platform's.
pub(super) fn http_url(text: &str) -> Result<Url, BadUrl> {
    let url = checked(text)?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err(BadUrl::Plain("http", "https")),
        other => Err(BadUrl::Scheme(other.to_owned(), "http, https")),
    }
}

fn http_base(text: &str) -> Result<Url, BadUrl> {
    let mut url = checked(text)?;
    let (scheme, plain, tls) = match url.scheme() {
        "https" | "wss" => ("https", "", ""),
        "http" => ("http", "http", "https"),
        "ws" => ("http", "ws", "wss"),
        other => return Err(BadUrl::Scheme(other.to_owned(), "http, https, ws, wss")),
    };
    if scheme == "http" && !is_loopback(&url) {
        return Err(BadUrl::Plain(plain, tls));
    }
    let _ = url.set_scheme(scheme);
    Ok(url)
}

fn web_socket(text: &str) -> Result<Url, BadUrl> {
    let url = checked(text)?;
    match url.scheme() {
        "wss" => Ok(url),
        "ws" if is_loopback(&url) => Ok(url),
        "ws" => Err(BadUrl::Plain("ws", "wss")),
        other => Err(BadUrl::Scheme(other.to_owned(), "ws, wss")),
    }
}

fn checked(text: &str) -> Result<Url, BadUrl> {
    let url = Url::parse(text.trim())?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(BadUrl::NoHost);
    }
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if plain { Ok(url) } else { Err(BadUrl::Extra) }
}

/// Only names and addresses that cannot leave this computer: `localhost` is resolved by the OS, and a platform
/// on any other name needs TLS, whatever that name resolves to today.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => {
            address == Ipv6Addr::LOCALHOST || address.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
        }
        None => false,
    }
}

fn with_path(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
