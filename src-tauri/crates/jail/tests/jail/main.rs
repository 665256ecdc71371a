//! What the jail promises, tried on real files. Every test runs on each walker.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]
#![cfg(unix)]

mod deleting;
mod escaping;
mod listing;
mod moving;
mod oracle;
mod own_folders;
mod reading;
mod roots;
mod support;
mod trashing;
mod writing;
