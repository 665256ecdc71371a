//! Requests in flight: admission on a connection, then one of the machine's slots (wire.md, "Requests in flight").

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::bound::{Bound, Permit};

/// The machine's slots. Cloning gives another handle to the same ones.
#[derive(Clone, Debug)]
pub struct Slots(Arc<Mutex<Machine>>);

#[derive(Debug)]
struct Machine {
    ceiling: usize,
    running: usize,
    waiting: usize,
    next_waiter: u64,
    /// Requests that wait, by session; a session is here while it has any.
    queues: HashMap<String, VecDeque<Waiter>>,
    /// The sessions that have any, in turn.
    turns: VecDeque<String>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    go: oneshot::Sender<Running>,
}

/// The connection has no place for another request: `SHIM_OVERLOADED` with `details {max_concurrent}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{max_concurrent} requests are in flight on this connection")]
pub struct Full {
    /// How many the connection admits.
    pub max_concurrent: usize,
}

/// The request was cancelled while it waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cancelled while waiting for its turn")]
pub struct Cancelled;

impl Slots {
    /// `ceiling`: requests of all sessions that run at once.
    pub fn new(ceiling: usize) -> Self {
        Self(Arc::new(Mutex::new(Machine {
            ceiling,
            running: 0,
            waiting: 0,
            next_waiter: 0,
            queues: HashMap::new(),
            turns: VecDeque::new(),
        })))
    }

    /// A session's data connection.
    pub fn session(&self, session_id: &str, max_concurrent: usize) -> Connection {
        let session = Some(session_id.to_owned());
        Connection { slots: self.clone(), session, admitted: Bound::new(max_concurrent) }
    }

    /// The control connection: its requests never wait for the machine's slots, and take none.
    pub fn control(&self, max_concurrent: usize) -> Connection {
        Connection { slots: self.clone(), session: None, admitted: Bound::new(max_concurrent) }
    }

    /// Admitted requests that wait for a slot: STATUS's `queue_depth`.
    pub fn queue_depth(&self) -> usize {
        self.lock().waiting
    }

    /// Slots in use.
    pub fn running(&self) -> usize {
        self.lock().running
    }

    /// Another ceiling; those above a lower one finish.
    pub fn set_ceiling(&self, ceiling: usize) {
        self.lock().ceiling = ceiling;
        self.hand_out();
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot at once when one is free and nobody waits, else a place in the session's queue.
    fn enter(&self, session: &str) -> Result<Running, (u64, oneshot::Receiver<Running>)> {
        let mut machine = self.lock();
        if machine.running < machine.ceiling && machine.waiting == 0 {
            machine.running += 1;
            return Ok(Running { of: Some(self.clone()) });
        }
        let number = machine.next_waiter;
        machine.next_waiter += 1;
        machine.waiting += 1;
        let (go, turn) = oneshot::channel();
        let queue = machine.queues.entry(session.to_owned()).or_default();
        queue.push_back(Waiter { number, go });
        if queue.len() == 1 {
            machine.turns.push_back(session.to_owned());
        }
        Err((number, turn))
    }

    fn leave(&self, session: &str, number: u64) {
        let mut machine = self.lock();
        let Some(queue) = machine.queues.get_mut(session) else { return };
        let before = queue.len();
        queue.retain(|waiter| waiter.number != number);
        let (left, empty) = (before - queue.len(), queue.is_empty());
        machine.waiting -= left;
        if empty {
            machine.queues.remove(session);
            machine.turns.retain(|turn| turn != session);
        }
    }

    /// Gives free slots to those who wait.
    fn hand_out(&self) {
        loop {
            let mut machine = self.lock();
            if machine.running >= machine.ceiling {
                return;
            }
            let Some(next) = machine.next() else { return };
            machine.running += 1;
            drop(machine);
            // Without the lock: a receiver that goes away with the slot in it drops it, and that locks.
            if let Err(mut returned) = next.go.send(Running { of: Some(self.clone()) }) {
                returned.of = None;
                self.lock().running -= 1;
            }
        }
    }
}

impl Machine {
    /// The first of the session whose turn it is; its next one waits for the other sessions' turns.
    fn next(&mut self) -> Option<Waiter> {
        let session = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&session)?;
        let waiter = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&session);
        } else {
            self.turns.push_back(session);
        }
        self.waiting -= usize::from(waiter.is_some());
        waiter
    }
}

/// One connection's requests.
#[derive(Clone, Debug)]
pub struct Connection {
    slots: Slots,
    session: Option<String>,
    admitted: Bound,
}

