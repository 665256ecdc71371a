use std::io;
use std::process::{Command, Stdio};
use std::thread;

use url::Url;

/// Shows `url` in the user's browser, without a shell in between. It does not wait for the browser.
///
/// # Errors
/// There is no opener on this machine, or it cannot be started.
pub fn open_in_browser(url: &Url) -> io::Result<()> {
    if !matches!(url.scheme(), "https" | "http") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a web address"));
    }
    let (program, arguments) = opener();
    let mut child = Command::new(program)
        .args(arguments)
        .arg(url.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // Some openers live as long as the browser they start; somebody has to collect them.
    thread::Builder::new().name("browser".to_owned()).spawn(move || child.wait()).map(drop)
}

#[cfg(windows)]
fn opener() -> (&'static str, &'static [&'static str]) {
    ("rundll32", &["url.dll,FileProtocolHandler"])
}

#[cfg(target_os = "macos")]
fn opener() -> (&'static str, &'static [&'static str]) {
    ("/usr/bin/open", &[])
}

#[cfg(all(unix, not(target_os = "macos")))]
fn opener() -> (&'static str, &'static [&'static str]) {
    ("xdg-open", &[])
}
