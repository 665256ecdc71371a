//! The audit log: one HMAC-chained line of JSON for each request and state change.
