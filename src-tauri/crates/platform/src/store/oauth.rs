//! Codes, families of tokens, and what becomes of them.

use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use super::users::UserId;
use super::{StoreError, after_ms, now_ms};
use crate::options::Timings;
use crate::secret::{Secret, TokenHash};

/// One approval and everything minted from it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FamilyId(pub(crate) String);

/// A code that was approved.
pub(crate) struct NewCode {
    pub(crate) code: TokenHash,
    pub(crate) user: UserId,
    pub(crate) client_id: String,
    pub(crate) redirect_uri: String,
    pub(crate) scope: String,
    pub(crate) challenge: String,
    pub(crate) expires_at: i64,
}

/// A pair of tokens, to be shown once.
pub(crate) struct Minted {
    pub(crate) access: Secret,
    pub(crate) refresh: Secret,
    pub(crate) scope: String,
}

/// How an exchange ended.
pub(crate) enum Exchange {
    Minted(Minted),
    /// Unknown, expired, revoked, or of somebody else. Nothing was changed.
    Invalid,
    /// It had been used before: the family is revoked now, and its connections must end.
    Reused(FamilyId),
}

/// A token that is good now.
#[derive(Debug, Clone)]
pub(crate) struct Active {
    pub(crate) kind: TokenKind,
    pub(crate) user: UserId,
    pub(crate) user_name: String,
    pub(crate) family: FamilyId,
    pub(crate) client_id: String,
    pub(crate) scope: String,
    pub(crate) issued_at: i64,
    pub(crate) expires_at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Access,
    Refresh,
}

impl TokenKind {
    fn as_str(self) -> &'static str {
        match self {
            TokenKind::Access => "access",
            TokenKind::Refresh => "refresh",
        }
    }
}

/// What a revocation took away.
pub(crate) enum Revoked {
    /// A refresh token, and with it everything of its family (RFC 7009, 2.1).
    Family(FamilyId),
    /// One access token.
    Access(TokenHash),
    /// There was nothing to revoke.
    Nothing,
}

pub(crate) fn add_code(db: &Transaction<'_>, new: &NewCode) -> Result<(), StoreError> {
    // Used ones stay a day beyond their time, so that their reuse is still seen.
    db.execute("DELETE FROM codes WHERE expires_at <= ?1", [now_ms() - 24 * 3600 * 1000])?;
    db.execute(
        "INSERT INTO codes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL)",
        params![
            new.code,
            new.user.0,
            new.client_id,
            new.redirect_uri,
            new.scope,
            new.challenge,
            new.expires_at
        ],
    )?;
    Ok(())
}

struct StoredCode {
    user: String,
    client_id: String,
    redirect_uri: String,
    scope: String,
    challenge: String,
    expires_at: i64,
    family: Option<String>,
}

/// Turns a code into tokens: both happen or neither. `challenge` is computed from the caller's verifier.
pub(crate) fn redeem(
    db: &Transaction<'_>,
    code: &TokenHash,
    client_id: &str,
    redirect_uri: &str,
    challenge: &str,
    timings: &Timings,
) -> Result<Exchange, StoreError> {
    let read = |row: &Row<'_>| {
        Ok(StoredCode {
            user: row.get(0)?,
            client_id: row.get(1)?,
            redirect_uri: row.get(2)?,
            scope: row.get(3)?,
            challenge: row.get(4)?,
            expires_at: row.get(5)?,
            family: row.get(6)?,
        })
    };
    let sql = "SELECT user_id, client_id, redirect_uri, scope, challenge, expires_at, family_id FROM codes WHERE code = ?1";
    let Some(stored) = db.query_row(sql, [code], read).optional()? else { return Ok(Exchange::Invalid) };
    let fits = stored.client_id == client_id
        && stored.redirect_uri == redirect_uri
        && crate::secret::same(&stored.challenge, challenge);
    if !fits {
        return Ok(Exchange::Invalid);
    }
    if let Some(family) = stored.family {
        let family = FamilyId(family);
        revoke_family(db, &family)?;
        return Ok(Exchange::Reused(family));
    }
    if stored.expires_at <= now_ms() {
        return Ok(Exchange::Invalid);
    }
    let family = new_family(db, &stored.user, client_id, &stored.scope)?;
    db.execute("UPDATE codes SET family_id = ?2 WHERE code = ?1", params![code, family.0])?;
    Ok(Exchange::Minted(mint(db, &family, stored.scope, timings)?))
}

/// Starts a family without a code, for a user that this process vouches for.
pub(crate) fn grant(
    db: &Transaction<'_>,
    user: &UserId,
    client_id: &str,
    scope: &str,
    timings: &Timings,
) -> Result<Minted, StoreError> {
    let family = new_family(db, &user.0, client_id, scope)?;
    mint(db, &family, scope.to_owned(), timings)
}

fn new_family(
    db: &Transaction<'_>,
    user: &str,
    client_id: &str,
    scope: &str,
) -> Result<FamilyId, StoreError> {
    let id = protocol::new_id();
    db.execute("INSERT INTO families VALUES (?1, ?2, ?3, ?4, NULL)", params![id, user, client_id, scope])?;
    Ok(FamilyId(id))
}

