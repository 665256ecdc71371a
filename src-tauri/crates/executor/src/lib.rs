//! The core: connections, sessions, dispatch, consent, limits, kill switch.

pub mod config;
pub mod consent;
pub mod limits;
