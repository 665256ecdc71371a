//! Sessions and their folders: attach, activate, restore, detach. Transitions of one session are serialised; two sessions
//! never wait for each other. Half a transition leaves what was before.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use jail::RootDir;
use protocol::{
    ActivateSession, AttachSession, DetachSession, ErrorCode, ErrorPayload, RestoreSession, SessionActivated,
    SessionAttached, SessionId,
};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::browse::{BrowseError, Browses};
use super::grant::{Claims, fingerprint};
use super::revisions::Revisions;
use crate::connection::run_data;
use crate::dispatch::{Details, details};
use crate::machine::Machine;
use crate::session::Session;

/// Active sessions of a machine.
pub(crate) const MAX_SESSIONS: usize = 8;
/// Bindings of a machine, active or not.
const MAX_BINDINGS: usize = 64;

/// A session's folder.
#[derive(Clone)]
struct Binding {
    root: String,
    fingerprint: String,
    revision: u64,
    grant: String,
}

#[derive(Default)]
struct Slot {
    binding: Option<Binding>,
    active: Option<Active>,
}

/// The session itself belongs to its task: it holds the machine, which holds this.
struct Active {
    revision: u64,
    fingerprint: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Slot {
    fn live(&self) -> Option<&Active> {
        self.active.as_ref().filter(|active| !active.task.is_finished())
    }
}

struct Entry {
    slot: Arc<tokio::sync::Mutex<Slot>>,
    used: Instant,
}

/// All of them.
pub(crate) struct Sessions {
    slots: Mutex<HashMap<SessionId, Entry>>,
    active: Mutex<BTreeMap<SessionId, Arc<Session>>>,
    revisions: Mutex<Revisions>,
}

/// What a transition answers, and what the log says of it.
pub(crate) type Transition<R> = (Result<R, ErrorPayload>, Details);

impl Sessions {
    pub(crate) fn new(revisions: Revisions) -> Self {
        Self { slots: Mutex::default(), active: Mutex::default(), revisions: Mutex::new(revisions) }
    }

    fn revisions(&self) -> MutexGuard<'_, Revisions> {
        self.revisions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn active_map(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Session>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The active sessions.
    pub(crate) fn active(&self) -> Vec<Arc<Session>> {
        self.active_map().values().cloned().collect()
    }

    /// Ends every active session's data connection, without waiting. Bindings stay.
    pub(crate) fn stop_all(&self) {
        for session in self.active() {
            session.stop.cancel();
        }
    }

    /// The session's slot; makes one, and pushes the oldest inactive one out when there are too many.
    fn slot(&self, id: &SessionId) -> Arc<tokio::sync::Mutex<Slot>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if !slots.contains_key(id) && slots.len() >= MAX_BINDINGS {
            let active = self.active_map();
            let idle = slots
                .iter()
                .filter(|(id, entry)| !active.contains_key(*id) && Arc::strong_count(&entry.slot) == 1);
            let oldest = idle.min_by_key(|(_, entry)| entry.used).map(|(id, _)| id.clone());
            oldest.and_then(|id| slots.remove(&id));
        }
        let entry =
            slots.entry(id.clone()).or_insert_with(|| Entry { slot: Arc::default(), used: Instant::now() });
        entry.used = Instant::now();
        entry.slot.clone()
    }

    /// `ATTACH_SESSION`
    pub(crate) async fn attach(
        &self,
        machine: &Arc<Machine>,
        browses: &Arc<Browses>,
        request: AttachSession,
    ) -> Transition<SessionAttached> {
        let slot = self.slot(&request.session_id);
        let mut slot = slot.lock().await;
        let mut log = details(json!({"session_id": request.session_id}));
        if slot.live().is_some() {
            let error = ErrorPayload::new(
                ErrorCode::SessionAlreadyActive,
                "the session is active; detach it before it gets another folder",
            );
            return (Err(error), log);
        }
        let (taken, m) = (browses.clone(), machine.clone());
        let opened = blocking(move || {
            let path = taken
                .take(&m.browsable(), &request.browse_id, &request.directory_ref, Instant::now())
                .map_err(|e| browse_error(&e))?;
            open(&m, &path).map(|root| (root, request.session_id))
        })
        .await;
        let (root, id) = match opened {
            Ok(opened) => opened,
            Err(error) => return (Err(error), log),
        };
        let previous = slot.binding.as_ref().map(|b| b.root.clone());
        match self.bind(machine, &id, &root) {
            Err(error) => (Err(error), log),
            Ok(binding) => {
                log.extend(details(json!({
                    "previous_allowed_root": previous, "allowed_root": binding.root,
                    "fingerprint": binding.fingerprint, "revision": binding.revision,
                })));
                slot.binding = Some(binding.clone());
                (Ok(attached(id, binding)), log)
            }
        }
    }

