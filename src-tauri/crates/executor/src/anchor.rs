//! What is remembered of the log's end beside its key, so that a log that is deleted or put back with all that stands
//! beside it is missed: [`audit::Anchor`].

use audit::{Anchor, AuditError, AuditLog, NotAnAnchor};
use vault::{Vault, VaultError};

/// The vault's name for it.
const NAME: &str = "audit-anchor";

/// It could not be read, or not be renewed.
#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    /// The keychain or the vault's file.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The log could not be synced.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// What is kept there is not what this program writes.
    #[error("the note of the log's end that is kept with its key is damaged: {0}")]
    Damaged(#[from] NotAnAnchor),
}

/// The record that the log must hold; `None` where there never was one.
///
/// # Errors
///
/// [`AnchorError::Vault`], [`AnchorError::Damaged`].
pub fn audit_anchor(vault: &Vault) -> Result<Option<Anchor>, AnchorError> {
    let Some(kept) = vault.load(NAME)? else { return Ok(None) };
    let text = std::str::from_utf8(kept.expose_secret()).map_err(|_| NotAnAnchor)?;
    Ok(Some(text.parse()?))
}

/// Remembers the log's last record. To be done at the start, at the end, and before files are pruned, among which could be
/// the one that holds the record remembered so far.
///
/// # Errors
///
/// [`AnchorError::Vault`], [`AnchorError::Audit`].
pub fn keep_audit_anchor(vault: &Vault, log: &AuditLog) -> Result<(), AnchorError> {
    if let Some(anchor) = log.anchor()? {
        vault.store(&[(NAME, anchor.to_string().as_bytes())])?;
    }
    Ok(())
}
