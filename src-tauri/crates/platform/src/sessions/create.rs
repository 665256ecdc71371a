//! A new session: attach → persist → activate → see the data connection → done.
//!
//! Whatever fails undoes the steps before it. The steps run on a task of their own, so that a caller who goes away does
//! not leave half a session behind.

use std::sync::Arc;

use protocol::{
    ActivateSession, AttachSession, MachineId, MessageType, SessionActivated, SessionAttached, SessionId,
};
use serde::Deserialize;

use super::{control_patience, detach, misbehaved, wait_for};
use crate::app::App;
use crate::error::ApiError;
use crate::relay::{CallError, Line, call};
use crate::store::StoreError;
use crate::store::now_ms;
use crate::store::sessions::{self, Binding, Session, Target};
use crate::store::users::UserId;

/// The folder of a machine that a session shall have.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LocalTarget {
    pub(crate) machine_id: MachineId,
    /// The control connection that the reference is from.
    pub(crate) connection_id: String,
    pub(crate) browse_id: String,
    pub(crate) directory_ref: String,
}

fn new_id() -> Result<SessionId, ApiError> {
    protocol::new_id().parse().map_err(|error| ApiError::internal(&error))
}

pub(crate) async fn create_cloud(app: &App, user: &UserId) -> Result<Session, ApiError> {
    let session = Session { id: new_id()?, user: user.clone(), target: Target::Cloud, created_at: now_ms() };
    let stored = session.clone();
    app.store.run(move |db| sessions::add(db, &stored, true)).await?;
    Ok(session)
}

pub(crate) async fn create_local(app: &App, user: &UserId, target: LocalTarget) -> Result<Session, ApiError> {
    let task = {
        let (app, user) = (app.clone(), user.clone());
        app.tasks.clone().spawn(async move { create(&app, &user, target).await })
    };
    task.await.map_err(|error| ApiError::internal(&error))?
}

async fn create(app: &App, user: &UserId, target: LocalTarget) -> Result<Session, ApiError> {
    let control = current(app, user, &target.machine_id, &target.connection_id)?;
    let id = new_id()?;
    let binding = match attach(app, &*control, &id, &target).await {
        Ok(binding) => binding,
        Err(error) => {
            // It may have been attached although the answer was lost or bad.
            detach(app, user, &target.machine_id, &id).await;
            return Err(error.into());
        }
    };
    let session = Session {
        id: id.clone(),
        user: user.clone(),
        target: Target::Local(binding.clone()),
        created_at: now_ms(),
    };
    match bring_up(app, &*control, &session, &binding).await {
        Ok(()) => Ok(session),
        Err(error) => {
            let key = id.clone();
            if let Err(error) = app.store.run(move |db| sessions::undo(db, &key)).await {
                // It stays unfinished, so nobody can use it, and the next start removes it.
                tracing::error!(error = &error as &dyn std::error::Error, "a session could not be undone");
            }
            detach(app, user, &binding.machine_id, &id).await;
            Err(error)
        }
    }
}

/// The control connection that the caller has in mind, and no other.
pub(crate) fn current(
    app: &App,
    user: &UserId,
    machine: &MachineId,
    connection: &str,
) -> Result<Arc<dyn Line>, ApiError> {
    let line = app.presence.machine(user, machine).ok_or(CallError::Offline)?;
    if line.facts().connection_id != connection {
        return Err(ApiError::conflict(
            "stale_connection",
            "the machine has connected anew since; list its folders again",
        ));
    }
    Ok(line)
}

async fn attach(
    app: &App,
    control: &dyn Line,
    id: &SessionId,
    target: &LocalTarget,
) -> Result<Binding, CallError> {
    let request = AttachSession {
        session_id: id.clone(),
        browse_id: target.browse_id.clone(),
        directory_ref: target.directory_ref.clone(),
        expected_connection_id: Some(target.connection_id.clone()),
    };
    let attached: SessionAttached =
        call(control, MessageType::AttachSession, &request, control_patience(app)).await?;
    if attached.session_id != *id {
        return Err(misbehaved("SESSION_ATTACHED is about another session"));
    }
    Ok(Binding::new(target.machine_id.clone(), attached))
}

async fn bring_up(
    app: &App,
    control: &dyn Line,
    session: &Session,
    binding: &Binding,
) -> Result<(), ApiError> {
    let stored = session.clone();
    app.store.run(move |db| sessions::add(db, &stored, false)).await?;
    let request = ActivateSession { session_id: session.id.clone(), revision: binding.revision };
    let active: SessionActivated =
        call(control, MessageType::ActivateSession, &request, control_patience(app)).await?;
    let expected = SessionActivated {
        session_id: session.id.clone(),
        allowed_root: binding.allowed_root.clone(),
        fingerprint: binding.fingerprint.clone(),
        revision: binding.revision,
    };
    if active != expected {
        return Err(misbehaved("SESSION_ACTIVATED is not what was attached").into());
    }
    let data = || app.presence.session(&session.id);
    let seen = wait_for(app, app.options.timings.data_connection_wait, data).await;
    if seen.is_none() {
        let why = "the machine said that the session is active, but did not connect it";
        return Err(ApiError::new(axum::http::StatusCode::BAD_GATEWAY, "MACHINE_MISBEHAVED", why));
    }
    let id = session.id.clone();
    if app.store.run(move |db| sessions::finish(db, &id)).await? {
        return Ok(());
    }
    Err(StoreError::Corrupt("the new session is gone".to_owned()).into())
}
