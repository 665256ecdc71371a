//! The way to a session's machine: its data connection, restored when it is gone.

use std::sync::Arc;
use std::time::Duration;

use protocol::{MessageType, RestoreSession, SessionAttached};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{control_patience, misbehaved, wait_for};
use crate::app::App;
use crate::relay::{CallError, Checked, Line, Outcome, Patience, call, once, unconfirmed};
use crate::store::sessions::{self, Binding, Session};

/// The data connection of a session. When there is none, the machine is asked to restore it from its stored grant; one
/// caller at a time, the others find the connection made. Waits `reconnect_wait` for a machine that `was_there`.
pub(crate) async fn line_of(
    app: &App,
    session: &Session,
    binding: &Binding,
    was_there: bool,
) -> Result<Arc<dyn Line>, CallError> {
    if let Some(line) = app.presence.session(&session.id) {
        return Ok(line);
    }
    let _alone = app.locks.lock(&session.id).await;
    if let Some(line) = app.presence.session(&session.id) {
        return Ok(line);
    }
    let limit = if was_there { app.options.timings.reconnect_wait } else { Duration::ZERO };
    let deadline = Instant::now() + limit;
    let machine = || app.presence.machine(&session.user, &binding.machine_id);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let control = match machine() {
            Some(control) => control,
            None => wait_for(app, left, machine).await.ok_or(CallError::Offline)?,
        };
        match restore(app, session, binding, &*control).await {
            Ok(()) => break,
            // Control was lost as well, and is on its way back.
            Err(CallError::NotSent | CallError::NoAnswer) if Instant::now() < deadline => {}
            Err(error) => return Err(error),
        }
    }
    let data = || app.presence.session(&session.id);
    wait_for(app, app.options.timings.data_connection_wait, data).await.ok_or(CallError::Offline)
}

async fn restore(
    app: &App,
    session: &Session,
    binding: &Binding,
    control: &dyn Line,
) -> Result<(), CallError> {
    let request = RestoreSession { session_id: session.id.clone(), root_grant: binding.root_grant.clone() };
    let patience = control_patience(app);
    let restored: SessionAttached = call(control, MessageType::RestoreSession, &request, patience).await?;
    if restored.session_id != session.id {
        return Err(misbehaved("SESSION_RESTORED is about another session"));
    }
    let same = restored.allowed_root == binding.allowed_root
        && restored.fingerprint == binding.fingerprint
        && restored.revision == binding.revision;
    if !same {
        return Err(misbehaved("SESSION_RESTORED is about another folder"));
    }
    if restored.root_grant != binding.root_grant {
        let (id, grant) = (session.id.clone(), restored.root_grant);
        // Not keeping it costs nothing now: the old one was good a moment ago.
        if let Err(error) = app.store.run(move |db| sessions::regrant(db, &id, &grant)).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "a renewed grant could not be kept");
        }
    }
    Ok(())
}

/// One request of a session. When its connection is lost, a request that never left goes out on the next one, an
/// idempotent one is repeated there once, and any other is reported as unconfirmed.
pub(crate) async fn call_session<A>(
    app: &App,
    session: &Session,
    binding: &Binding,
    kind: MessageType,
    payload: &impl Serialize,
    patience: Patience,
) -> Result<A, CallError>
where
    A: DeserializeOwned + Checked,
{
    let mut line = line_of(app, session, binding, false).await?;
    let idempotent = kind.request().is_some_and(|request| request.idempotent);
    let mut tries_left = 1;
    loop {
        match once(&*line, kind, payload, patience).await {
            Outcome::Done(answer) => return Ok(answer),
            Outcome::Failed(error) => return Err(error),
            Outcome::Gone { sent: true } if !idempotent || tries_left == 0 => return Err(unconfirmed(kind)),
            Outcome::Gone { sent: false } if tries_left == 0 => return Err(CallError::NotSent),
            Outcome::Gone { .. } => tries_left -= 1,
        }
        line = line_of(app, session, binding, true).await?;
    }
}
