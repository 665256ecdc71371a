//! Whether the platform is reached: name, connection, TLS, HTTP and WebSocket one after the other, so that what is in the way
//! has a name. No token is sent: the WebSocket's refusal of somebody unknown shows that it is there.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

use url::Url;

use super::Check;
use super::http::{self, Head, Stream};
use crate::config::Platform;

/// Further off than this the person should know.
const SKEW_WARNING: Duration = Duration::from_secs(30);
/// Further off than this certificates and tokens are judged wrongly.
const SKEW_FAILURE: Duration = Duration::from_secs(300);

/// RFC 6455, 4.1; the key is the RFC's own example, as the handshake is not completed.
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const DNS: &str = "platform.dns";
const TCP: &str = "platform.tcp";
const TLS: &str = "platform.tls";
const HTTP: &str = "platform.http";
const WEB_SOCKET: &str = "platform.websocket";
const CLOCK: &str = "clock";

pub(super) fn check(platform: Option<&Platform>) -> Vec<Check> {
    let Some(platform) = platform else {
        return vec![Check::skipped("platform", "the configuration cannot be read")];
    };
    let url = platform.endpoint("/");
    let mut steps = Steps(Vec::new());
    let addresses = steps.step(DNS, Some(()), |()| resolve(&url));
    let stream = steps.step(TCP, addresses.as_deref(), connect);
    let stream = match (url.scheme(), stream) {
        ("https", stream) => steps.step(TLS, stream, |stream| shake_hands(&url, stream)),
        (_, stream) => {
            steps.0.push(Check::skipped(TLS, "not used: the platform is on this computer"));
            stream.map(|stream| Box::new(stream) as Box<dyn Stream>)
        }
    };
    let head = steps.step(HTTP, stream, |mut stream| ask(&mut *stream, &url));
    steps.step(CLOCK, head.as_ref(), clock);
    let control = platform.control();
    let elsewhere = http::host(control) != http::host(&url);
    steps.step(WEB_SOCKET, (head.is_some() || elsewhere).then_some(control), web_socket);
    steps.0
}

/// What was found, or what is wrong and what to do.
type Step<T> = Result<(T, Finding), (String, &'static str)>;

enum Finding {
    Good(String),
    Odd(String, &'static str),
    Nothing(&'static str),
}

struct Steps(Vec<Check>);

impl Steps {
    /// Takes a step when the one before it came to something.
    fn step<I, O>(
        &mut self,
        name: &'static str,
        before: Option<I>,
        step: impl FnOnce(I) -> Step<O>,
    ) -> Option<O> {
        let Some(input) = before else {
            self.0.push(Check::skipped(name, "not tried: what it needs has failed"));
            return None;
        };
        let (output, check) = match step(input) {
            Ok((output, Finding::Good(detail))) => (Some(output), Check::ok(name, detail)),
            Ok((output, Finding::Odd(detail, advice))) => (Some(output), Check::warn(name, detail, advice)),
            Ok((output, Finding::Nothing(detail))) => (Some(output), Check::skipped(name, detail)),
            Err((detail, advice)) => (None, Check::fail(name, detail, advice)),
        };
        self.0.push(check);
        output
    }
}

fn resolve(url: &Url) -> Step<Vec<SocketAddr>> {
    let (name, _) = http::host(url);
    match http::resolve(url) {
        Ok(addresses) => {
            let found: Vec<_> = addresses.iter().map(|address| address.ip().to_string()).collect();
            Ok((addresses, Finding::Good(format!("{name} is {}", found.join(", ")))))
        }
        Err(error) => Err((
            format!("{name}: {}", plain(&error)),
            "see whether this computer is online, whether platform_url is spelled right, and whether its DNS works",
        )),
    }
}

fn connect(addresses: &[SocketAddr]) -> Step<TcpStream> {
    match http::connect(addresses) {
        Ok(stream) => {
            let peer = stream
                .peer_addr()
                .map_or_else(|_| "connected".to_owned(), |peer| format!("connected to {peer}"));
            Ok((stream, Finding::Good(peer)))
        }
        Err(error) => {
            let advice = if error.kind() == io::ErrorKind::ConnectionRefused {
                "the computer is there and nothing listens on that port: see platform_url, or whether the platform runs"
            } else {
                "a firewall or proxy may be in the way: outgoing connections to that port must be allowed"
            };
            Err((plain(&error), advice))
        }
    }
}

fn shake_hands(url: &Url, stream: TcpStream) -> Step<Box<dyn Stream>> {
    match http::tls(url, stream) {
        Ok((stream, version)) => Ok((stream, Finding::Good(format!("{version}, certificate verified")))),
        Err(error) => Err((
            plain(&error),
            "a proxy may be in the way, the platform may not speak TLS on that port, this computer's clock may be wrong, or \
             its certificates may be missing (on Debian: the package ca-certificates)",
        )),
    }
}

fn ask(stream: &mut dyn Stream, url: &Url) -> Step<Head> {
    let head = http::get(stream, url, "Connection: close\r\n").map_err(|error| {
        (plain(&error), "see whether platform_url names the platform, and not a proxy or another program")
    })?;
    let detail = format!("answers ({})", head.status);
    let finding = match head.status {
        500..=599 => Finding::Odd(detail, "the platform has trouble of its own: wait, or ask who runs it"),
        _ => Finding::Good(detail),
    };
    Ok((head, finding))
}

fn clock(head: &Head) -> Step<()> {
    let Some(theirs) = head.date else {
        return Ok(((), Finding::Nothing("the platform does not tell the time")));
    };
    let ours = SystemTime::now();
    let (off, ahead) = match ours.duration_since(theirs) {
        Ok(ahead) => (ahead, true),
        Err(behind) => (behind.duration(), false),
    };
    let detail = if off < Duration::from_secs(2) {
        "right".to_owned()
    } else {
        format!("{} s {} the platform's", off.as_secs(), if ahead { "ahead of" } else { "behind" })
    };
    let advice = "set this computer's clock (switch on its time synchronisation)";
    if off > SKEW_FAILURE {
        Err((detail, advice))
    } else if off > SKEW_WARNING {
        Ok(((), Finding::Odd(detail, advice)))
    } else {
        Ok(((), Finding::Good(detail)))
    }
}

fn web_socket(url: &Url) -> Step<()> {
    let asked = (|| {
        let stream = http::connect(&http::resolve(url)?)?;
        let mut stream: Box<dyn Stream> =
            if url.scheme() == "wss" { http::tls(url, stream)?.0 } else { Box::new(stream) };
        http::get(&mut *stream, url, UPGRADE)
    })();
    let head = asked.map_err(|error| {
        (
            format!("{url}: {}", plain(&error)),
            "a proxy that does not let WebSockets through may be in the way",
        )
    })?;
    match head.status {
        101 | 401 | 403 => Ok(((), Finding::Good(format!("{url} answers ({})", head.status)))),
        500..=599 => Ok((
            (),
            Finding::Odd(
                format!("{url} answers {}", head.status),
                "the platform has trouble of its own: wait, or ask who runs it",
            ),
        )),
        other => Err((
            format!("{url} answers {other} to a WebSocket"),
            "a proxy may not let WebSockets through, or the platform has none there: see platform_url and platform_ws_url",
        )),
    }
}

/// An error as a person would say it.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            format!("no answer within {} s", http::PATIENCE.as_secs())
        }
        _ => error.to_string(),
    }
}
