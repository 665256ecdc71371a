//! When a connection has ended: whether to dial again, and after how long. One table, from the contract.

use std::time::Duration;

use protocol::close;

/// What to do after a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Dial again at once.
    Now,
    /// Dial again after the backoff.
    Retry,
    /// Dial again, but not before the longest delay.
    RetryLate,
    /// Refresh the token once, then dial again.
    Refresh,
    /// Do not dial again; the text says why and what to do.
    Halt(&'static str),
}

/// The row of a close code; `None` is an end without one (1006).
pub(crate) fn after_close(code: Option<u16>) -> Next {
    match code {
        Some(close::BAD_HELLO) => {
            Next::Halt("the platform did not accept this program's greeting; please report it")
        }
        Some(close::UNAUTHORIZED) => Next::Refresh,
        Some(close::FORBIDDEN) => Next::Halt(
            "the platform refused this machine: it belongs to another account, or the feature is off there",
        ),
        Some(close::VERSION_MISMATCH) => {
            Next::Halt("update needed: the platform speaks another protocol version")
        }
        Some(close::OWNED_ELSEWHERE) => {
            Next::Halt("another machine, or a newer connection of this one, took over")
        }
        Some(close::REVOKED) => Next::Halt("the platform revoked this connection"),
        Some(close::SHUTTING_DOWN) => Next::RetryLate,
        Some(_) | None => Next::Retry,
    }
}

/// `[reconnect]` of the configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delays {
    pub(crate) base: Duration,
    pub(crate) max: Duration,
    pub(crate) jitter: Duration,
}

/// How long a connection must have lasted for the next delay to start over.
pub(crate) const STABLE_AFTER: Duration = Duration::from_secs(30);

/// Exponential backoff with jitter: `min(2^attempt · base, max) + uniform(0..jitter)`.
#[derive(Debug)]
pub(crate) struct Backoff {
    delays: Delays,
    attempt: u32,
}

impl Backoff {
    pub(crate) fn new(delays: Delays) -> Self {
        Self { delays, attempt: 0 }
    }

    /// The handshake had succeeded and the connection lasted this long.
    pub(crate) fn connected_for(&mut self, lasted: Duration) {
        if lasted >= STABLE_AFTER {
            self.attempt = 0;
        }
    }

    /// The next delay. `fraction` in 0..1 picks the jitter.
    pub(crate) fn next(&mut self, fraction: f64) -> Duration {
        let factor = 2u32.checked_pow(self.attempt).unwrap_or(u32::MAX);
        self.attempt = self.attempt.saturating_add(1);
        let wait = self.delays.base.checked_mul(factor).unwrap_or(self.delays.max).min(self.delays.max);
        wait + self.delays.jitter.mul_f64(fraction.clamp(0.0, 1.0))
    }

    /// The delay when the platform said that it is going away: not before the longest.
    pub(crate) fn next_late(&mut self, fraction: f64) -> Duration {
        self.next(fraction).max(self.delays.max + self.delays.jitter.mul_f64(fraction.clamp(0.0, 1.0)))
    }
}

/// A random fraction in 0..1; 0 when the OS has no randomness, which only costs the jitter.
pub(crate) fn random_fraction() -> f64 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAYS: Delays =
        Delays { base: Duration::from_secs(1), max: Duration::from_secs(60), jitter: Duration::from_secs(5) };

    #[test]
    fn delays_double_up_to_the_longest() {
        let mut backoff = Backoff::new(DELAYS);
        let seconds: Vec<_> = (0..9).map(|_| backoff.next(0.0).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(backoff.next(1.0).as_secs(), 65);
        for _ in 0..100 {
            assert!(backoff.next(0.5) <= Duration::from_secs(63));
        }
    }

    #[test]
    fn only_a_connection_that_lasted_starts_over() {
        let mut backoff = Backoff::new(DELAYS);
        let first: Vec<_> = (0..3).map(|_| backoff.next(0.0).as_secs()).collect();
        assert_eq!(first, [1, 2, 4]);
        backoff.connected_for(Duration::from_secs(29));
        assert_eq!(backoff.next(0.0).as_secs(), 8);
        backoff.connected_for(Duration::from_secs(30));
        assert_eq!(backoff.next(0.0).as_secs(), 1);
    }

    #[test]
    fn a_platform_that_shuts_down_is_left_alone_for_a_minute() {
        assert_eq!(Backoff::new(DELAYS).next_late(0.0).as_secs(), 60);
    }

    #[test]
    fn every_close_code_has_its_row() {
        for (code, retried) in [
            (Some(4400), false),
            (Some(4403), false),
            (Some(4426), false),
            (Some(4427), false),
            (Some(4428), false),
            (Some(4408), true),
            (Some(4429), true),
            (Some(4500), true),
            (Some(1000), true),
            (Some(1011), true),
            (Some(1006), true),
            (Some(1009), true),
            (Some(4999), true),
            (None, true),
        ] {
            assert_eq!(!matches!(after_close(code), Next::Halt(_)), retried, "{code:?}");
        }
        assert_eq!(after_close(Some(4401)), Next::Refresh);
        assert_eq!(after_close(Some(4429)), Next::RetryLate);
    }
}
