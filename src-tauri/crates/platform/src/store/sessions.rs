//! Chat sessions: their target, what was called in them, and the consent given for them.

use protocol::{MachineId, SessionAttached, SessionId};
use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use super::users::UserId;
use super::{StoreError, now_ms};

/// Where a session's tools run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Cloud,
    Local(Binding),
}

/// A folder of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) machine_id: MachineId,
    pub(crate) allowed_root: String,
    pub(crate) fingerprint: String,
    pub(crate) revision: u64,
    /// Never leaves the platform but to its machine.
    pub(crate) root_grant: String,
}

impl Binding {
    pub(crate) fn new(machine_id: MachineId, attached: SessionAttached) -> Self {
        let SessionAttached { session_id: _, allowed_root, fingerprint, revision, root_grant } = attached;
        Self { machine_id, allowed_root, fingerprint, revision, root_grant }
    }
}

/// A session as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) user: UserId,
    pub(crate) target: Target,
    pub(crate) created_at: i64,
}

/// One call of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) seq: i64,
    pub(crate) tool: String,
    pub(crate) error: Option<String>,
    pub(crate) created_at: i64,
}

/// What was decided about computer use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Consent {
    pub(crate) approved: bool,
    pub(crate) machine_id: String,
    /// Sorted JSON of both feature sets.
    pub(crate) features: String,
}

pub(crate) fn add(db: &Transaction<'_>, session: &Session, ready: bool) -> Result<(), StoreError> {
    let binding = match &session.target {
        Target::Cloud => None,
        Target::Local(binding) => Some(binding),
    };
    db.execute(
        "INSERT INTO sessions (id, user_id, created_at, ready, machine_id, allowed_root, fingerprint, revision, root_grant)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            session.id.as_str(),
            session.user.0,
            session.created_at,
            ready,
            binding.map(|b| b.machine_id.as_str()),
            binding.map(|b| &b.allowed_root),
            binding.map(|b| &b.fingerprint),
            binding.map(|b| stored_revision(b.revision)).transpose()?,
            binding.map(|b| &b.root_grant),
        ],
    )?;
    Ok(())
}

fn stored_revision(revision: u64) -> Result<i64, StoreError> {
    i64::try_from(revision).map_err(|_| StoreError::Corrupt(format!("revision {revision}")))
}

/// Marks a session as made; false when it is gone.
pub(crate) fn finish(db: &Transaction<'_>, id: &SessionId) -> Result<bool, StoreError> {
    Ok(db.execute("UPDATE sessions SET ready = 1 WHERE id = ?1", [id.as_str()])? == 1)
}

/// Takes back a session that was not finished; a finished one stays.
pub(crate) fn undo(db: &Transaction<'_>, id: &SessionId) -> Result<(), StoreError> {
    db.execute("DELETE FROM sessions WHERE id = ?1 AND ready = 0", [id.as_str()])?;
    Ok(())
}

pub(crate) fn delete(
    db: &Transaction<'_>,
    id: &SessionId,
    user: &UserId,
) -> Result<Option<Session>, StoreError> {
    let session = owned(db, id, user, true)?;
    if session.is_some() {
        db.execute("DELETE FROM sessions WHERE id = ?1", [id.as_str()])?;
    }
    Ok(session)
}

/// Keeps a newer grant of the same binding.
pub(crate) fn regrant(db: &Transaction<'_>, id: &SessionId, root_grant: &str) -> Result<(), StoreError> {
    db.execute("UPDATE sessions SET root_grant = ?2 WHERE id = ?1", params![id.as_str(), root_grant])?;
    Ok(())
}

const COLUMNS: &str = "id, user_id, created_at, machine_id, allowed_root, fingerprint, revision, root_grant";

/// A session of this user; with `ready` only a finished one.
pub(crate) fn owned(
    db: &Transaction<'_>,
    id: &SessionId,
    user: &UserId,
    ready: bool,
) -> Result<Option<Session>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1 AND user_id = ?2 AND ready >= ?3");
    let found = db.query_row(&sql, params![id.as_str(), user.0, ready], read).optional()?;
    found.map(RawSession::check).transpose()
}

