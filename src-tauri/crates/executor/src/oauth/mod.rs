//! Signing in to the platform, and keeping the sign-in alive.
//!
//! Authorization Code with PKCE (RFC 6749, 7636, 8252) as a public client. [`Attempt`] is one sign-in: it listens on
//! the loopback, or is handed the redirected address from a deep link or a paste. [`TokenSource`] hands out access
//! tokens and refreshes them. [`log_out`] revokes them.
//!
//! What holds:
//! - tokens go to the platform they belong to and to no other host, over TLS unless that host is the loopback, and
//!   no redirect is followed with one;
//! - an attempt that ends in any way but success leaves the stored sign-in as it was;
//! - one refresh at a time per machine, by whichever process; both new tokens are stored in one write before anyone
//!   uses them, and a caller that goes away does not lose them;
//! - only the platform's own answer signs the user out; a network that fails never does.

mod attempt;
mod browser;
mod callback;
mod config;
mod endpoint;
mod error;
mod logout;
mod loopback;
mod page;
mod pkce;
mod response;
mod source;
#[cfg(test)]
mod tests;

pub use attempt::{Attempt, Completion, NotCompleted, TIMEOUT, login, login_pasting};
pub use browser::open_in_browser;
pub use config::{DEFAULT_CLIENT_ID, OAuthConfig, Redirect, SCOPE};
pub use error::{OAuthError, TokenError};
pub use logout::{LoggedOut, log_out};
pub use loopback::PORTS;
pub use response::login_with_token;
pub use source::{Access, TokenSource, elsewhere};
