//! One supervisor kept ready. Executing our own file takes longer than everything else in a start (in the
//! desktop app there are a hundred libraries to load); so the next one is started while a command runs, not
//! when it is asked for.
//!
//! There is none before the first command, none a while after the last one, and none after a kill.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::process::Supervisor;
use crate::lineage::Mark;

/// Without a command for so long, it goes.
const IDLE: Duration = Duration::from_secs(60);

pub(super) struct Spare {
    mark: Option<Mark>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When one was last asked for; None: none is wanted.
    wanted: Option<Instant>,
    ready: Option<Supervisor>,
}

impl Spare {
    /// Those it starts get `mark`.
    pub(super) fn new(mark: Option<Mark>) -> Spare {
        Spare { mark, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The spare one, if it is there and nobody has killed it.
    pub(super) fn take(&self) -> Option<Supervisor> {
        let supervisor = self.state().ready.take()?;
        if supervisor.is_waiting() {
            return Some(supervisor);
        }
        supervisor.dismiss();
        None
    }

    /// A command runs: the next one may come soon.
    pub(super) fn want(&self) {
        self.state().wanted = Some(Instant::now());
    }

    /// Kills it, and wants no other.
    pub(super) fn retire(&self) {
        let mut state = self.state();
        state.wanted = None;
        let ready = state.ready.take();
        drop(state);
        if let Some(supervisor) = ready {
            supervisor.dismiss();
        }
    }

    /// Starts one when one is wanted and missing, or lets the idle one go; answers when to look again.
    pub(super) fn tend(&self) -> Option<Duration> {
        let (wanted, missing) = {
            let state = self.state();
            (state.wanted?, state.ready.is_none())
        };
        let rest = IDLE.saturating_sub(wanted.elapsed());
        if rest.is_zero() {
            self.retire();
            return None;
        }
        if missing {
            // Without one, the next start makes its own, and meets the same error there.
            let started = Supervisor::start(self.mark).ok()?;
            let mut state = self.state();
            // A kill came in between.
            if state.wanted.is_none() || state.ready.is_some() {
                drop(state);
                started.dismiss();
                return None;
            }
            state.ready = Some(started);
        }
        Some(rest)
    }
}
