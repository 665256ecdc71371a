//! Everything that consent remembers, as one plain state: open prompts, standing approvals, and who was denied
//! how often. No clock, no lock and no task of its own; every method is short and calls nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::action::{Action, Digest};
use super::capability::Capability;
use super::event::ConsentEvent;
use super::grants::{Cover, Grants, Now};
use super::outcome::{Reason, Scope, Withdrawal};
use super::policy::{Policy, Subject, Verdict};
use super::program::ProgramMatch;
use super::prompt::{Answer, AnswerError, End, Prompt, PromptId, PromptView};

/// No answer for so long is a denial (safety.md §3).
pub(super) const COUNTDOWN: Duration = Duration::from_secs(60);
/// Nobody reads a prompt in less (safety.md §3).
pub(super) const READING_TIME: Duration = Duration::from_millis(700);
/// More denials and time-outs in a row than this pause the chat (safety.md §3).
pub(super) const MAX_DENIALS: u32 = 5;
/// Sessions times `max_concurrent` stay below this by default; a prompt behind so many others is never reached.
pub(super) const MAX_OPEN: usize = 64;
/// Chats whose denials are counted. A paused one is never forgotten: six prompts had to be denied for each.
const MAX_COUNTED: usize = 1024;

/// The answer to one request.
pub(super) type Settled = Result<Grounds, Refusal>;

/// What an approval rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grounds {
    pub(super) scope: Scope,
    pub(super) prompt: Option<PromptId>,
}

/// Why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) withdrawal: Option<Withdrawal>,
    pub(super) prompt: Option<PromptId>,
}

impl Refusal {
    pub(super) fn new(reason: Reason) -> Self {
        Self { reason, withdrawal: None, prompt: None }
    }

    pub(super) fn withdrawn(why: Withdrawal) -> Self {
        Self { reason: Reason::Withdrawn, withdrawal: Some(why), prompt: None }
    }
}

/// A request's place at an open prompt.
pub(super) struct Ticket {
    pub(super) prompt: PromptId,
    pub(super) waiter: u64,
    pub(super) settled: oneshot::Receiver<Settled>,
    pub(super) deadline: watch::Receiver<Option<Instant>>,
}

pub(super) struct Desk {
    policy: Policy,
    /// The first is before the person.
    open: VecDeque<Open>,
    grants: Grants,
    counts: HashMap<String, Count>,
    displayed: Option<Displayed>,
    next_waiter: u64,
    pub(super) events: VecDeque<ConsentEvent>,
}

struct Open {
    prompt: Arc<Prompt>,
    digest: Digest,
    cover: Cover,
    program: ProgramMatch,
    waiters: Vec<(u64, oneshot::Sender<Settled>)>,
    deadline: watch::Sender<Option<Instant>>,
    shown_at: Option<Instant>,
    touched: bool,
}

/// What the prompter shows, until it has been told to take it away.
struct Displayed {
    id: PromptId,
    end: Option<End>,
}

#[derive(Default)]
struct Count {
    in_a_row: u32,
    paused: bool,
}

/// What the prompter has to do next.
pub(super) enum Display {
    Show(Arc<Prompt>),
    Withdraw(PromptId, End),
}

