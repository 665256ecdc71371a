//! One outbound WebSocket: dialling, greeting, serving, and what follows its end.

mod alarm;
mod dial;
mod handshake;
mod line;
mod link;
mod reconnect;
mod renewal;
mod serve;
mod sockets;
mod writer;

pub use line::Timings;
pub(crate) use line::{Line, Slot};
pub(crate) use link::{run_control, run_data};
pub(crate) use reconnect::Delays;
pub(crate) use renewal::Renewing;
pub(crate) use serve::{Incoming, Service, send_status};
pub(crate) use sockets::Sockets;
