use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many at once. Cloning gives another handle to the same bound.
#[derive(Clone, Debug)]
pub struct Bound(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    limit: AtomicUsize,
    taken: AtomicUsize,
}

impl Bound {
    /// `limit` at once.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Counts { limit: AtomicUsize::new(limit), taken: AtomicUsize::new(0) }))
    }

    /// One of them, until it is dropped; none when all are taken.
    pub fn try_enter(&self) -> Option<Permit> {
        let limit = self.limit();
        let enter = |taken| (taken < limit).then_some(taken + 1);
        self.0.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, enter).ok()?;
        Some(Permit(self.clone()))
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.0.taken.load(Ordering::SeqCst)
    }

    /// How many there are.
    pub fn limit(&self) -> usize {
        self.0.limit.load(Ordering::SeqCst)
    }

    /// How many are free.
    pub fn free(&self) -> usize {
        self.limit().saturating_sub(self.taken())
    }

    /// Another limit for those to come.
    pub fn set_limit(&self, limit: usize) {
        self.0.limit.store(limit, Ordering::SeqCst);
    }
}

/// One place of a [`Bound`].
#[derive(Debug)]
#[must_use = "the place is free again when this is dropped"]
pub struct Permit(Bound);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.taken.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_the_limit_also_with_many_threads() {
        let (bound, most) = (Bound::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if let Some(permit) = bound.try_enter() {
                            most.fetch_max(bound.taken(), Ordering::SeqCst);
                            drop(permit);
                        }
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 3);
        assert_eq!((bound.taken(), bound.free()), (0, 3));
    }

    #[test]
    fn a_lowered_limit_holds_for_those_to_come() {
        let bound = Bound::new(2);
        let held = [bound.try_enter().unwrap(), bound.try_enter().unwrap()];
        assert!(bound.try_enter().is_none());
        bound.set_limit(1);
        let [first, second] = held;
        drop(first);
        assert!(bound.try_enter().is_none());
        drop(second);
        assert!(bound.try_enter().is_some());
    }
}
