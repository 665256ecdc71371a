//! Whether whoever asks may: what is the person's to decide is not done for a command of an agent's.
//!
//! The running process judges what is asked of it. Here it is about what this program does by itself: to the
//! configuration, the secrets, the log, and by starting another Deskhand. An allowed command can still edit files as the
//! user; this program does not do it for one.

use executor::config::Dirs;
use executor::local::is_inside_command;

use crate::args::{Audit, Command, Roots, Service};
use crate::context::{Context, block_on};
use crate::failure::{Code, Failure, Outcome};

/// Refuses a command of an agent's what only the person may do.
pub(crate) fn check(command: &Command, context: &Context) -> Outcome {
    if is_for_the_person(command) { check_person(context) } else { Ok(()) }
}

/// Refuses a command of an agent's.
pub(crate) fn check_person(context: &Context) -> Outcome {
    if !is_asked_by_command(context)? {
        return Ok(());
    }
    Err(Failure::new(
        Code::Setup,
        "only the person may do this, not a command that deskhand itself has started: use a terminal of your own or the app",
    ))
}

fn is_for_the_person(command: &Command) -> bool {
    match command {
        Command::Run | Command::Login(_) | Command::Logout => true,
        // Said to the running process, which judges. With none running the first asks here before it does something, the
        // second does nothing, and the others make things safer.
        Command::Connect | Command::Resume { .. } => false,
        Command::Disconnect | Command::Pause | Command::Stop => false,
        Command::Status(_) | Command::Doctor { .. } => false,
        Command::Roots { command } => match command {
            Roots::Add { .. } | Roots::Remove { .. } => true,
            Roots::List => false,
        },
        Command::Audit { command } => match command {
            // What deletes, signs, or shows the key.
            Audit::Rotate | Audit::Prune { .. } | Audit::Export { .. } | Audit::Key { .. } => true,
            Audit::Tail { .. } | Audit::Show { .. } | Audit::Verify { .. } | Audit::VerifyAll => false,
        },
        Command::Service { command } => match command {
            Service::Install { .. } | Service::Uninstall => true,
            Service::Status => false,
        },
        #[cfg(feature = "platform")]
        Command::Platform(_) => false,
        // It does all of this, if to an installation of its own.
        #[cfg(feature = "platform")]
        Command::Demo(_) => true,
    }
}

/// Asks the installation that the command is about, and the usual one, which a flag could lead past.
fn is_asked_by_command(context: &Context) -> Outcome<bool> {
    let usual =
        Dirs::find(None, None).ok().map(|dirs| dirs.state).filter(|state| *state != context.dirs.state);
    block_on(async {
        let mut states = usual.iter().chain([&context.dirs.state]);
        let mut inside = false;
        while let (false, Some(state)) = (inside, states.next()) {
            inside = is_inside_command(state).await;
        }
        Ok(inside)
    })
}
