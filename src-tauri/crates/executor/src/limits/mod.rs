//! Limits that hold whatever is sent (safety.md §8): how often, how much at once, and whose turn it is.
//!
//! - [`Rate`]: a sliding window, exact to the request. What is refused does not count.
//! - [`Bound`]: so many at once, the next is refused. Commands of the machine ([`COMMANDS_AT_ONCE`]).
//! - [`Slots`]: requests in flight. A connection admits `max_concurrent` and refuses the next at once; what the
//!   sessions have admitted together waits for one of the machine's slots, in order within a session and in
//!   turn between sessions, so that one with many requests never starves another.

mod bound;
mod rate;
mod slots;

pub use bound::{Bound, Permit};
pub use rate::{Rate, RetryAfter};
pub use slots::{Admitted, Cancelled, Connection, Freed, Full, Running, Slots};

/// Commands that run at the same time on one machine (safety.md §8).
pub const COMMANDS_AT_ONCE: usize = 10;
