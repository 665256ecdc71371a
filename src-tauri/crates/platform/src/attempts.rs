//! Slows down guessing of passwords, by user name.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures of one name before it has to wait.
const FREE: u32 = 10;
/// How long a name's failures are remembered.
const WINDOW: Duration = Duration::from_secs(300);
/// Names remembered; above it the map starts anew, so that made-up names cannot fill memory.
const NAMES: usize = 10_000;

/// Failed sign-ins by name.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<HashMap<String, (u32, Instant)>>);

impl Attempts {
    /// Counts an attempt before it is checked; false when the name has to wait.
    pub(crate) fn admit(&self, name: &str) -> bool {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= NAMES {
            names.clear();
        }
        let now = Instant::now();
        let (count, since) = names.entry(name.to_owned()).or_insert((0, now));
        if now.duration_since(*since) > WINDOW {
            (*count, *since) = (0, now);
        }
        *count += 1;
        *count <= FREE
    }

    /// Forgets a name that got it right.
    pub(crate) fn succeeded(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_waits_after_ten_failures_and_others_do_not() {
        let attempts = Attempts::default();
        assert!((0..FREE).all(|_| attempts.admit("eve")));
        assert!(!attempts.admit("eve"));
        assert!(attempts.admit("ann"));
        attempts.succeeded("eve");
        assert!(attempts.admit("eve"));
    }
}
