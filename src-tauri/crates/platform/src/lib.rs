//! The reference platform: OAuth, relay and HTTP API for demo, tests and self-hosting.
