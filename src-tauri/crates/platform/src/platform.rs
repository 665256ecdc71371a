//! Starting and stopping.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::Url;

use crate::app::App;
use crate::oauth::SCOPE;
use crate::options::PlatformOptions;
use crate::store::{Store, StoreError, oauth, users};
use crate::{password, server};

/// How long machines may take to leave when the platform stops.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Why a platform could not be started, or a user not be added.
#[derive(Debug, thiserror::Error)]
pub enum PlatformError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// As asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A value of the options that cannot be used.
    #[error("option {option}: {problem}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The database could not be opened, read or written.
    #[error("{0}")]
    Database(String),
    /// The name is taken.
    #[error("there is already a user '{0}'")]
    UserExists(String),
    /// There is no such user.
    #[error("there is no user '{0}'")]
    NoSuchUser(String),
    /// A name or password of a length that is not accepted.
    #[error("{0}")]
    BadUser(String),
}

impl From<StoreError> for PlatformError {
    fn from(error: StoreError) -> Self {
        PlatformError::Database(error.to_string())
    }
}

/// A pair of tokens for a client, as the token endpoint would return it.
///
/// It has no `Debug`; the fields are the secrets themselves.
pub struct IssuedTokens {
    /// Good for `access_token_ttl`.
    pub access_token: String,
    /// Good once.
    pub refresh_token: String,
    /// Seconds that the access token lives.
    pub expires_in: u64,
}

/// The first user's credentials, to be shown once.
pub struct FirstUser {
    /// To sign in with.
    pub name: String,
    /// Random; only its hash is kept.
    pub password: String,
}

/// A running platform. Dropping it ends its connections without a word; [`Platform::stop`] says goodbye first.
pub struct Platform {
    app: App,
    server: JoinHandle<()>,
    address: SocketAddr,
}

impl Platform {
    /// Opens the database, listens, and serves until [`Platform::stop`].
    ///
    /// # Errors
    ///
    /// When an option cannot be used, the address is taken, or the database cannot be opened.
    pub async fn start(options: PlatformOptions) -> Result<Self, PlatformError> {
        check(&options)?;
        let database = options.database.clone();
        let store = tokio::task::spawn_blocking(move || Store::open(&database))
            .await
            .map_err(|error| PlatformError::Database(error.to_string()))??;
        let failed = |source| PlatformError::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let url = match &options.public_url {
            Some(url) => url.clone(),
            None => local_url(address)?,
        };
        let app = App::new(options, url, store);
        let server = tokio::spawn(server::serve(app.clone(), listener));
        Ok(Self { app, server, address })
    }

    /// As browsers and machines reach it: the public URL when there is one.
    #[must_use]
    pub fn url(&self) -> Url {
        self.app.url.clone()
    }

    /// The address it listens on, with the port that was free.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a local user.
    ///
    /// # Errors
    ///
    /// When the name is taken or empty, or the password empty or above 1024 bytes.
    pub async fn add_user(&self, name: &str, password: &str) -> Result<(), PlatformError> {
        if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
            return Err(PlatformError::BadUser(
                "a name has 1 to 128 bytes and no control characters".to_owned(),
            ));
        }
        let text = password.to_owned();
        let hash = tokio::task::spawn_blocking(move || password::hash(&text))
            .await
            .map_err(|error| PlatformError::Database(error.to_string()))?
            .map_err(|error| PlatformError::BadUser(error.to_string()))?;
        let key = name.to_owned();
        let added = self.app.store.run(move |db| users::add(db, &key, &hash)).await?;
        added.map(|_| ()).ok_or_else(|| PlatformError::UserExists(name.to_owned()))
    }

    /// Adds the first user with a random password; `None` when there is a user already. The caller shows the password
    /// once, it is kept nowhere.
    ///
    /// # Errors
    ///
    /// As [`Platform::add_user`].
    pub async fn add_first_user(&self, name: &str) -> Result<Option<FirstUser>, PlatformError> {
        if self.app.store.run(users::count).await? > 0 {
            return Ok(None);
        }
        let password = password::random().map_err(|error| PlatformError::Database(error.to_string()))?;
        self.add_user(name, &password).await?;
        Ok(Some(FirstUser { name: name.to_owned(), password }))
    }

    /// Issues tokens to a client without a browser, for tests, the demo and `login --with-token`.
    ///
    /// # Errors
    ///
    /// When there is no such user or client.
    pub async fn issue_tokens(&self, user: &str, client_id: &str) -> Result<IssuedTokens, PlatformError> {
        if self.app.client(client_id).is_none() {
            let problem = format!("there is no client '{client_id}'");
            return Err(PlatformError::Option { option: "clients", problem });
        }
        let (name, client, timings) = (user.to_owned(), client_id.to_owned(), self.app.options.timings);
        let issue = move |db: &rusqlite::Transaction<'_>| match users::by_name(db, &name)? {
            None => Ok(None),
            Some(user) => oauth::grant(db, &user.id, &client, SCOPE, &timings).map(Some),
        };
        let minted = self.app.store.run(issue).await?;
        let minted = minted.ok_or_else(|| PlatformError::NoSuchUser(user.to_owned()))?;
        Ok(IssuedTokens {
            access_token: minted.access.into_exposed(),
            refresh_token: minted.refresh.into_exposed(),
            expires_in: timings.access_token_ttl.as_secs(),
        })
    }

    /// Closes every machine's connection with 4429, lets requests end, stops listening, and closes the database.
    pub async fn stop(self) {
        self.app.stopping.cancel();
        self.app.tasks.close();
        let _ = tokio::time::timeout(STOP_GRACE, self.app.tasks.wait()).await;
        let abort = self.server.abort_handle();
        if tokio::time::timeout(STOP_GRACE, self.server).await.is_err() {
            abort.abort();
        }
        self.app.store.close().await;
    }
}

fn check(options: &PlatformOptions) -> Result<(), PlatformError> {
    let bad = |option, problem: &str| Err(PlatformError::Option { option, problem: problem.to_owned() });
    let limits = &options.limits;
    if limits.max_file_size_bytes == 0 || limits.max_concurrent == 0 {
        return bad("limits", "each must be above 0");
    }
    if !(limits.command_timeout_seconds > 0.0 && limits.command_timeout_seconds.is_finite()) {
        return bad("limits", "command_timeout_seconds must be above 0");
    }
    if options
        .public_url
        .as_ref()
        .is_some_and(|url| !matches!(url.scheme(), "http" | "https") || !url.has_host())
    {
        return bad("public_url", "it must be an http or https URL");
    }
    if options.timings.ping_every.is_zero() {
        return bad("timings", "ping_every must be above 0");
    }
    Ok(())
}

fn local_url(address: SocketAddr) -> Result<Url, PlatformError> {
    let ip = address.ip();
    let host = match (ip.is_unspecified(), ip) {
        (true, _) => "127.0.0.1".to_owned(),
        (false, std::net::IpAddr::V4(ip)) => ip.to_string(),
        (false, std::net::IpAddr::V6(ip)) => format!("[{ip}]"),
    };
    Url::parse(&format!("http://{host}:{}/", address.port()))
        .map_err(|error| PlatformError::Option { option: "listen", problem: error.to_string() })
}
