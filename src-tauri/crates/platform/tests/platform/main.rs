//! The platform as its clients and machines see it: real sockets on a free port, a database in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod common;
mod mcp;
mod oauth;
mod pages;
mod relay;
mod requests;
mod sessions;
mod tools;
