//! Secrets: the OS keychain, or one encrypted file where there is none.
//!
//! The access and refresh tokens, the audit key and the recording key live here and nowhere else. On a desktop they
//! are items of the OS keychain (Secret Service, Keychain, Credential Manager). On a machine without one they are in
//! `vault.json`: XChaCha20-Poly1305 under a key that Argon2id makes from a passphrase. Without a keychain and without
//! a passphrase there is no vault, and the product does not start.
//!
//! What holds:
//! - a secret has no `Debug`, no `Serialize`, and is wiped from memory when dropped;
//! - a write leaves the old content or the new, also on a full disk or after a crash, and two processes take turns;
//! - every read sees what another process wrote last (a `login` while `run` is up);
//! - a store that fails, is locked or does not answer is an error, never an empty vault: the audit key is made anew
//!   only where the store was proven to work and none was ever made;
//! - no call waits for a keychain longer than [`KEYCHAIN_PATIENCE`].

mod atomic;
#[cfg(unix)]
mod environ;
mod error;
mod file;
mod harden;
mod keychain;
mod lock;
mod options;
mod parts;
mod passphrase;
mod record;
mod sealed;
mod secret;
mod store;
mod tokens;
mod vault;

pub use error::VaultError;
pub use harden::harden_process;
pub use keychain::KEYCHAIN_PATIENCE;
pub use lock::LockGuard;
pub use options::{Backend, BackendChoice, VaultOptions, service_name};
pub use passphrase::{PASSPHRASE_FILE_VARIABLE, PASSPHRASE_VARIABLE, passphrase_from_env};
pub use secrecy::{ExposeSecret, SecretString};
pub use secret::SecretBytes;
pub use tokens::Tokens;
pub use vault::Vault;
