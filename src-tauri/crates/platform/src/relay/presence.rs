//! The sockets of this process, by machine and session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{MachineId, SessionId, SessionRevoked, close};
use tokio::sync::watch;

use super::link::{Ending, Link};
use super::{Line, Presence, Whose};
use crate::store::users::UserId;

/// The sockets of this process.
#[derive(Default)]
pub(crate) struct LocalPresence {
    tables: Mutex<Tables>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Tables {
    control: HashMap<(UserId, MachineId), Arc<Link>>,
    data: HashMap<SessionId, Arc<Link>>,
}

impl LocalPresence {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a connection in its place. One that was there is told that it was replaced, and ends.
    pub(crate) fn enter(&self, link: &Arc<Link>) {
        let facts = link.facts();
        let mut tables = self.tables();
        let replaced = match &facts.session {
            None => {
                let key = (facts.user.clone(), facts.hello.machine_id.clone());
                tables.control.insert(key, link.clone())
            }
            Some(session) => tables.data.insert(session.clone(), link.clone()),
        };
        drop(tables);
        if let Some(old) = replaced {
            old.end(Ending {
                code: close::OWNED_ELSEWHERE,
                reason: "a newer connection took over",
                revoked: Some(SessionRevoked {
                    reason: "another_shim_connected".to_owned(),
                    new_shim_machine_id: Some(facts.hello.machine_id.to_string()),
                }),
            });
        }
        self.tick();
    }

    /// Takes a connection out, unless another has its place by now.
    pub(crate) fn leave(&self, link: &Arc<Link>) {
        let facts = link.facts();
        let mut tables = self.tables();
        match &facts.session {
            None => {
                let key = (facts.user.clone(), facts.hello.machine_id.clone());
                if tables.control.get(&key).is_some_and(|current| Arc::ptr_eq(current, link)) {
                    tables.control.remove(&key);
                }
            }
            Some(session) => {
                if tables.data.get(session).is_some_and(|current| Arc::ptr_eq(current, link)) {
                    tables.data.remove(session);
                }
            }
        }
        drop(tables);
        self.tick();
    }

    fn tick(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

fn live(link: &Arc<Link>) -> Option<Arc<dyn Line>> {
    link.is_live().then(|| link.clone() as Arc<dyn Line>)
}

impl Presence for LocalPresence {
    fn machines(&self, user: &UserId) -> Vec<Arc<dyn Line>> {
        let tables = self.tables();
        let mut found: Vec<_> = tables
            .control
            .iter()
            .filter(|((owner, _), _)| owner == user)
            .filter_map(|(_, l)| live(l))
            .collect();
        drop(tables);
        found.sort_by(|a, b| a.facts().hello.machine_id.cmp(&b.facts().hello.machine_id));
        found
    }

    fn machine(&self, user: &UserId, machine: &MachineId) -> Option<Arc<dyn Line>> {
        self.tables().control.get(&(user.clone(), machine.clone())).and_then(live)
    }

    fn session(&self, session: &SessionId) -> Option<Arc<dyn Line>> {
        self.tables().data.get(session).and_then(live)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn revoke(&self, whose: &Whose) {
        let concerned = |link: &&Arc<Link>| match whose {
            Whose::Family(family) => link.family == *family,
            Whose::Token(token) => link.token == *token,
            Whose::Session(session) => link.facts().session.as_ref() == Some(session),
        };
        let tables = self.tables();
        let links: Vec<_> =
            tables.control.values().chain(tables.data.values()).filter(concerned).cloned().collect();
        drop(tables);
        for link in links {
            link.end(Ending {
                code: close::REVOKED,
                reason: "revoked",
                revoked: Some(SessionRevoked {
                    reason: "user_revoked".to_owned(),
                    new_shim_machine_id: None,
                }),
            });
        }
    }
}
