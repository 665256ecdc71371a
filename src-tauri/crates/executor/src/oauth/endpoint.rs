//! The platform's token and revocation endpoints.

use std::sync::Once;
use std::time::Duration;

use reqwest::{Client, Response, StatusCode, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use vault::Tokens;
use zeroize::Zeroizing;

use super::error::printable;
use super::pkce::Verifier;
use super::response::{now, parse};
use super::{OAuthConfig, OAuthError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// From the first byte out to the last byte in. The refresh lock of other processes outlasts it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A token response is a few kilobytes.
const LONGEST_BODY: usize = 64 * 1024;

/// How a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// No answer, or one of trouble that may pass (5xx, 408, 429, anything unexpected).
    Unreachable(String),
    /// The platform understood and said no: 400, 401 or 403.
    Refused(Refusal),
    /// Success, with a body that is none.
    BadAnswer(String),
}

/// A no, with its OAuth error code where it gave one.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: Option<String>,
    pub(super) message: String,
}

impl From<Failure> for OAuthError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unreachable(why) => Self::Unreachable(why),
            Failure::Refused(refusal) => Self::Refused(refusal.message),
            Failure::BadAnswer(why) => Self::BadAnswer(why),
        }
    }
}

/// Speaks to one platform.
pub(super) struct Endpoint {
    config: OAuthConfig,
    http: Client,
}

impl Endpoint {
    pub(super) fn new(config: OAuthConfig) -> Result<Self, OAuthError> {
        install_provider();
        let mut http = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .redirect(redirect::Policy::none())
            // A kept connection would be an open socket after the kill switch.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("deskhand/", env!("CARGO_PKG_VERSION")));
        if config.is_loopback() {
            http = http.no_proxy();
        }
        if config.platform().starts_with("http:") {
            // A machine without certificates can still reach its own loopback.
            http = http.tls_certs_only([]);
        }
        let http = http.build().map_err(|e| OAuthError::Unreachable(chain(&e)))?;
        Ok(Self { config, http })
    }

    pub(super) fn config(&self) -> &OAuthConfig {
        &self.config
    }

    /// Buys tokens for an authorization code.
    pub(super) async fn exchange(
        &self,
        code: &SecretString,
        redirect_uri: &str,
        verifier: &Verifier,
    ) -> Result<Tokens, Failure> {
        self.tokens(&[
            ("grant_type", "authorization_code"),
            ("code", code.expose_secret()),
            ("redirect_uri", redirect_uri),
            ("client_id", self.config.client_id()),
            ("code_verifier", verifier.expose()),
        ])
        .await
    }

    /// Buys new tokens. Where the platform does not rotate the refresh token, the old one goes on.
    pub(super) async fn refresh(&self, refresh_token: &SecretString) -> Result<Tokens, Failure> {
        let mut tokens = self
            .tokens(&[
                ("grant_type", "refresh_token"),
                ("refresh_token", refresh_token.expose_secret()),
                ("client_id", self.config.client_id()),
            ])
            .await?;
        tokens.refresh_token.get_or_insert_with(|| refresh_token.clone());
        Ok(tokens)
    }

    /// Asks for `token` to be made worthless. `kind` is RFC 7009's hint.
    pub(super) async fn revoke(&self, token: &SecretString, kind: &str) -> Result<(), Failure> {
        let form = [
            ("token", token.expose_secret()),
            ("token_type_hint", kind),
            ("client_id", self.config.client_id()),
        ];
        self.post("/api/oauth/revoke", &form).await.map(drop)
    }

    async fn tokens(&self, form: &[(&str, &str)]) -> Result<Tokens, Failure> {
        let asked = now();
        let body = self.post("/api/oauth/token", form).await?;
        parse(&body, &self.config, asked).map_err(Failure::BadAnswer)
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let unreachable = |e: reqwest::Error| Failure::Unreachable(chain(&e.without_url()));
        let url = self.config.endpoint(path).map_err(|e| Failure::Unreachable(e.to_string()))?;
        let response = self.http.post(url).form(form).send().await.map_err(unreachable)?;
        let status = response.status();
        let body = bounded_body(response).await?;
        match status {
            status if status.is_success() => Ok(body),
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(Failure::Refused(refusal(status, &body)))
            }
            status => Err(Failure::Unreachable(format!("it answered {status}"))),
        }
    }
}

async fn bounded_body(mut response: Response) -> Result<Zeroizing<Vec<u8>>, Failure> {
    // Room for all of it up front: a growing buffer leaves copies of a token behind.
    let mut body = Zeroizing::new(Vec::with_capacity(LONGEST_BODY));
    while let Some(chunk) =
        response.chunk().await.map_err(|e| Failure::Unreachable(chain(&e.without_url())))?
    {
        if body.len() + chunk.len() > LONGEST_BODY {
            return Err(Failure::BadAnswer(format!("over {LONGEST_BODY} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// RFC 6749 section 5.2, or the `detail` text of FastAPI (which AutoGPT's platform is built with): `code: reason`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorBody {
    error: Option<String>,
    error_description: Option<String>,
    detail: Option<String>,
}

fn refusal(status: StatusCode, body: &[u8]) -> Refusal {
    // A body that is no such JSON says nothing; the status does.
    let body: ErrorBody = serde_json::from_slice(body).unwrap_or_default();
    let code = body.error.or_else(|| {
        let detail = body.detail.as_deref()?;
        detail.split(':').next().map(|code| code.trim().to_owned())
    });
    let said = body.error_description.or(body.detail).or_else(|| code.clone());
    let message = match said {
        Some(said) => format!("{status}: {}", printable(&said)),
        None => status.to_string(),
    };
    Refusal { code, message }
}

/// An error with its causes: reqwest's own text leaves out why.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    printable(&text)
}

/// rustls is built with ring alone, which has to be named once a process. An application that named one is left alone.
fn install_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
