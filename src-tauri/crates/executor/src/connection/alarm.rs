//! The timers of a connection's loop.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that outlives the loop's turns: the runtime's list of timers is touched when it is brought forward or has rung,
/// not at every frame. When what it was set for is put off, it rings too early, and the loop looks again.
pub(super) struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    pub(super) fn at(time: Instant) -> Self {
        Self(Box::pin(sleep_until(time)))
    }

    pub(super) fn no_later_than(&mut self, time: Instant) {
        if time < self.0.deadline() || self.0.is_elapsed() {
            self.0.as_mut().reset(time);
        }
    }

    pub(super) async fn rings(&mut self) -> Instant {
        self.0.as_mut().await;
        Instant::now()
    }
}
