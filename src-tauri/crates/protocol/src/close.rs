//! WebSocket close codes of the contract.

/// Bad or oversized HELLO, or an acknowledgement that breaks the contract.
pub const BAD_HELLO: u16 = 4400;
/// Token missing, bad or expired.
pub const UNAUTHORIZED: u16 = 4401;
/// Not the owner, the feature is off, or an acknowledgement names the wrong session.
pub const FORBIDDEN: u16 = 4403;
/// HELLO or its acknowledgement did not come in time.
pub const HELLO_TIMEOUT: u16 = 4408;
/// Protocol versions do not fit.
pub const VERSION_MISMATCH: u16 = 4426;
/// Another machine, or a newer connection of this one, owns the session.
pub const OWNED_ELSEWHERE: u16 = 4427;
/// The session or the machine was revoked.
pub const REVOKED: u16 = 4428;
/// The platform is shutting down.
pub const SHUTTING_DOWN: u16 = 4429;
/// Trouble on the platform's side.
pub const PLATFORM_ERROR: u16 = 4500;

/// The longest close reason a WebSocket close frame can hold, in bytes (RFC 6455, 5.5: 125 less the code's two).
pub const MAX_REASON_BYTES: usize = 123;
