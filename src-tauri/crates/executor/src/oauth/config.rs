use url::{Host, Url};

use super::OAuthError;

/// The client every AutoGPT platform knows.
pub const DEFAULT_CLIENT_ID: &str = "autogpt-local-executor";
/// The one scope that is asked for.
pub const SCOPE: &str = "USE_TOOLS";

/// Where the platform sends the browser back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirect {
    /// A listener on this machine, as RFC 8252 section 7.3 has it.
    #[default]
    Loopback,
    /// `deskhand://oauth/callback`, where the platform registered it.
    DeepLink,
}

/// Whom to sign in to, and as which client.
#[derive(Clone, Debug)]
pub struct OAuthConfig {
    base: String,
    client_id: String,
    scope: String,
    redirect: Redirect,
}

impl OAuthConfig {
    /// `http_base` is the platform's address, a path included (`https://host/base`).
    ///
    /// # Errors
    /// [`OAuthError::BadBase`]: not https and not http on the loopback, or with a user, query or fragment.
    pub fn new(
        http_base: &Url,
        client_id: impl Into<String>,
        scope: impl Into<String>,
        redirect: Redirect,
    ) -> Result<Self, OAuthError> {
        let plain = http_base.username().is_empty()
            && http_base.password().is_none()
            && http_base.query().is_none()
            && http_base.fragment().is_none();
        let private = match http_base.scheme() {
            "https" => http_base.has_host(),
            "http" => is_loopback(http_base),
            _ => false,
        };
        if !(plain && private) {
            let mut shown = http_base.clone();
            // What may be a secret is not shown; a URL that cannot have one has none to hide.
            let _ = shown.set_username("");
            let _ = shown.set_password(None);
            return Err(OAuthError::BadBase(shown.to_string()));
        }
        let base = http_base.as_str().trim_end_matches('/').to_owned();
        Ok(Self { base, client_id: client_id.into(), scope: scope.into(), redirect })
    }

    /// The platform, as it is stored with its tokens: no slash at the end.
    #[must_use]
    pub fn platform(&self) -> &str {
        &self.base
    }

    pub(super) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(super) fn scope(&self) -> &str {
        &self.scope
    }

    pub(super) fn redirect(&self) -> Redirect {
        self.redirect
    }

    pub(super) fn is_loopback(&self) -> bool {
        Url::parse(&self.base).is_ok_and(|base| is_loopback(&base))
    }

    /// The same client at the platform that `tokens` belong to.
    pub(super) fn of_tokens(&self, tokens: &vault::Tokens) -> Result<Self, OAuthError> {
        let base = Url::parse(&tokens.platform)
            .map_err(|_| OAuthError::BadBase(super::error::printable(&tokens.platform)))?;
        Self::new(&base, tokens.client_id.clone(), self.scope.clone(), self.redirect)
    }

    /// `path` begins with a slash.
    pub(super) fn endpoint(&self, path: &str) -> Result<Url, OAuthError> {
        Url::parse(&format!("{}{path}", self.base)).map_err(|_| OAuthError::BadBase(self.base.clone()))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
