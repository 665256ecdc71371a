//! `deskhand`: the executor without a window, and the commands that look after it.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the command line: every option and its help |
//! | `context` | what most commands need: folders, configuration, vault |
//! | `failure`, `output` | exit codes, messages, results |
//! | `standing` | what is refused to a command of an agent's |
//! | `run` | `run` |
//! | `control`, `status` | commands to the process that runs |
//! | `records` | a record of the audit log, for reading |
//! | `login`, `roots`, `audit`, `doctor`, `service`, `platform`, `demo` | one subcommand each |
#![forbid(unsafe_code)]

mod args;
mod audit;
mod context;
mod control;
#[cfg(feature = "platform")]
mod demo;
mod doctor;
mod failure;
mod login;
mod output;
#[cfg(feature = "platform")]
mod platform;
mod records;
mod roots;
mod run;
mod service;
mod standing;
mod status;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use context::Context;
use failure::{Code, Outcome};

fn main() -> ExitCode {
    exec::supervisor::run_if_asked();
    exec::memory::keep_until_given_back();
    let hardened = vault::harden_process();
    // Before the first thread: it is wiped from the environment, which threads read.
    let passphrase = vault::passphrase_from_env();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(shown) => {
            // Help and version are answers, everything else is a mistake. Nobody may be reading either.
            let _ = shown.print();
            return if shown.use_stderr() { Code::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    output::start_logging(matches!(args.command, Command::Run));
    if let Err(error) = hardened {
        tracing::warn!(%error, "this process' memory is open to other programs of yours");
    }
    let done = Context::new(&args.global, passphrase).and_then(|context| dispatch(args.command, &context));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn dispatch(command: Command, context: &Context) -> Outcome {
    standing::check(&command, context)?;
    match command {
        Command::Run => run::run(context),
        Command::Login(options) => login::login(context, &options),
        Command::Logout => login::logout(context),
        Command::Connect => control::connect(context),
        Command::Disconnect => control::disconnect(context),
        Command::Pause => control::pause(context),
        Command::Resume { session_id } => control::resume(context, session_id),
        Command::Stop => control::stop(context),
        Command::Status(options) => status::status(context, &options),
        Command::Doctor { json } => doctor::doctor(context, json),
        Command::Roots { command } => roots::roots(context, command),
        Command::Audit { command } => audit::audit(context, command),
        Command::Service { command } => service::service(context, command),
        #[cfg(feature = "platform")]
        Command::Platform(options) => platform::platform(&options),
        #[cfg(feature = "platform")]
        Command::Demo(options) => demo::demo(&options),
    }
}
