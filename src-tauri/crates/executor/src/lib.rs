//! The core: connections, sessions, dispatch, consent, limits, kill switch.