    /// The next binding of a session, remembered before it is used.
    fn bind(&self, machine: &Machine, id: &SessionId, root: &RootDir) -> Result<Binding, ErrorPayload> {
        let path = root.path().to_string_lossy().into_owned();
        let fingerprint = fingerprint(root.identity(), &path);
        let mut revisions = self.revisions();
        let revision = revisions.highest(id.as_str()).map_or(0, |h| h.revision) + 1;
        revisions.raise(id.as_str(), revision, &fingerprint).map_err(|e| not_kept(&e))?;
        let grant = machine.grants.sign(&Claims {
            allowed_root: path.clone(),
            fingerprint: fingerprint.clone(),
            issued_at: protocol::now(),
            machine_id: machine.id.to_string(),
            revision,
            session_id: id.to_string(),
        });
        Ok(Binding { root: path, fingerprint, revision, grant })
    }

    /// `ACTIVATE_SESSION`
    pub(crate) async fn activate(
        &self,
        machine: &Arc<Machine>,
        request: ActivateSession,
    ) -> Transition<SessionActivated> {
        let id = request.session_id;
        let slot = self.slot(&id);
        let mut slot = slot.lock().await;
        let mut log = details(json!({"session_id": id, "revision": request.revision}));
        let Some(binding) = slot.binding.clone() else {
            let error = ErrorPayload::new(
                ErrorCode::SessionNotAttached,
                "the session has no folder; attach it first",
            );
            return (Err(error), log);
        };
        log.insert("allowed_root".to_owned(), binding.root.clone().into());
        if binding.revision != request.revision {
            return (Err(revision_mismatch(binding.revision)), log);
        }
        if slot.live().is_none_or(|active| active.revision != binding.revision)
            && let Err(error) = self.reopen(machine, &mut slot, &id, &binding).await
        {
            return (Err(error), log);
        }
        let Binding { root: allowed_root, fingerprint, revision, .. } = binding;
        (Ok(SessionActivated { session_id: id, allowed_root, fingerprint, revision }), log)
    }

    /// `RESTORE_SESSION`
    pub(crate) async fn restore(
        &self,
        machine: &Arc<Machine>,
        request: RestoreSession,
    ) -> Transition<SessionAttached> {
        let id = request.session_id;
        let mut log = details(json!({"session_id": id}));
        let claims = match machine.grants.verify(&request.root_grant, &machine.id, &id) {
            Ok(claims) => claims,
            Err(error) => return (Err(grant_invalid(&error.to_string())), log),
        };
        log.extend(details(json!({"allowed_root": claims.allowed_root, "revision": claims.revision})));
        let slot = self.slot(&id);
        let mut slot = slot.lock().await;
        if let Err(error) = self.not_older(&id, &claims) {
            return (Err(error), log);
        }
        let binding = Binding {
            root: claims.allowed_root,
            fingerprint: claims.fingerprint,
            revision: claims.revision,
            grant: request.root_grant,
        };
        let same = |active: &Active| {
            active.revision == binding.revision && active.fingerprint == binding.fingerprint
        };
        if !slot.live().is_some_and(same) {
            let (browsable, root) = (machine.browsable(), binding.root.clone());
            let allowed = blocking(move || Ok(browsable.look().allows(Path::new(&root)))).await;
            if !matches!(allowed, Ok(true)) {
                let why = "its folder is no longer among the folders that this machine offers";
                return (Err(grant_invalid(why)), log);
            }
            if let Err(error) = self.reopen(machine, &mut slot, &id, &binding).await {
                return (Err(error), log);
            }
            let raised = self.revisions().raise(id.as_str(), binding.revision, &binding.fingerprint);
            if let Err(error) = raised {
                return (Err(not_kept(&error)), log);
            }
        }
        slot.binding = Some(binding.clone());
        (Ok(attached(id, binding)), log)
    }

    fn not_older(&self, id: &SessionId, claims: &Claims) -> Result<(), ErrorPayload> {
        let revisions = self.revisions();
        let Some(highest) = revisions.highest(id.as_str()) else { return Ok(()) };
        let other_folder = claims.revision == highest.revision && claims.fingerprint != highest.fingerprint;
        if claims.revision < highest.revision || other_folder {
            return Err(revision_mismatch(highest.revision));
        }
        Ok(())
    }

