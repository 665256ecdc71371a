//! The desk under any sequence of events.

use proptest::prelude::*;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::Instant;

use super::super::desk::{Desk, Display, MAX_OPEN, Ticket};
use super::super::grants::Now;
use super::*;

#[derive(Clone, Debug)]
enum Step {
    Ask(u8, Capability, u8),
    Answer(usize, Answer),
    Advance(u64),
    Touch(usize),
    Leave(usize),
    Display,
    EndSession(u8),
    Resume(u8),
    Withdraw,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let capability =
        proptest::sample::select(vec![Capability::Shell, Capability::Screen, Capability::Record]);
    let answer = proptest::sample::select(vec![
        Answer::AllowOnce,
        Answer::Allow15Minutes,
        Answer::AllowChat,
        Answer::Deny,
        Answer::Deny,
        Answer::DenyAndDisconnect,
    ]);
    let step = prop_oneof![
        6 => (0..3_u8, capability, 0..3_u8).prop_map(|(session, capability, n)| Step::Ask(session, capability, n)),
        4 => (0..4_usize, answer).prop_map(|(index, answer)| Step::Answer(index, answer)),
        3 => (0..90_u64).prop_map(Step::Advance),
        1 => (0..4_usize).prop_map(Step::Touch),
        1 => any::<usize>().prop_map(Step::Leave),
        6 => Just(Step::Display),
        1 => (0..3_u8).prop_map(Step::EndSession),
        1 => (0..3_u8).prop_map(Step::Resume),
        1 => Just(Step::Withdraw),
    ];
    proptest::collection::vec(step, 0..120)
}

/// The desk, a clock, and what the prompter has in front of it.
struct Model {
    desk: Desk,
    now: Now,
    tickets: Vec<Ticket>,
    showing: Option<PromptId>,
    allowed: bool,
}

impl Model {
    fn new() -> Self {
        let desk = Desk::new(policy(""));
        Self { desk, now: Now::get(), tickets: Vec::new(), showing: None, allowed: false }
    }

    fn step(&mut self, step: &Step) {
        let now = self.now;
        let open = |desk: &Desk, index: usize| desk.views(now).get(index).map(|view| view.prompt.id);
        match step {
            Step::Ask(session, capability, n) => {
                let session = session.to_string();
                let action = action(&session, *capability, &n.to_string());
                match self.desk.ask(&action, action.digest().unwrap(), now) {
                    Ok(ticket) => self.tickets.push(ticket),
                    // Only a standing approval allows without asking here, and only after somebody gave one.
                    Err(settled) => {
                        assert!(settled.is_err() || (self.allowed && !self.desk.is_paused(&session)));
                    }
                }
            }
            Step::Answer(index, answer) => {
                let Some(id) = open(&self.desk, *index) else { return };
                let allows = !matches!(answer, Answer::Deny | Answer::DenyAndDisconnect);
                let taken = self.desk.answer(&id, *answer, now).is_ok();
                assert!(
                    !(taken && allows) || self.showing == Some(id),
                    "what is not shown cannot be allowed"
                );
                self.allowed |= taken && allows;
            }
            Step::Advance(seconds) => {
                self.now.steady += Duration::from_secs(*seconds);
                for ticket in &self.tickets {
                    self.desk.expire(&ticket.prompt, self.now);
                }
            }
            Step::Touch(index) => {
                if let Some(id) = open(&self.desk, *index) {
                    assert!(self.desk.touch(&id));
                }
            }
            Step::Leave(index) if !self.tickets.is_empty() => {
                let ticket = self.tickets.swap_remove(index % self.tickets.len());
                self.desk.leave(&ticket.prompt, ticket.waiter, now);
            }
            Step::Leave(_) => {}
            Step::Display => match self.desk.next_display(now) {
                Some(Display::Show(prompt)) => {
                    assert_eq!(self.showing.replace(prompt.id), None, "one at a time");
                    assert_eq!(open(&self.desk, 0), Some(prompt.id), "in the order they were asked");
                }
                Some(Display::Withdraw(id, _)) => assert_eq!(self.showing.take(), Some(id)),
                None => assert_eq!(self.showing, open(&self.desk, 0)),
            },
            Step::EndSession(session) => self.desk.end_session(&session.to_string(), now),
            Step::Resume(session) => self.desk.resume(&session.to_string()),
            Step::Withdraw => self.desk.withdraw_all(Withdrawal::Killed),
        }
    }

    /// Whoever waits has an open prompt, and the first has a countdown unless somebody touched it.
    fn check(&mut self) {
        let views = self.desk.views(self.now);
        assert!(views.len() <= MAX_OPEN);
        for ticket in &mut self.tickets {
            let open = views.iter().any(|view| view.prompt.id == ticket.prompt);
            match ticket.settled.try_recv() {
                Ok(settled) => assert!(!open && (settled.is_err() || self.allowed)),
                Err(TryRecvError::Empty) => assert!(open),
                Err(TryRecvError::Closed) => assert!(!open, "settled before"),
            }
        }
        let paused = self.desk.paused();
        assert!(views.iter().all(|view| !paused.contains(&view.prompt.session_id)));
    }
}

proptest! {
    #[test]
    fn nobody_waits_for_ever_and_nothing_is_allowed_unseen(steps in steps()) {
        let mut model = Model::new();
        for step in &steps {
            model.step(step);
            model.check();
        }
        model.desk.withdraw_all(Withdrawal::Killed);
        model.check();
        prop_assert!(model.desk.views(model.now).is_empty());
    }
}

#[test]
fn the_first_prompt_s_countdown_runs_even_when_nobody_shows_it() {
    let mut desk = Desk::new(policy(""));
    let now = Now::get();
    let action = shell("s", "ls");
    let mut ticket = desk.ask(&action, action.digest().unwrap(), now).ok().unwrap();
    assert_eq!(*ticket.deadline.borrow(), Some(now.steady + Duration::from_secs(60)));
    desk.expire(&ticket.prompt, Now { steady: Instant::now() + Duration::from_secs(61), ..now });
    assert_eq!(ticket.settled.try_recv().unwrap().unwrap_err().reason, Reason::TimedOut);
}
