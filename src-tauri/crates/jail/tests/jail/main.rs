//! What the jail promises, tried on real files. Every test runs on each walker.
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
