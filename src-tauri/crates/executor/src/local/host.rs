//! The executor answers.

use std::future::Future;

use tokio::sync::broadcast;

use super::server::Host;
use crate::Executor;
use crate::events::{Command, CommandFailed, Event, StatusReport};

impl Host for Executor {
    fn status(&self) -> StatusReport {
        Executor::status(self)
    }

    fn command(&self, command: Command) -> impl Future<Output = Result<(), CommandFailed>> + Send {
        Executor::command(self, command)
    }

    fn subscribe(&self) -> broadcast::Receiver<Event> {
        Executor::subscribe(self)
    }
}
