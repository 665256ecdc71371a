//! Against a real HTTP server and a real vault.

mod login;
mod logout;
mod platform;
mod source;

use std::path::Path;

use secrecy::{ExposeSecret, SecretString};
use url::Url;
use vault::{BackendChoice, Tokens, Vault, VaultOptions};

use super::response::now;
use super::{OAuthConfig, Redirect, SCOPE};

fn config(base: &Url) -> OAuthConfig {
    OAuthConfig::new(base, "client-1", SCOPE, Redirect::Loopback).unwrap()
}

fn vault_in(dir: &Path) -> Vault {
    Vault::open(&VaultOptions {
        state_dir: dir.to_owned(),
        service: "unused".to_owned(),
        passphrase: Some(SecretString::from("correct horse")),
        backend: BackendChoice::File,
    })
    .unwrap()
}

/// A sign-in that ends in `seconds`, with the tokens `old` and `old-refresh`.
fn sign_in(vault: &Vault, base: &Url, seconds: f64) -> Tokens {
    let tokens = Tokens {
        access_token: SecretString::from("old"),
        refresh_token: Some(SecretString::from("old-refresh")),
        expires_at: now() + seconds,
        platform: base.as_str().trim_end_matches('/').to_owned(),
        client_id: "client-1".to_owned(),
    };
    vault.store_tokens(&tokens).unwrap();
    tokens
}

/// The access and the refresh token that are stored.
fn stored(vault: &Vault) -> Option<(String, Option<String>)> {
    let text = |token: &SecretString| token.expose_secret().to_owned();
    vault.tokens().unwrap().map(|t| (text(&t.access_token), t.refresh_token.as_ref().map(text)))
}

fn pair(access: &str, refresh: &str) -> Option<(String, Option<String>)> {
    Some((access.to_owned(), Some(refresh.to_owned())))
}

fn nobody_listens() -> Url {
    // Bound and let go: nothing else takes a port that was just given out.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap()
}
