//! Consent.

mod capability;

pub use capability::Capability;