impl Connection {
    /// Admits a request or refuses it at once.
    pub fn try_admit(&self) -> Result<Admitted, Full> {
        let max_concurrent = self.admitted.limit();
        let place = self.admitted.try_enter().ok_or(Full { max_concurrent })?;
        Ok(Admitted { connection: self.clone(), place })
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.admitted.taken()
    }

    /// The negotiated limit.
    pub fn max_concurrent(&self) -> usize {
        self.admitted.limit()
    }

    /// Free places: `pending_capacity` of a frame that frees none.
    pub fn pending_capacity(&self) -> usize {
        self.admitted.free()
    }

    /// The limit after a handshake; those in flight stay.
    pub fn set_max_concurrent(&self, max_concurrent: usize) {
        self.admitted.set_limit(max_concurrent);
    }
}

/// A request that was admitted. Its place is free again when this is dropped.
#[derive(Debug)]
#[must_use = "the place is free again when this is dropped"]
pub struct Admitted {
    connection: Connection,
    place: Permit,
}

/// What a response that ends a request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// `pending_capacity` of the response.
    pub pending_capacity: usize,
    /// Whether all places were taken before, so that a STATUS follows the response.
    pub was_full: bool,
}

impl Admitted {
    /// Waits for one of the machine's slots; the control connection's requests need none.
    pub async fn run(&self, cancel: &CancellationToken) -> Result<Running, Cancelled> {
        if cancel.is_cancelled() {
            return Err(Cancelled);
        }
        let Some(session) = &self.connection.session else { return Ok(Running { of: None }) };
        let slots = &self.connection.slots;
        let (number, turn) = match slots.enter(session) {
            Ok(running) => return Ok(running),
            Err(waiting) => waiting,
        };
        let _leave = Leave { slots, session, number };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Cancelled),
            running = turn => running.map_err(|_| Cancelled),
        }
    }

    /// Frees the place, for the response that says so.
    pub fn free(self) -> Freed {
        let was_full = self.connection.admitted.free() == 0;
        let Self { connection, place } = self;
        drop(place);
        Freed { pending_capacity: connection.admitted.free(), was_full }
    }
}

/// Takes a request out of the queue however its wait ends.
struct Leave<'a> {
    slots: &'a Slots,
    session: &'a str,
    number: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.slots.leave(self.session, self.number);
    }
}

