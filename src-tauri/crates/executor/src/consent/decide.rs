use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::action::Action;
use super::desk::{Desk, Display, Refusal, Settled, Ticket};
use super::event::ConsentEvent;
use super::grants::Now;
use super::outcome::{Approved, Denied, Era, Facts, Reason, Withdrawal};
use super::policy::Policy;
use super::prompt::{Answer, AnswerError, PromptId, PromptView, Prompter};

type Events = Box<dyn Fn(ConsentEvent) + Send + Sync>;

/// The one place where actions are allowed.
pub struct Consent {
    shared: Arc<Shared>,
    prompter: Option<Arc<dyn Prompter>>,
}

struct Shared {
    state: Mutex<State>,
    /// The desk changed: the prompter may have something to do.
    changed: Condvar,
    /// Counts uses of the kill switch.
    era: Arc<AtomicU64>,
    events: Events,
}

struct State {
    desk: Desk,
    /// Somebody is handing out events; they go out one after the other, in order.
    delivering: bool,
    closing: bool,
}

impl Consent {
    /// Without a prompter nobody can be asked, now or later: what no rule or setting allows is denied by rule.
    ///
    /// `events` is called in order, without any lock held, from whichever task or thread caused the event,
    /// the kill switch's among them: it must not block. It may call back.
    pub fn new(
        policy: Policy,
        prompter: Option<Arc<dyn Prompter>>,
        events: impl Fn(ConsentEvent) + Send + Sync + 'static,
    ) -> Self {
        let state = State { desk: Desk::new(policy), delivering: false, closing: false };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            era: Arc::default(),
            events: Box::new(events),
        });
        if let Some(prompter) = prompter.clone() {
            let (shared, runtime) = (Arc::clone(&shared), Handle::try_current().ok());
            let spawned = std::thread::Builder::new().name("consent-prompts".into()).spawn(move || {
                // For the runtime's clock, which tests move.
                let _entered = runtime.as_ref().map(Handle::enter);
                shared.display(&*prompter);
            });
            if let Err(error) = spawned {
                tracing::error!(%error, "no thread for prompts: they will all run out as denied");
            }
        }
        Self { shared, prompter }
    }

    /// Decides about one action; asks when that is needed, for as long as it takes or until `cancel`.
    pub async fn decide<P: Serialize>(
        &self,
        action: Action<P>,
        cancel: &CancellationToken,
    ) -> Result<Approved<P>, Denied> {
        let asked_at = Instant::now();
        let era = Era::current(&self.shared.era);
        let mut settled = self.settle(&action, cancel).await;
        if settled.is_ok() && era.is_over() {
            settled = Err(Refusal::withdrawn(Withdrawal::Killed));
        }
        let capability = action.capability;
        let waited_ms = u64::try_from(asked_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        match settled {
            Ok(grounds) => Ok(Approved {
                program: action.program.path().map(ToOwned::to_owned),
                params: action.params,
                facts: Facts {
                    capability,
                    decision: "allowed",
                    scope: Some(grounds.scope),
                    waited_ms,
                    prompt_id: grounds.prompt,
                },
                era,
            }),
            Err(Refusal { reason, withdrawal, prompt }) => {
                let decision = reason.name();
                let facts = Facts { capability, decision, scope: None, waited_ms, prompt_id: prompt };
                Err(Denied { reason, capability, withdrawal, facts })
            }
        }
    }

    async fn settle<P: Serialize>(&self, action: &Action<P>, cancel: &CancellationToken) -> Settled {
        if cancel.is_cancelled() {
            return Err(Refusal::withdrawn(Withdrawal::Cancelled));
        }
        if let Some(settled) = self.shared.lock().desk.decided(action, Now::get()) {
            return settled;
        }
        match &self.prompter {
            None => return Err(Refusal::new(Reason::Rule)),
            Some(prompter) if !prompter.available() => {
                return Err(Refusal::withdrawn(Withdrawal::NobodyThere));
            }
            Some(_) => {}
        }
        // Without the lock: a payload may be long.
        let Ok(digest) = action.digest() else {
            tracing::error!(
                request_type = action.request_type,
                "a payload has no form in JSON and cannot be shown"
            );
            return Err(Refusal::new(Reason::Rule));
        };
        match self.shared.change(|desk| desk.ask(action, digest, Now::get())) {
            Ok(ticket) => self.wait(ticket, cancel).await,
            Err(settled) => settled,
        }
    }

    async fn wait(&self, ticket: Ticket, cancel: &CancellationToken) -> Settled {
        let Ticket { prompt, waiter, mut settled, mut deadline } = ticket;
        // However this future ends, also by being dropped, the request leaves its prompt.
        let _leave = Leave { shared: &self.shared, prompt, waiter };
        loop {
            let now = *deadline.borrow_and_update();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Refusal {
                    prompt: Some(prompt),
                    ..Refusal::withdrawn(Withdrawal::Cancelled)
                }),
                settled = &mut settled => {
                    // The sender is never dropped unsent; were it ever, that is no approval.
                    return settled.unwrap_or(Err(Refusal::withdrawn(Withdrawal::Cancelled)));
                }
                Ok(()) = deadline.changed() => {}
                () = until(now) => self.shared.change(|desk| desk.expire(&prompt, Now::get())),
            }
        }
    }

    /// A person's answer. Allowing is refused in a prompt's first 700 ms and before it was shown at all.
    pub fn answer(&self, id: &PromptId, answer: Answer) -> Result<(), AnswerError> {
        self.shared.change(|desk| desk.answer(id, answer, Now::get()))
    }

    /// Somebody deals with the prompt, so that its countdown stops. False when it is not open.
    pub fn touch(&self, id: &PromptId) -> bool {
        self.shared.change(|desk| desk.touch(id))
    }

    /// The shown prompt appears only now, or has come back before the person: its 700 ms begin again. False when it is
    /// not shown.
    pub fn reread(&self, id: &PromptId) -> bool {
        self.shared.change(|desk| desk.reread(id, Now::get()))
    }

    /// The open prompts, the shown one first.
    pub fn open_prompts(&self) -> Vec<PromptView> {
        self.shared.lock().desk.views(Now::get())
    }

    /// Ends every open prompt as denied, from any thread. With [`Withdrawal::Killed`] approvals that were given
    /// and not yet used end too, and so do the standing ones.
    pub fn withdraw_all(&self, why: Withdrawal) {
        if why == Withdrawal::Killed {
            self.shared.era.fetch_add(1, Ordering::SeqCst);
        }
        self.shared.change(|desk| desk.withdraw_all(why));
    }

    /// The chat is over: its prompts are withdrawn and its standing approvals forgotten. That it is paused, and
    /// how often it was denied, stays: a chat cannot wash itself clean by coming again.
    pub fn end_session(&self, session_id: &str) {
        self.shared.change(|desk| desk.end_session(session_id, Now::get()));
    }

    /// Whether the chat was paused after too many denials. Its requests are then denied here, but the caller
    /// has the better answer for them.
    pub fn is_paused(&self, session_id: &str) -> bool {
        self.shared.lock().desk.is_paused(session_id)
    }

    /// The paused chats, sorted.
    pub fn paused_sessions(&self) -> Vec<String> {
        self.shared.lock().desk.paused()
    }

    /// The person lets the chat go on.
    pub fn resume(&self, session_id: &str) {
        self.shared.change(|desk| desk.resume(session_id));
    }

    /// New settings, which hold for open prompts as well.
    pub fn set_policy(&self, policy: Policy) {
        self.shared.change(|desk| desk.set_policy(policy, Now::get()));
    }
}

