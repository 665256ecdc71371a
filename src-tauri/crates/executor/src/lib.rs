//! The core of Deskhand: connections, sessions, dispatch, consent, limits, kill switch.
//!
//! An [`Executor`] keeps one outbound control connection and a data connection for each active session. Every request goes
//! the same way: connection (frame limit, parse, admit), session (granted? paused?), consent (ask?), capability, audit,
//! and back. It publishes one stream of [`events`] and takes one set of [commands](events::Command); the command line
//! and the app share nothing else with it.
#![deny(unsafe_code)]

mod anchor;
mod connection;
mod control;
mod dispatch;
mod executor;
mod identity;
mod kill;
mod machine;
mod mark;
mod session;

pub mod config;
pub mod consent;
pub mod doctor;
pub mod events;
pub mod front;
pub mod limits;
pub mod local;
pub mod oauth;
pub mod off;

pub use anchor::{AnchorError, audit_anchor, keep_audit_anchor};
pub use connection::Timings;
pub use executor::{Executor, Reload, Setup, StartError, oauth_config};
pub use identity::{IdentityError, machine_id};
pub use kill::KillSwitch;
pub use off::Off;
