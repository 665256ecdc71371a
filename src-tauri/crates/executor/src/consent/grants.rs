//! What an answer allows beyond the action it was given for.
//!
//! "For this chat" and "for 15 minutes" cover the prompt's whole class in that chat and that root: after an
//! answer to `git status` every command of the chat runs, and the prompt says so. Nothing narrower would be
//! true of a shell line; who wants less answers each, or writes a rule. They end with the chat, with another
//! root, with the kill switch, and never stand against a rule or setting that denies.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::capability::Capability;
use super::outcome::Scope;
use super::prompt::PromptId;

const FIFTEEN_MINUTES: Duration = Duration::from_secs(15 * 60);
/// More than sessions times capabilities; the oldest goes first.
const MAX_GRANTS: usize = 256;

/// What a standing approval covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cover {
    pub(super) session_id: String,
    pub(super) capability: Capability,
    pub(super) root: PathBuf,
}

/// Now, on both clocks: the steady one stands still while a laptop sleeps, and the other can be set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) steady: Instant,
    pub(super) wall: SystemTime,
}

impl Now {
    pub(super) fn get() -> Self {
        Self { steady: Instant::now(), wall: SystemTime::now() }
    }
}

struct Grant {
    cover: Cover,
    given_by: PromptId,
    /// None for the chat.
    since: Option<Now>,
}

impl Grant {
    fn holds(&self, now: Now) -> bool {
        self.since.is_none_or(|since| {
            let steady = now.steady.saturating_duration_since(since.steady);
            // Set back before the answer, the wall clock says nothing; the steady one still counts.
            let wall = now.wall.duration_since(since.wall).unwrap_or_default();
            steady.max(wall) < FIFTEEN_MINUTES
        })
    }
}

/// All standing approvals.
#[derive(Default)]
pub(super) struct Grants(Vec<Grant>);

impl Grants {
    pub(super) fn give(&mut self, cover: Cover, scope: Scope, given_by: PromptId, now: Now) {
        self.0.retain(|grant| grant.holds(now));
        if self.0.len() >= MAX_GRANTS {
            self.0.remove(0);
        }
        let since = (scope == Scope::FifteenMinutes).then_some(now);
        self.0.push(Grant { cover, given_by, since });
    }

    pub(super) fn find(&self, cover: &Cover, now: Now) -> Option<(Scope, PromptId)> {
        let grant = self.0.iter().find(|grant| grant.cover == *cover && grant.holds(now))?;
        let scope = if grant.since.is_some() { Scope::FifteenMinutes } else { Scope::Chat };
        Some((scope, grant.given_by))
    }

    pub(super) fn forget(&mut self, session_id: &str) {
        self.0.retain(|grant| grant.cover.session_id != session_id);
    }

    pub(super) fn forget_all(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_minutes_end_on_whichever_clock_gets_there_first() {
        let start = Now::get();
        let cover = Cover { session_id: "s".into(), capability: Capability::Shell, root: "/r".into() };
        let mut grants = Grants::default();
        grants.give(cover.clone(), Scope::FifteenMinutes, PromptId::new(), start);
        let after = |steady: u64, wall: i64| {
            let shift = Duration::from_secs(wall.unsigned_abs());
            let wall = if wall < 0 { start.wall - shift } else { start.wall + shift };
            grants.find(&cover, Now { steady: start.steady + Duration::from_secs(steady), wall }).is_some()
        };
        assert!(after(0, 0) && after(899, 899) && after(10, -5000));
        assert!(!after(900, 0), "the wall clock was set back");
        assert!(!after(1, 900), "the machine slept");
    }
}
