use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;

/// The limit is reached; it is `details {retry_after_seconds}` of `SHIM_OVERLOADED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("too often; try again in {seconds} s")]
pub struct RetryAfter {
    /// Whole seconds until there is room again, 1 at least.
    pub seconds: u64,
}

/// At most so many in any window of a given length. It remembers when each of them was, so memory grows to the
/// limit and no further.
#[derive(Debug)]
pub struct Rate {
    window: Duration,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    limit: usize,
    taken: VecDeque<Instant>,
}

impl Rate {
    /// `limit` in any `window`; none at all when it is 0.
    pub fn new(limit: u32, window: Duration) -> Self {
        Self { window, log: Mutex::new(Log { limit: limit as usize, taken: VecDeque::new() }) }
    }

    /// `limit` in any 60 seconds.
    pub fn per_minute(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(60))
    }

    /// Takes one, or says when there will be one.
    pub fn try_acquire(&self, now: Instant) -> Result<(), RetryAfter> {
        let mut log = self.lock();
        // Two callers may come here in another order than they looked at the clock.
        let now = log.taken.back().map_or(now, |last| now.max(*last));
        while log.taken.front().is_some_and(|first| now.duration_since(*first) >= self.window) {
            log.taken.pop_front();
        }
        if log.taken.len() < log.limit {
            log.taken.push_back(now);
            return Ok(());
        }
        // After a lowered limit more than one has to leave the window first.
        let leaves_last = log.taken.len() - log.limit;
        let wait =
            log.taken.get(leaves_last).map_or(self.window, |taken| self.window - now.duration_since(*taken));
        Err(RetryAfter { seconds: (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1) })
    }

    /// Gives back the one taken at `taken`: the request was refused after all, by the person for example.
    pub fn give_back(&self, taken: Instant) {
        let mut log = self.lock();
        if let Some(index) = log.taken.iter().position(|at| *at >= taken) {
            log.taken.remove(index);
        }
    }

    /// Another limit, from now on; what was taken stays taken.
    pub fn set_limit(&self, limit: u32) {
        self.lock().limit = limit as usize;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_window_slides_and_refusals_do_not_count() {
        let (rate, start) = (Rate::per_minute(2), Instant::now());
        let at = |millis: u64| rate.try_acquire(start + Duration::from_millis(millis));
        assert_eq!(at(0), Ok(()));
        assert_eq!(at(30_000), Ok(()));
        assert_eq!(at(30_000), Err(RetryAfter { seconds: 30 }));
        assert_eq!(at(59_999), Err(RetryAfter { seconds: 1 }));
        assert_eq!(at(60_000), Ok(()));
        assert_eq!(at(60_000), Err(RetryAfter { seconds: 30 }));
        assert_eq!(at(90_000), Ok(()));
    }

    #[test]
    fn a_refund_makes_room_and_a_new_limit_holds_at_once() {
        let (rate, start) = (Rate::per_minute(3), Instant::now());
        let at = |seconds: u64| rate.try_acquire(start + Duration::from_secs(seconds));
        (0..3).for_each(|n| at(n).unwrap());
        rate.give_back(start + Duration::from_secs(1));
        assert_eq!(at(3), Ok(()));
        assert_eq!(at(3), Err(RetryAfter { seconds: 57 }), "the first is still in the window");
        rate.set_limit(1);
        assert_eq!(at(4), Err(RetryAfter { seconds: 59 }), "the last of three has to leave the window");
        assert_eq!(at(63), Ok(()));
        rate.set_limit(0);
        assert_eq!(at(500), Err(RetryAfter { seconds: 60 }));
    }

    proptest! {
        /// Against the definition: whatever was taken, any window that ends at one of them holds `limit` at most,
        /// and what was refused would have been one too many.
        #[test]
        fn no_window_holds_more_than_the_limit(
            limit in 0..6_u32,
            gaps in proptest::collection::vec(0..30_000_u64, 0..200),
        ) {
            let (rate, start) = (Rate::per_minute(limit), Instant::now());
            let mut now = start;
            let mut taken: Vec<Instant> = Vec::new();
            for gap in gaps {
                now += Duration::from_millis(gap);
                let inside = |at: Instant| taken.iter().filter(|t| at.duration_since(**t) < Duration::from_secs(60)).count();
                let full = inside(now) >= limit as usize;
                match rate.try_acquire(now) {
                    Ok(()) => {
                        prop_assert!(!full);
                        taken.push(now);
                    }
                    Err(retry) => {
                        prop_assert!(full);
                        let later = now + Duration::from_secs(retry.seconds);
                        prop_assert!(limit == 0 || inside(later) < limit as usize);
                        prop_assert!(limit == 0 || retry.seconds <= 1 || inside(later - Duration::from_secs(1)) >= limit as usize);
                    }
                }
            }
            prop_assert!(rate.lock().taken.len() <= limit as usize);
        }
    }
}