/// Ends the thread of prompts. Futures of [`Consent::decide`] borrow this, so none is waiting.
impl Drop for Consent {
    fn drop(&mut self) {
        self.shared.change(|desk| desk.withdraw_all(Withdrawal::Cancelled));
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// What the lock protects is consistent after every statement, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the desk, then tells everybody concerned, without the lock.
    fn change<T>(&self, change: impl FnOnce(&mut Desk) -> T) -> T {
        let result = change(&mut self.lock().desk);
        self.changed.notify_all();
        self.deliver();
        result
    }

    fn deliver(&self) {
        let mut state = self.lock();
        if state.delivering {
            return; // whoever is at it takes these along
        }
        while let Some(event) = state.desk.events.pop_front() {
            state.delivering = true;
            drop(state);
            (self.events)(event);
            state = self.lock();
            state.delivering = false;
        }
    }

    /// The prompter's thread: makes what is shown follow the desk.
    fn display(&self, prompter: &dyn Prompter) {
        let mut state = self.lock();
        loop {
            match state.desk.next_display(Now::get()) {
                Some(display) => {
                    drop(state);
                    self.deliver();
                    match display {
                        Display::Show(prompt) => prompter.show(&prompt),
                        Display::Withdraw(id, end) => prompter.withdraw(&id, end),
                    }
                    state = self.lock();
                }
                None if state.closing => return,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

struct Leave<'a> {
    shared: &'a Shared,
    prompt: PromptId,
    waiter: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.shared.change(|desk| desk.leave(&self.prompt, self.waiter, Now::get()));
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
