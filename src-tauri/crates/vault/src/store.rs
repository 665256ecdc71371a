use crate::{SecretBytes, VaultError};

/// What a vault is built on. Names and values were checked, and for the writing calls the vault's lock is held.
pub(crate) trait Store: Send + Sync {
    fn load(&self, name: &str) -> Result<Option<SecretBytes>, VaultError>;
    /// In one write where the store can, else in this order.
    fn store(&self, items: &[(&str, &[u8])]) -> Result<(), VaultError>;
    /// Missing is fine.
    fn delete(&self, name: &str) -> Result<(), VaultError>;
}