    /// `DETACH_SESSION`: returns when nothing of the session runs. The log's details are of the binding that was there.
    pub(crate) async fn detach(&self, machine: &Arc<Machine>, request: DetachSession) -> Details {
        let slot = self.slot(&request.session_id);
        let mut slot = slot.lock().await;
        let mut log = details(json!({"session_id": request.session_id}));
        if let Some(binding) = slot.binding.take() {
            log.extend(details(json!({"allowed_root": binding.root, "revision": binding.revision})));
        }
        if let Some(active) = slot.active.take() {
            end(active).await;
        }
        machine.consent.end_session(request.session_id.as_str());
        machine.kill_processes(request.session_id.as_str()).await;
        log
    }

    /// Opens the folder, checks that it is still the bound one, and starts the data connection. The session that was
    /// there before goes on if any of it fails.
    async fn reopen(
        &self,
        machine: &Arc<Machine>,
        slot: &mut Slot,
        id: &SessionId,
        binding: &Binding,
    ) -> Result<(), ErrorPayload> {
        let (m, path) = (machine.clone(), binding.root.clone());
        let root = blocking(move || open(&m, Path::new(&path)))
            .await
            .map_err(|_| grant_invalid("its folder is gone, was replaced, or may not be used any more"))?;
        let path = root.path().to_string_lossy();
        if path != binding.root || fingerprint(root.identity(), &path) != binding.fingerprint {
            return Err(grant_invalid("another folder is at its path now"));
        }
        let session = Session::new(id.clone(), root, binding.revision, machine.clone());
        if !self.enter(&session) {
            let error = ErrorPayload::new(
                ErrorCode::ShimOverloaded,
                format!("{MAX_SESSIONS} sessions are active, the most this machine takes; detach one"),
            );
            return Err(error.with("max_sessions", MAX_SESSIONS));
        }
        if let Some(before) = slot.active.take() {
            end(before).await;
        }
        let (revision, fingerprint, stop) =
            (session.revision, binding.fingerprint.clone(), session.stop.clone());
        slot.active = Some(Active { revision, fingerprint, stop, task: tokio::spawn(run_data(session)) });
        Ok(())
    }

    /// Puts the session on the list of active ones, in place of an earlier one of its id.
    fn enter(&self, session: &Arc<Session>) -> bool {
        let mut active = self.active_map();
        if !active.contains_key(&session.id) && active.len() >= MAX_SESSIONS {
            return false;
        }
        active.insert(session.id.clone(), session.clone());
        true
    }

    /// Takes the session off the list, unless another one of its id has replaced it.
    pub(crate) fn leave(&self, session: &Arc<Session>) {
        let mut active = self.active_map();
        if active.get(&session.id).is_some_and(|s| Arc::ptr_eq(s, session)) {
            active.remove(&session.id);
        }
    }

    /// Whether a session of this id is active.
    pub(crate) fn is_active(&self, id: &SessionId) -> bool {
        self.active_map().contains_key(id)
    }
}

async fn end(active: Active) {
    active.stop.cancel();
    // A task that panicked has ended too.
    let _ = active.task.await;
}

fn open(machine: &Machine, path: &Path) -> Result<RootDir, ErrorPayload> {
    RootDir::open(path, &machine.root_options()).map_err(|_| browse_error(&BrowseError::Unavailable))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorPayload> + Send + 'static,
) -> Result<T, ErrorPayload> {
    let failed = |_| {
        ErrorPayload::new(ErrorCode::InternalError, "this program is shutting down, or failed; try again")
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(failed(e)))
}

/// The wire's answer to a browse that failed.
pub(crate) fn browse_error(error: &BrowseError) -> ErrorPayload {
    let code = match error {
        BrowseError::InvalidReference => ErrorCode::DirectoryReferenceInvalid,
        BrowseError::Unavailable => ErrorCode::DirectoryUnavailable,
        BrowseError::IncompleteRequest | BrowseError::NoRandomness => ErrorCode::InternalError,
    };
    ErrorPayload::new(code, error.to_string())
}

fn attached(session_id: SessionId, binding: Binding) -> SessionAttached {
    let Binding { root: allowed_root, fingerprint, revision, grant: root_grant } = binding;
    SessionAttached { session_id, allowed_root, fingerprint, revision, root_grant }
}

fn revision_mismatch(current: u64) -> ErrorPayload {
    ErrorPayload::new(
        ErrorCode::SessionRevisionMismatch,
        format!("the session's folder is at revision {current} here"),
    )
    .with("current_revision", current)
}

fn grant_invalid(why: &str) -> ErrorPayload {
    ErrorPayload::new(
        ErrorCode::RootGrantInvalid,
        format!("the root grant does not hold: {why}; choose the folder anew"),
    )
}

fn not_kept(error: &std::io::Error) -> ErrorPayload {
    ErrorPayload::new(
        ErrorCode::InternalError,
        format!(
            "the session's revision could not be written ({}); free some space and try again",
            error.kind()
        ),
    )
}
