//! The reference platform: the other side of Deskhand's wire, small, complete and self-hostable.
//!
//! It is what the demo starts, what the whole-system tests run against, and what somebody runs who wants an agent of
//! their own to reach their machines. It has the routes of AutoGPT's platform: OAuth for public clients, the relay that
//! machines dial, an HTTP API for sessions and tools, the same tools over MCP, and a few pages. It shares the `protocol`
//! crate with the executor and nothing else, so that a mistake of one side cannot hide behind the same mistake of the
//! other.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let platform = platform::Platform::start(platform::PlatformOptions::default()).await?;
//! platform.add_user("ann", "correct horse").await?;
//! println!("{}", platform.url());
//! platform.stop().await;
//! # Ok(()) }
//! ```
//!
//! # Safety of what it holds
//!
//! Passwords are Argon2id; of tokens, codes and cookies only SHA-256 is stored. A code is consumed and its tokens are
//! minted in one transaction, as is every other change of several steps. Everything local fails closed: what is
//! missing, stale, revoked or mismatched is an error, never a run somewhere else. What a machine answers is checked in
//! full before anybody sees it.
//!
//! # Growing
//!
//! One process with SQLite serves a team. Beyond one machine, two seams are meant to be used: `relay::Presence` and
//! `relay::Line` would be carried by NATS (JetStream key-value with a time to live for presence, request/reply for
//! requests), and the functions in `store` by PostgreSQL. Both are existing engines; nothing of our own belongs there.
#![forbid(unsafe_code)]

mod api;
mod app;
mod attempts;
mod auth;
mod error;
mod mcp;
mod oauth;
mod options;
mod pages;
mod password;
mod platform;
mod relay;
mod secret;
mod server;
mod sessions;
mod store;
mod tools;

pub use options::{Client, DEFAULT_CLIENT_ID, Database, Features, LOOPBACK_PORTS, PlatformOptions, Timings};
pub use platform::{FirstUser, IssuedTokens, Platform, PlatformError};
