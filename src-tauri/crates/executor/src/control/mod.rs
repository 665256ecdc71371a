//! The control connection: folders and sessions. Only its five requests are served here.

mod browse;
mod grant;
mod revisions;
mod roots;
mod serve;
mod sessions;

pub(crate) use grant::{GrantKey, KEY_LABEL};
pub(crate) use revisions::{Revisions, replace};
pub(crate) use roots::Browsable;
pub(crate) use serve::{ControlConnection, wrong_channel};
pub(crate) use sessions::Sessions;
