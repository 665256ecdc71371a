//! Chat sessions and their machines: made, found again after a reconnect, taken down.

mod connect;
mod create;
mod locks;

use std::sync::Arc;

use protocol::{DetachSession, MachineId, MessageType, SessionId};

use crate::app::App;
use crate::error::ApiError;
use crate::relay::{CallError, Line, Patience, Whose, call};
use crate::store::sessions::{self, Session, Target};
use crate::store::users::UserId;

pub(crate) use connect::{call_session, line_of};
pub(crate) use create::{LocalTarget, create_cloud, create_local, current};
pub(crate) use locks::SessionLocks;

/// Folder and session requests: nobody is asked, so they answer soon.
pub(crate) fn control_patience(app: &App) -> Patience {
    let timings = &app.options.timings;
    Patience { room: timings.capacity_wait.min(timings.control_timeout), answer: timings.control_timeout }
}

/// A finished session of this user.
pub(crate) async fn owned(app: &App, id: &str, user: &UserId) -> Result<Session, ApiError> {
    let id: SessionId = id.parse().map_err(|_| ApiError::not_found("session"))?;
    let user = user.clone();
    let found = app.store.run(move |db| sessions::owned(db, &id, &user, true)).await?;
    found.ok_or_else(|| ApiError::not_found("session"))
}

/// Deletes first, then detaches: whatever fails afterwards, nobody can use the session any more.
pub(crate) async fn delete(app: &App, id: &str, user: &UserId) -> Result<(), ApiError> {
    let id: SessionId = id.parse().map_err(|_| ApiError::not_found("session"))?;
    let (key, owner) = (id.clone(), user.clone());
    let deleted = app.store.run(move |db| sessions::delete(db, &key, &owner)).await?;
    let session = deleted.ok_or_else(|| ApiError::not_found("session"))?;
    if let Target::Local(binding) = session.target {
        let (app, user) = (app.clone(), user.clone());
        // On its own, so that a caller who goes away does not leave the folder attached.
        let detach =
            app.tasks.clone().spawn(async move { detach(&app, &user, &binding.machine_id, &id).await });
        let _ = detach.await;
    }
    Ok(())
}

/// Tells the machine to forget a session, when it is there to be told, and ends the data connection in any case.
async fn detach(app: &App, user: &UserId, machine: &MachineId, id: &SessionId) {
    if let Some(line) = app.presence.machine(user, machine) {
        let request = DetachSession { session_id: id.clone() };
        let answer: Result<protocol::Ack, _> =
            call(&*line, MessageType::DetachSession, &request, control_patience(app)).await;
        if let Err(error) = answer {
            tracing::warn!(%error, session = %id, "a session could not be detached");
        }
    }
    app.revoke_connections(&Whose::Session(id.clone()));
}

/// Waits until `find` finds something, or `limit` has passed.
async fn wait_for<F>(app: &App, limit: std::time::Duration, find: F) -> Option<Arc<dyn Line>>
where
    F: Fn() -> Option<Arc<dyn Line>>,
{
    let mut changes = app.presence.changes();
    let search = async {
        loop {
            changes.borrow_and_update();
            if let Some(line) = find() {
                return Some(line);
            }
            if changes.changed().await.is_err() {
                return None;
            }
        }
    };
    tokio::time::timeout(limit, search).await.ok().flatten()
}

fn misbehaved(what: &str) -> CallError {
    CallError::Misbehaved(what.to_owned())
}
