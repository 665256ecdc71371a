//! Commands to the process that runs.

use std::path::Path;

use executor::events::Command;
use executor::local::{Client, ClientError, ForceError, Instance, force_stop};
use executor::off::{self, Off};

use crate::context::{Context, block_on};
use crate::failure::{Code, Failure, Outcome, failed};
use crate::output;
use crate::standing;

/// Said while none runs it lets the next one connect, if the person says it: a running process judges that by itself.
pub(crate) fn connect(context: &Context) -> Outcome {
    match send(context, Command::Connect) {
        Ok(_) => output::line("connecting; see: deskhand status"),
        Err(ClientError::NotRunning) if off::recall(&context.dirs.state).is_some() => {
            standing::check_person(context)?;
            off::forget(&context.dirs.state).map_err(failed(Code::Setup))?;
            output::line("deskhand is not running; the next one connects: deskhand run")
        }
        Err(error) => Err(error.into()),
    }
}

/// Said while none runs it keeps the next one off, as the person meant.
pub(crate) fn disconnect(context: &Context) -> Outcome {
    match send(context, Command::Disconnect) {
        Ok(_) => output::line("disconnected, and off until: deskhand connect"),
        Err(ClientError::NotRunning) => {
            context.make_folders()?;
            off::remember(&context.dirs.state, Off::Disconnected).map_err(failed(Code::Setup))?;
            output::line("deskhand is not running; it stays off until: deskhand connect")
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn pause(context: &Context) -> Outcome {
    tell(context, Command::Pause)?;
    output::line("paused; every request is refused until: deskhand resume")
}

pub(crate) fn resume(context: &Context, session_id: Option<String>) -> Outcome {
    tell(context, Command::Resume { session_id })?;
    output::line("resumed")
}

/// Works in every case: by the running process, else on it, else on the next one.
pub(crate) fn stop(context: &Context) -> Outcome {
    let trouble = match send(context, Command::Stop) {
        Ok(Some(took_ms)) => {
            return output::line(format_args!("stopped in {took_ms} ms, and off until: deskhand connect"));
        }
        Ok(None) => return output::line("stopped, and off until: deskhand connect"),
        Err(ClientError::NotRunning) => None,
        Err(error) => Some(error),
    };
    if let Some(error) = &trouble {
        output::note(format_args!("deskhand: {error}; its process is ended instead"));
    } else {
        context.make_folders()?;
    }
    match force_stop(&context.dirs.state) {
        Ok(Some(pid)) => output::line(format_args!("process {pid} was ended; off until: deskhand connect")),
        Ok(None) => output::line("deskhand is not running; it stays off until: deskhand connect"),
        Err(ForceError::Io(error)) => not_noted(&context.dirs.state, &error),
        Err(error @ (ForceError::Unknown | ForceError::Stuck(_))) => Err(Failure::new(Code::Failed, error)),
    }
}

/// The note that it stays off could not be written, or the process not be ended.
fn not_noted(state: &Path, error: &std::io::Error) -> Outcome {
    if !matches!(Instance::running(state), Ok(None)) {
        return Err(Failure::new(Code::Failed, error));
    }
    if off::recall(state).is_some() {
        return output::line(
            "deskhand is not running; it stays off, as was said before, until: deskhand connect",
        );
    }
    let message = format!(
        "deskhand is not running now, but it WILL CONNECT at its next start: that it shall stay off could not be noted \
         down in {} ({error}). Free some space there and say `deskhand stop` again, and keep it from being started until then",
        state.display()
    );
    Err(Failure::new(Code::Failed, message))
}

fn tell(context: &Context, command: Command) -> Outcome {
    send(context, command).map(drop).map_err(Failure::from)
}

fn send(context: &Context, command: Command) -> Result<Option<u64>, ClientError> {
    block_on(async { Ok(async { Client::connect(&context.dirs.state).await?.command(command).await }.await) })
        .unwrap_or_else(|_| Err(ClientError::Broken(std::io::Error::other("the runtime cannot be started"))))
}
