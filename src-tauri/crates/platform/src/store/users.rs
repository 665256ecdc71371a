//! Local users and their signed-in browsers.

use std::fmt;

use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use super::{StoreError, now_ms};
use crate::password::PasswordHash;
use crate::secret::TokenHash;

/// One local user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct UserId(pub(crate) String);

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A user as it is looked up to sign in.
pub(crate) struct StoredUser {
    pub(crate) id: UserId,
    pub(crate) password: PasswordHash,
}

/// A signed-in browser.
#[derive(Debug, Clone)]
pub(crate) struct SignIn {
    pub(crate) user: UserId,
    pub(crate) name: String,
    pub(crate) csrf: String,
}

/// Adds a user; `None` when the name is taken.
pub(crate) fn add(
    db: &Transaction<'_>,
    name: &str,
    password: &PasswordHash,
) -> Result<Option<UserId>, StoreError> {
    let id = protocol::new_id();
    let added = db.execute(
        "INSERT INTO users (id, name, salt, hash, memory_kib, passes, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (name) DO NOTHING",
        params![id, name, password.salt, password.hash, password.memory_kib, password.passes, now_ms()],
    )?;
    Ok((added == 1).then_some(UserId(id)))
}

pub(crate) fn count(db: &Transaction<'_>) -> Result<u64, StoreError> {
    let count: i64 = db.query_row("SELECT count(*) FROM users", [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

pub(crate) fn by_name(db: &Transaction<'_>, name: &str) -> Result<Option<StoredUser>, StoreError> {
    let read = |row: &Row<'_>| {
        Ok(StoredUser {
            id: UserId(row.get(0)?),
            password: PasswordHash {
                salt: row.get(1)?,
                hash: row.get(2)?,
                memory_kib: row.get(3)?,
                passes: row.get(4)?,
            },
        })
    };
    let sql = "SELECT id, salt, hash, memory_kib, passes FROM users WHERE name = ?1";
    Ok(db.query_row(sql, [name], read).optional()?)
}

/// Remembers a browser, and forgets the ones whose time is over.
pub(crate) fn sign_in(
    db: &Transaction<'_>,
    cookie: &TokenHash,
    user: &UserId,
    csrf: &str,
    expires_at: i64,
) -> Result<(), StoreError> {
    db.execute("DELETE FROM sign_ins WHERE expires_at <= ?1", [now_ms()])?;
    db.execute("INSERT INTO sign_ins VALUES (?1, ?2, ?3, ?4)", params![cookie, user.0, csrf, expires_at])?;
    Ok(())
}

pub(crate) fn signed_in(db: &Transaction<'_>, cookie: &TokenHash) -> Result<Option<SignIn>, StoreError> {
    let read = |row: &Row<'_>| Ok(SignIn { user: UserId(row.get(0)?), name: row.get(1)?, csrf: row.get(2)? });
    let sql = "SELECT users.id, users.name, csrf FROM sign_ins JOIN users ON users.id = user_id
               WHERE cookie = ?1 AND expires_at > ?2";
    Ok(db.query_row(sql, params![cookie, now_ms()], read).optional()?)
}

pub(crate) fn sign_out(db: &Transaction<'_>, cookie: &TokenHash) -> Result<(), StoreError> {
    db.execute("DELETE FROM sign_ins WHERE cookie = ?1", [cookie])?;
    Ok(())
}
