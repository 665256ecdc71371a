//! The kill switch: one thread that waits for nothing else. It shares no lock or queue with the work: it cuts the sockets
//! through handles of its own, kills process trees itself, and cancels the rest, whether or not the runtime, a
//! prompter or a request is stuck.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use std::{io, thread};

use serde_json::json;
use tracing::{error, warn};

use crate::consent::Withdrawal;
use crate::events::{ConnectionState, Event};
use crate::machine::Machine;
use crate::off::{self, Off};

/// Throws the switch, from any thread. Cloned freely.
#[derive(Debug, Clone)]
pub struct KillSwitch(SyncSender<Thrown>);

struct Thrown {
    by: &'static str,
    done: SyncSender<Duration>,
}

/// How long a caller waits for the switch to report. It takes milliseconds; the contract allows 250.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

impl KillSwitch {
    /// Starts the switch's thread, which lives as long as the machine.
    pub(crate) fn start(machine: &Arc<Machine>) -> io::Result<Self> {
        let (sender, receiver) = sync_channel::<Thrown>(16);
        let machine = Arc::downgrade(machine);
        thread::Builder::new().name("kill-switch".to_owned()).spawn(move || wait(&receiver, &machine))?;
        Ok(Self(sender))
    }

    /// Throws the switch and waits until nothing is left. Returns how long it took; `None` when it did not report, which
    /// only a machine that is shutting down, or a system call that hangs, can cause.
    pub fn throw(&self, by: &'static str) -> Option<Duration> {
        let (done, report) = sync_channel(1);
        self.0.send(Thrown { by, done }).ok()?;
        report.recv_timeout(REPORT_TIMEOUT).ok()
    }
}

fn wait(thrown: &Receiver<Thrown>, machine: &Weak<Machine>) {
    while let Ok(Thrown { by, done }) = thrown.recv() {
        let Some(machine) = machine.upgrade() else { return };
        let took = kill(&machine, by);
        // The caller may have given up; the switch was thrown all the same.
        let _ = done.send(took);
    }
}

/// In this order: no new work, no line, no process, no prompt; then it is written down.
fn kill(machine: &Machine, by: &'static str) -> Duration {
    let began = Instant::now();
    machine.cut();
    machine.sockets.shutdown_all();
    machine.tokens.abort();
    machine.commands.kill_all();
    machine.consent.withdraw_all(Withdrawal::Killed);
    machine.sockets.shutdown_all(); // one that was being opened meanwhile
    machine.commands.kill_all(); // and a command that was being started
    let took = began.elapsed();
    if let Err(error) = off::remember(&machine.dirs.state, Off::Stopped) {
        error!(%error, "could not note down that the kill switch was thrown; a restart would connect again");
    }
    machine.set_connection(ConnectionState::Off { reason: "the kill switch was thrown".to_owned() });
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    machine.record_own("KILL_SWITCH", None, json!({"by": by, "took_ms": took_ms}));
    if let Err(error) = machine.audit.sync() {
        warn!(%error, "the audit log could not be synced after the kill switch");
    }
    machine.emit(|| Event::Killed { took_ms });
    took
}
