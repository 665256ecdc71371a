//! What the browser shows at the end: one small page that loads nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const STYLE: &str = "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1.5rem;\
color:#1b1b1f;background:#fbfbfd}h1{font-size:1.5rem}\
@media(prefers-color-scheme:dark){body{color:#e6e6ea;background:#17171a}}";

/// A whole HTTP/1.1 response.
pub(super) fn response(status: &str, title: &str, text: &str) -> Vec<u8> {
    let body = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title} – Deskhand</title>\
         <style>{STYLE}</style></head><body><h1>{title}</h1><p>{text}</p></body></html>",
        title = escape(title),
        text = escape(text)
    );
    let style = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'sha256-{style}'; frame-ancestors 'none'\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