/// Newest first, at most `limit`.
pub(crate) fn of_user(db: &Transaction<'_>, user: &UserId, limit: u32) -> Result<Vec<Session>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions WHERE user_id = ?1 AND ready = 1 ORDER BY created_at DESC, id LIMIT ?2"
    );
    let mut statement = db.prepare(&sql)?;
    let rows = statement.query_map(params![user.0, limit], read)?;
    rows.map(|row| row?.check()).collect()
}

struct RawSession {
    id: String,
    user: String,
    created_at: i64,
    machine: Option<String>,
    root: Option<String>,
    fingerprint: Option<String>,
    revision: Option<i64>,
    grant: Option<String>,
}

fn read(row: &Row<'_>) -> rusqlite::Result<RawSession> {
    Ok(RawSession {
        id: row.get(0)?,
        user: row.get(1)?,
        created_at: row.get(2)?,
        machine: row.get(3)?,
        root: row.get(4)?,
        fingerprint: row.get(5)?,
        revision: row.get(6)?,
        grant: row.get(7)?,
    })
}

impl RawSession {
    /// Fails closed: a local session that lacks anything is an error, never a cloud one.
    fn check(self) -> Result<Session, StoreError> {
        let corrupt = |what: &str| StoreError::Corrupt(format!("{what} of session {}", self.id));
        let target = match self.machine {
            None => Target::Cloud,
            Some(machine) => Target::Local(Binding {
                machine_id: machine.parse().map_err(|_| corrupt("machine"))?,
                allowed_root: self.root.ok_or_else(|| corrupt("root"))?,
                fingerprint: self.fingerprint.ok_or_else(|| corrupt("fingerprint"))?,
                revision: self.revision.and_then(|r| r.try_into().ok()).ok_or_else(|| corrupt("revision"))?,
                root_grant: self.grant.ok_or_else(|| corrupt("grant"))?,
            }),
        };
        let id = self.id.parse().map_err(|_| corrupt("id"))?;
        Ok(Session { id, user: UserId(self.user), target, created_at: self.created_at })
    }
}

pub(crate) fn log(
    db: &Transaction<'_>,
    id: &SessionId,
    tool: &str,
    error: Option<&str>,
) -> Result<(), StoreError> {
    // The session may have been deleted while the tool ran.
    db.execute(
        "INSERT INTO messages
         SELECT ?1, (SELECT coalesce(max(seq), 0) + 1 FROM messages WHERE session_id = ?1), ?2, ?3, ?4
         WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ?1)",
        params![id.as_str(), tool, error, now_ms()],
    )?;
    Ok(())
}

/// The newest `limit` messages before `before`, oldest first.
pub(crate) fn messages(
    db: &Transaction<'_>,
    id: &SessionId,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<Message>, StoreError> {
    let sql = "SELECT seq, tool, error, created_at FROM messages
               WHERE session_id = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3";
    let mut statement = db.prepare(sql)?;
    let rows = statement.query_map(params![id.as_str(), before.unwrap_or(i64::MAX), limit], |row| {
        Ok(Message { seq: row.get(0)?, tool: row.get(1)?, error: row.get(2)?, created_at: row.get(3)? })
    })?;
    let mut page = rows.collect::<Result<Vec<_>, _>>()?;
    page.reverse();
    Ok(page)
}

pub(crate) fn decide(db: &Transaction<'_>, id: &SessionId, consent: &Consent) -> Result<(), StoreError> {
    db.execute(
        "INSERT OR REPLACE INTO consents VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id.as_str(), consent.approved, consent.machine_id, consent.features, now_ms()],
    )?;
    Ok(())
}

pub(crate) fn consent(db: &Transaction<'_>, id: &SessionId) -> Result<Option<Consent>, StoreError> {
    let read =
        |row: &Row<'_>| Ok(Consent { approved: row.get(0)?, machine_id: row.get(1)?, features: row.get(2)? });
    let sql = "SELECT approved, machine_id, features FROM consents WHERE session_id = ?1";
    Ok(db.query_row(sql, [id.as_str()], read).optional()?)
}
