//! Secrets: the OS keychain, or one encrypted file where there is none.
