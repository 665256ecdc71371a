//! The core: connections, sessions, dispatch, consent, limits, kill switch.
#![deny(unsafe_code)]

pub mod events;
pub mod oauth;