/// One of the machine's slots. The next request runs when this is dropped.
#[derive(Debug)]
#[must_use = "the next request runs when this is dropped"]
pub struct Running {
    of: Option<Slots>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(slots) = self.of.take() {
            slots.lock().running -= 1;
            slots.hand_out();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_connection_admits_so_many_and_refuses_the_next_at_once() {
        let slots = Slots::new(4);
        let connection = slots.session("s", 2);
        let first = connection.try_admit().unwrap();
        assert_eq!(connection.pending_capacity(), 1);
        let second = connection.try_admit().unwrap();
        assert_eq!(connection.try_admit().unwrap_err(), Full { max_concurrent: 2 });
        assert_eq!((connection.pending_capacity(), connection.in_flight()), (0, 2));
        assert_eq!(first.free(), Freed { pending_capacity: 1, was_full: true });
        assert_eq!(second.free(), Freed { pending_capacity: 2, was_full: false });
        assert_eq!(slots.session("t", 2).pending_capacity(), 2, "another connection has places of its own");
    }

    #[tokio::test]
    async fn the_machine_s_slots_are_shared_and_control_needs_none() {
        let (slots, token) = (Slots::new(1), CancellationToken::new());
        let (s, control) = (slots.session("s", 4), slots.control(4));
        let held = s.try_admit().unwrap();
        let running = held.run(&token).await.unwrap();
        let next = slots.session("t", 4).try_admit().unwrap();
        let waiting = tokio::spawn({
            let token = token.clone();
            async move { next.run(&token).await.map(|_running| ()) }
        });
        while slots.queue_depth() == 0 {
            tokio::task::yield_now().await;
        }
        let _control = control.try_admit().unwrap().run(&token).await.unwrap();
        assert_eq!((slots.running(), slots.queue_depth()), (1, 1));
        drop(running);
        waiting.await.unwrap().unwrap();
        assert_eq!((slots.running(), slots.queue_depth()), (0, 0));
    }

    #[tokio::test]
    async fn a_cancelled_or_dropped_wait_leaves_the_queue() {
        let (slots, token) = (Slots::new(1), CancellationToken::new());
        let s = slots.session("s", 4);
        let (a, b, c) = (s.try_admit().unwrap(), s.try_admit().unwrap(), s.try_admit().unwrap());
        let running = a.run(&token).await.unwrap();
        let own = CancellationToken::new();
        let mut cancelled = Box::pin(b.run(&own));
        let mut dropped = Box::pin(c.run(&token));
        assert!(poll(&mut cancelled).is_none() && poll(&mut dropped).is_none());
        assert_eq!(slots.queue_depth(), 2);
        own.cancel();
        assert_eq!(cancelled.await.unwrap_err(), Cancelled);
        drop(dropped);
        assert_eq!(slots.queue_depth(), 0);
        drop(running);
        assert_eq!(slots.running(), 0);
        // A slot that was handed over and never looked at comes back.
        let running = a.run(&token).await.unwrap();
        let mut handed = Box::pin(c.run(&token));
        assert!(poll(&mut handed).is_none());
        drop(running);
        assert_eq!(slots.running(), 1);
        drop(handed);
        assert_eq!(slots.running(), 0);
        own.cancel();
        assert_eq!(b.run(&own).await.unwrap_err(), Cancelled);
    }

    #[tokio::test]
    async fn a_higher_ceiling_lets_those_who_wait_run() {
        let (slots, token) = (Slots::new(0), CancellationToken::new());
        let admitted = slots.session("s", 4).try_admit().unwrap();
        let mut waiting = Box::pin(admitted.run(&token));
        assert!(poll(&mut waiting).is_none());
        slots.set_ceiling(1);
        assert!(poll(&mut waiting).is_some());
    }

    type Wait<'a> = Pin<Box<dyn Future<Output = Result<Running, Cancelled>> + 'a>>;

    fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> Option<F::Output> {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    proptest! {
        /// One session asks as much as it may, others now and then. Whoever waits is passed by each other session
        /// at most once before its turn, and within a session the order stays.
        #[test]
        fn no_session_starves_another_and_each_keeps_its_order(
            ceiling in 1..4_usize,
            steps in proptest::collection::vec((0..4_usize, any::<bool>()), 1..150),
        ) {
            let (slots, token) = (Slots::new(ceiling), CancellationToken::new());
            let names = ["greedy", "a", "b", "c"];
            let admitted: Vec<_> = steps
                .iter()
                .map(|(session, _)| slots.session(names[*session], 1).try_admit().unwrap())
                .collect();
            let mut waiting: Vec<(usize, usize, Wait<'_>)> = Vec::new();
            let mut running: VecDeque<Running> = VecDeque::new();
            // For each that waits: how often each session went before it.
            let mut passed: BTreeMap<usize, [usize; 4]> = BTreeMap::new();
            for (number, (session, finish)) in steps.iter().enumerate() {
                let mut wait: Wait<'_> = Box::pin(admitted[number].run(&token));
                match poll(&mut wait) {
                    Some(slot) => {
                        prop_assert!(waiting.is_empty(), "nobody overtakes those who wait");
                        running.push_back(slot.unwrap());
                    }
                    None => {
                        waiting.push((number, *session, wait));
                        passed.insert(number, [0; 4]);
                    }
                }
                if *finish {
                    drop(running.pop_front());
                }
                let mut at = 0;
                while at < waiting.len() {
                    let Some(slot) = poll(&mut waiting[at].2) else { at += 1; continue };
                    let (number, session, _) = waiting.remove(at);
                    running.push_back(slot.unwrap());
                    passed.remove(&number);
                    for (behind, behind_session, _) in &waiting {
                        prop_assert!(*behind_session != session || *behind > number, "in order within a session");
                        // Only the head of a queue is next at its session's turn.
                        let head = !waiting.iter().any(|(n, s, _)| s == behind_session && n < behind);
                        let counts = passed.get_mut(behind).unwrap();
                        counts[session] += usize::from(head && *behind_session != session);
                        prop_assert!(counts[session] <= 1, "passed twice by {}", names[session]);
                    }
                }
                prop_assert!(slots.running() <= ceiling && slots.running() == running.len());
                prop_assert_eq!(slots.queue_depth(), waiting.len());
                prop_assert!(running.len() == ceiling || waiting.is_empty(), "no slot stays free while one waits");
            }
            drop(waiting);
            drop(running);
            prop_assert_eq!((slots.running(), slots.queue_depth()), (0, 0));
        }
    }
}
