//! Deskhand's wire: message types, error codes and version negotiation, with no I/O.