fn mint(
    db: &Transaction<'_>,
    family: &FamilyId,
    scope: String,
    timings: &Timings,
) -> Result<Minted, StoreError> {
    let (access, refresh) = (Secret::random("dha_")?, Secret::random("dhr_")?);
    let now = now_ms();
    let rows = [
        (&access, TokenKind::Access, timings.access_token_ttl),
        (&refresh, TokenKind::Refresh, timings.refresh_token_ttl),
    ];
    for (token, kind, ttl) in rows {
        db.execute(
            "INSERT INTO tokens VALUES (?1, ?2, ?3, ?4, ?5, NULL, NULL)",
            params![token.hash(), kind.as_str(), family.0, now, after_ms(now, ttl)],
        )?;
    }
    Ok(Minted { access, refresh, scope })
}

/// Exchanges a refresh token for the next pair. The old one stays known, so that its reuse is seen.
pub(crate) fn rotate(
    db: &Transaction<'_>,
    refresh: &TokenHash,
    client_id: &str,
    timings: &Timings,
) -> Result<Exchange, StoreError> {
    let read = |row: &Row<'_>| {
        Ok((
            FamilyId(row.get(0)?),
            row.get::<_, String>(1)?,
            row.get::<_, String>(2)?,
            row.get::<_, bool>(3)?,
            row.get::<_, bool>(4)?,
        ))
    };
    let sql = "SELECT families.id, client_id, scope, rotated_at IS NOT NULL,
                   expires_at > ?2 AND tokens.revoked_at IS NULL AND families.revoked_at IS NULL
               FROM tokens JOIN families ON families.id = family_id WHERE token = ?1 AND kind = 'refresh'";
    let found = db.query_row(sql, params![refresh, now_ms()], read).optional()?;
    let Some((family, owner, scope, rotated, good)) = found else { return Ok(Exchange::Invalid) };
    if owner != client_id {
        return Ok(Exchange::Invalid);
    }
    if rotated {
        revoke_family(db, &family)?;
        return Ok(Exchange::Reused(family));
    }
    if !good {
        return Ok(Exchange::Invalid);
    }
    db.execute("UPDATE tokens SET rotated_at = ?2 WHERE token = ?1", params![refresh, now_ms()])?;
    db.execute(
        "DELETE FROM tokens WHERE family_id = ?1 AND kind = 'access' AND expires_at <= ?2",
        params![family.0, now_ms()],
    )?;
    Ok(Exchange::Minted(mint(db, &family, scope, timings)?))
}

fn revoke_family(db: &Transaction<'_>, family: &FamilyId) -> Result<(), StoreError> {
    db.execute(
        "UPDATE families SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1",
        params![family.0, now_ms()],
    )?;
    Ok(())
}

/// A token that is good now: not expired, rotated or revoked.
pub(crate) fn active(db: &Transaction<'_>, token: &TokenHash) -> Result<Option<Active>, StoreError> {
    let read = |row: &Row<'_>| {
        let kind: String = row.get(0)?;
        Ok(Active {
            kind: if kind == "access" { TokenKind::Access } else { TokenKind::Refresh },
            user: UserId(row.get(1)?),
            user_name: row.get(2)?,
            family: FamilyId(row.get(3)?),
            client_id: row.get(4)?,
            scope: row.get(5)?,
            issued_at: row.get(6)?,
            expires_at: row.get(7)?,
        })
    };
    let sql = "SELECT kind, users.id, users.name, families.id, client_id, scope, issued_at, expires_at
               FROM tokens JOIN families ON families.id = family_id JOIN users ON users.id = families.user_id
               WHERE token = ?1 AND expires_at > ?2
                   AND rotated_at IS NULL AND tokens.revoked_at IS NULL AND families.revoked_at IS NULL";
    Ok(db.query_row(sql, params![token, now_ms()], read).optional()?)
}

/// Revokes a token, of `client_id` only when that is given.
pub(crate) fn revoke(
    db: &Transaction<'_>,
    token: &TokenHash,
    client_id: Option<&str>,
) -> Result<Revoked, StoreError> {
    let read =
        |row: &Row<'_>| Ok((row.get::<_, String>(0)?, FamilyId(row.get(1)?), row.get::<_, String>(2)?));
    let sql = "SELECT kind, family_id, client_id FROM tokens JOIN families ON families.id = family_id WHERE token = ?1";
    let Some((kind, family, owner)) = db.query_row(sql, [token], read).optional()? else {
        return Ok(Revoked::Nothing);
    };
    if client_id.is_some_and(|id| id != owner) {
        return Ok(Revoked::Nothing);
    }
    if kind == TokenKind::Refresh.as_str() {
        revoke_family(db, &family)?;
        return Ok(Revoked::Family(family));
    }
    db.execute(
        "UPDATE tokens SET revoked_at = coalesce(revoked_at, ?2) WHERE token = ?1",
        params![token, now_ms()],
    )?;
    Ok(Revoked::Access(*token))
}
