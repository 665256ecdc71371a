//! `deskhand demo`: the whole product at work, in a temporary folder, without a display, a keychain or a network.
//!
//! A reference platform in this process, the executor as a process of its own (the `deskhand run` that everybody gets), and an
//! agent that mends a small project through the two. Every step is checked: one that does not do what the product
//! promises ends the demo with an error. Whatever ends it, nothing stays behind.
//!
//! | file | what is in it |
//! |---|---|
//! | `story` | what happens, in order |
//! | `stage` | the folder, the platform and the machine, and their end |
//! | `machine` | an installation of deskhand, and its processes |
//! | `browser` | a person's browser at the sign-in pages |
//! | `agent` | a client of the platform's HTTP API |
//! | `project` | the folder that the agent works in |
//! | `transcript` | what is printed |

mod agent;
mod browser;
mod machine;
mod project;
mod stage;
mod story;
mod transcript;

use std::time::Duration;

use crate::args;
use crate::failure::{Code, Failure, Outcome};
use crate::run::Signals;

use stage::Stage;
use transcript::Transcript;

/// The platform and the browser are little work; so is what the executor's own process is asked for.
const WORKERS: usize = 2;

/// For threads that wait for something that does not end: we do not wait with them.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn demo(options: &args::Demo) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Failed, format!("the runtime cannot be started: {error}")))?;
    let ended = runtime.block_on(perform(options.keep));
    runtime.shutdown_timeout(LAST_PATIENCE);
    ended
}

async fn perform(keep: bool) -> Outcome {
    // Before there is anything that a signal would leave behind.
    let mut signals = Signals::new()?;
    let mut stage = Stage::new()?;
    let transcript = Transcript::new();
    let played = tokio::select! {
        played = story::play(&mut stage, &transcript, keep) => {
            if played.is_err() {
                stage.show_log();
            }
            played
        }
        signal = signals.end() => Err(Failure::new(Code::Failed, format!("the demo was ended ({signal})"))),
    };
    if keep && played.is_ok() {
        signals.end().await;
    }
    let cleared = stage.clear().await;
    played?;
    cleared?;
    transcript.end(keep)
}