impl Desk {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            open: VecDeque::new(),
            grants: Grants::default(),
            counts: HashMap::new(),
            displayed: None,
            next_waiter: 0,
            events: VecDeque::new(),
        }
    }

    /// What is decided without asking; none when somebody has to be asked.
    pub(super) fn decided<P>(&self, action: &Action<P>, now: Now) -> Option<Settled> {
        if self.is_paused(&action.session_id) {
            return Some(Err(Refusal::withdrawn(Withdrawal::Paused)));
        }
        match self.policy.verdict(&Subject::from(action)) {
            Verdict::Allow(scope) => Some(Ok(Grounds { scope, prompt: None })),
            Verdict::Deny => Some(Err(Refusal::new(Reason::Rule))),
            Verdict::Ask => self
                .grants
                .find(&cover(action), now)
                .map(|(scope, prompt)| Ok(Grounds { scope, prompt: Some(prompt) })),
        }
    }

    /// Puts the action before the person: at an open prompt that asks the same, else at a new one.
    pub(super) fn ask<P>(&mut self, action: &Action<P>, digest: Digest, now: Now) -> Result<Ticket, Settled> {
        if let Some(settled) = self.decided(action, now) {
            return Err(settled);
        }
        // Each recording is asked for on its own.
        let shares = action.capability != Capability::Record;
        let same = self.open.iter().position(|open| shares && open.digest == digest);
        if same.is_none() && self.open.len() >= MAX_OPEN {
            return Err(Err(Refusal::withdrawn(Withdrawal::QueueFull)));
        }
        let index = same.unwrap_or_else(|| self.open_prompt(action, digest));
        let waiter = self.next_waiter;
        self.next_waiter += 1;
        let (sender, settled) = oneshot::channel();
        let open = &mut self.open[index];
        open.waiters.push((waiter, sender));
        let ticket = Ticket { prompt: open.prompt.id, waiter, settled, deadline: open.deadline.subscribe() };
        self.promote(now);
        Ok(ticket)
    }

    fn open_prompt<P>(&mut self, action: &Action<P>, digest: Digest) -> usize {
        let prompt = Arc::new(Prompt::of(action, self.policy.host()));
        self.events.push_back(ConsentEvent::Opened { prompt: Arc::clone(&prompt) });
        self.open.push_back(Open {
            prompt,
            digest,
            cover: cover(action),
            program: action.program.clone(),
            waiters: Vec::new(),
            deadline: watch::Sender::new(None),
            shown_at: None,
            touched: false,
        });
        self.open.len() - 1
    }

    /// A person's answer.
    pub(super) fn answer(&mut self, id: &PromptId, answer: Answer, now: Now) -> Result<(), AnswerError> {
        let index = self.index(id).ok_or(AnswerError::NotOpen)?;
        let open = &self.open[index];
        if !open.prompt.offers.contains(&answer) {
            return Err(AnswerError::NotOffered);
        }
        let scope = match answer {
            Answer::AllowOnce => Scope::Once,
            Answer::Allow15Minutes => Scope::FifteenMinutes,
            Answer::AllowChat => Scope::Chat,
            Answer::Deny | Answer::DenyAndDisconnect => {
                self.deny(index, answer, now);
                return Ok(());
            }
        };
        let shown_at = open.shown_at.ok_or(AnswerError::NotShown)?;
        if now.steady.saturating_duration_since(shown_at) < READING_TIME {
            return Err(AnswerError::TooSoon);
        }
        self.allow(index, answer, scope, now);
        Ok(())
    }

    fn allow(&mut self, index: usize, answer: Answer, scope: Scope, now: Now) {
        let cover = self.open[index].cover.clone();
        let by = self.open[index].prompt.id;
        if let Some(count) = self.counts.get_mut(&cover.session_id) {
            count.in_a_row = 0;
        }
        let grounds = Grounds { scope, prompt: Some(by) };
        self.close(index, Ok(grounds), End::Answered(answer));
        if scope != Scope::Once {
            self.grants.give(cover.clone(), scope, by, now);
            self.close_all(|open| open.cover == cover, Ok(grounds), End::Covered);
        }
        self.promote(now);
    }

    fn deny(&mut self, index: usize, answer: Answer, now: Now) {
        let session_id = self.open[index].cover.session_id.clone();
        self.close(index, Err(Refusal::new(Reason::Declined)), End::Answered(answer));
        self.count_denial(&session_id);
        if answer == Answer::DenyAndDisconnect {
            let why = Withdrawal::SessionEnded;
            self.close_all(in_session(&session_id), Err(Refusal::withdrawn(why)), End::Withdrawn(why));
            self.grants.forget(&session_id);
            self.events.push_back(ConsentEvent::DisconnectAsked { session_id });
        }
        self.promote(now);
    }

    /// The countdown has ended, unless it was stopped or begun anew meanwhile.
    pub(super) fn expire(&mut self, id: &PromptId, now: Now) {
        let Some(index) = self.index(id) else { return };
        let deadline = *self.open[index].deadline.borrow();
        if deadline.is_some_and(|deadline| deadline <= now.steady) {
            let session_id = self.open[index].cover.session_id.clone();
            self.close(index, Err(Refusal::new(Reason::TimedOut)), End::TimedOut);
            self.count_denial(&session_id);
            self.promote(now);
        }
    }

    /// One request does not wait any longer.
    pub(super) fn leave(&mut self, id: &PromptId, waiter: u64, now: Now) {
        let Some(index) = self.index(id) else { return };
        let open = &mut self.open[index];
        open.waiters.retain(|(waiting, _)| *waiting != waiter);
        if open.waiters.is_empty() {
            let why = Withdrawal::Cancelled;
            self.close(index, Err(Refusal::withdrawn(why)), End::Withdrawn(why));
            self.promote(now);
        }
    }

    /// Starts the reading time of a shown prompt again. Its countdown goes on.
    pub(super) fn reread(&mut self, id: &PromptId, now: Now) -> bool {
        let Some(open) = self.open.iter_mut().find(|open| open.prompt.id == *id) else { return false };
        if open.shown_at.is_some() {
            open.shown_at = Some(now.steady);
        }
        open.shown_at.is_some()
    }

    /// Somebody deals with the prompt: its countdown ends. False when it is not open.
    pub(super) fn touch(&mut self, id: &PromptId) -> bool {
        let Some(index) = self.index(id) else { return false };
        let open = &mut self.open[index];
        open.touched = true;
        open.deadline.send_replace(None);
        true
    }

    pub(super) fn withdraw_all(&mut self, why: Withdrawal) {
        self.close_all(|_| true, Err(Refusal::withdrawn(why)), End::Withdrawn(why));
        if why == Withdrawal::Killed {
            self.grants.forget_all();
        }
    }

    pub(super) fn end_session(&mut self, session_id: &str, now: Now) {
        let why = Withdrawal::SessionEnded;
        self.close_all(in_session(session_id), Err(Refusal::withdrawn(why)), End::Withdrawn(why));
        self.grants.forget(session_id);
        self.promote(now);
    }

    /// New settings hold for the prompts that are open already.
    pub(super) fn set_policy(&mut self, policy: Policy, now: Now) {
        self.policy = policy;
        for index in (0..self.open.len()).rev() {
            let Open { cover, program, .. } = &self.open[index];
            let subject = Subject { capability: cover.capability, root: &cover.root, program };
            match self.policy.verdict(&subject) {
                Verdict::Allow(scope) => self.close(index, Ok(Grounds { scope, prompt: None }), End::Rule),
                Verdict::Deny => self.close(index, Err(Refusal::new(Reason::Rule)), End::Rule),
                Verdict::Ask => {}
            }
        }
        self.promote(now);
    }

    pub(super) fn is_paused(&self, session_id: &str) -> bool {
        self.counts.get(session_id).is_some_and(|count| count.paused)
    }

    pub(super) fn resume(&mut self, session_id: &str) {
        if self.counts.remove(session_id).is_some_and(|count| count.paused) {
            self.events.push_back(ConsentEvent::ChatResumed { session_id: session_id.to_owned() });
        }
    }

    pub(super) fn paused(&self) -> Vec<String> {
        let paused = self.counts.iter().filter(|(_, count)| count.paused);
        let mut paused: Vec<_> = paused.map(|(session_id, _)| session_id.clone()).collect();
        paused.sort();
        paused
    }

    pub(super) fn views(&self, now: Now) -> Vec<PromptView> {
        let view = |open: &Open| PromptView {
            prompt: (*open.prompt).clone(),
            shown: open.shown_at.is_some(),
            requests: open.waiters.len(),
            seconds_left: open
                .deadline
                .borrow()
                .map(|deadline| deadline.saturating_duration_since(now.steady).as_secs_f64()),
        };
        self.open.iter().map(view).collect()
    }

    /// What the prompter is to do next, marked as done: what is shown and has ended goes first.
    pub(super) fn next_display(&mut self, now: Now) -> Option<Display> {
        if let Some(displayed) = &self.displayed {
            let (id, end) = (displayed.id, displayed.end?);
            self.displayed = None;
            return Some(Display::Withdraw(id, end));
        }
        let open = self.open.front_mut()?;
        let prompt = Arc::clone(&open.prompt);
        open.shown_at = Some(now.steady);
        if !open.touched {
            open.deadline.send_replace(Some(now.steady + COUNTDOWN));
        }
        self.displayed = Some(Displayed { id: prompt.id, end: None });
        self.events.push_back(ConsentEvent::Shown { id: prompt.id });
        Some(Display::Show(prompt))
    }

    fn index(&self, id: &PromptId) -> Option<usize> {
        self.open.iter().position(|open| open.prompt.id == *id)
    }

    /// The countdown of the first prompt runs even if the prompter hangs and never shows it.
    fn promote(&mut self, now: Now) {
        let first = self.open.front_mut().filter(|first| !first.touched && first.deadline.borrow().is_none());
        if let Some(first) = first {
            first.deadline.send_replace(Some(now.steady + COUNTDOWN));
        }
    }

    fn close_all(&mut self, which: impl Fn(&Open) -> bool, settled: Settled, end: End) {
        for index in (0..self.open.len()).rev() {
            if which(&self.open[index]) {
                self.close(index, settled, end);
            }
        }
    }

    fn close(&mut self, index: usize, settled: Settled, end: End) {
        let Some(open) = self.open.remove(index) else { return };
        let id = open.prompt.id;
        let settled = settled.map_err(|refusal| Refusal { prompt: Some(id), ..refusal });
        for (_, waiter) in open.waiters {
            // A request that has just been cancelled does not care any more.
            let _ = waiter.send(settled);
        }
        if let Some(displayed) = self.displayed.as_mut().filter(|displayed| displayed.id == id) {
            displayed.end = Some(end);
        }
        self.events.push_back(ConsentEvent::Closed { id, session_id: open.cover.session_id, end });
    }

    fn count_denial(&mut self, session_id: &str) {
        if self.counts.len() >= MAX_COUNTED && !self.counts.contains_key(session_id) {
            self.counts.retain(|_, count| count.paused);
        }
        let count = self.counts.entry(session_id.to_owned()).or_default();
        count.in_a_row += 1;
        if count.in_a_row > MAX_DENIALS && !count.paused {
            count.paused = true;
            let why = Withdrawal::Paused;
            self.close_all(in_session(session_id), Err(Refusal::withdrawn(why)), End::Withdrawn(why));
            self.events.push_back(ConsentEvent::ChatPaused { session_id: session_id.to_owned() });
        }
    }
}

fn cover<P>(action: &Action<P>) -> Cover {
    Cover { session_id: action.session_id.clone(), capability: action.capability, root: action.root.clone() }
}

fn in_session(session_id: &str) -> impl Fn(&Open) -> bool {
    move |open| open.cover.session_id == session_id
}
