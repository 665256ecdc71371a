//! The core: connections, sessions, dispatch, consent, limits, kill switch.
#![deny(unsafe_code)]

pub mod config;
pub mod consent;
pub mod events;
pub mod local;
