//! `EXECUTE_COMMAND`.

use std::time::Duration;

use exec::{CommandSpec, Cwd, Program, Shell};
use protocol::{
    CommandResult, ErrorCode, ErrorPayload, ExecuteCommand, MessageType, ShellName, TEXT_CEILING_BYTES,
};
use serde_json::{Map, json};

use super::errors::{from_exec, from_jail, too_often};
use super::operation::{ApprovedAction, Asks, Call, Counted, Details, Done, Operation, details};
use crate::consent::{ActionView, Capability, ProgramMatch, quoted};
use crate::limits::COMMANDS_AT_ONCE;
use crate::machine::Machine;

/// Output, and an answer, that is worth looking after in memory, in bytes.
const LARGE_BYTES: usize = 1 << 20;

/// `EXECUTE_COMMAND`
pub(crate) struct Execute;

impl Operation for Execute {
    type Params = ExecuteCommand;
    type Response = CommandResult;
    const KIND: MessageType = MessageType::ExecuteCommand;
    // A command can kill this program, which then writes nothing any more.
    const STARTS: Option<&'static str> = Some("COMMAND_STARTED");

    fn details(params: &ExecuteCommand, call: &Call) -> Details {
        details(json!({
            "command": params.command,
            "argv": params.argv,
            "shell": params.shell.as_str(),
            "cwd": params.cwd.as_deref().unwrap_or(call.session().root_path()),
            "env_keys": params.env.keys().collect::<Vec<_>>(),
            "timeout_seconds": timeout(params, call).as_secs_f64(),
        }))
    }

    fn asks(params: &ExecuteCommand, call: &Call) -> Result<Asks, ErrorPayload> {
        let wrong = |field: &str, why: &str| {
            Err(ErrorPayload::new(ErrorCode::InternalError, format!("field '{field}': {why}"))
                .with("field", field))
        };
        let program = match (&params.command, &params.argv) {
            (Some(_), None) => ProgramMatch::none(),
            (None, Some(argv)) if argv.first().is_none_or(String::is_empty) => {
                return wrong("argv", "names no program");
            }
            (None, Some(argv)) => ProgramMatch::argv(&argv[0], params.env.keys().map(String::as_str)),
            (Some(_), Some(_)) | (None, None) => {
                return wrong("command", "exactly one of 'command' and 'argv' must be set");
            }
        };
        if params.timeout_seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite())) {
            return wrong("timeout_seconds", "must be above 0");
        }
        Ok(Asks { capability: Capability::Shell, view: view(params, call), program })
    }

    fn count(call: &Call) -> Result<Option<Counted>, ErrorPayload> {
        let counted = Counted::take(call, |machine| &machine.command_rate);
        counted.map(Some).map_err(|retry| too_often("commands", retry.seconds))
    }

    fn admit(call: &Call) -> Result<Box<dyn Send>, ErrorPayload> {
        let machine = &call.session().machine;
        let place = machine.command_place().ok_or_else(|| {
            ErrorPayload::new(
                ErrorCode::ShimOverloaded,
                "10 commands are running, the most this machine takes; wait for one to end",
            )
            .with("max_commands", COMMANDS_AT_ONCE)
        })?;
        Ok(Box::new(place))
    }

    fn json_bytes(result: &CommandResult) -> usize {
        let texts = [&result.stdout, &result.stderr];
        match texts.iter().map(|text| text.len()).sum() {
            0..LARGE_BYTES => 0,
            // Whatever else there is beside the texts fits into this.
            _ => texts.iter().flat_map(|text| text.bytes()).map(json_width).sum::<usize>() + 1024,
        }
    }

    fn answered(bytes: usize) {
        if bytes >= LARGE_BYTES {
            exec::memory::give_back_free(); // the steps of its making, before it is copied for the socket
        }
    }

    fn run(action: ApprovedAction<ExecuteCommand>, call: &Call) -> Done<CommandResult> {
        let allowed_program = action.program_of_rule();
        let params = action.into_params();
        let session = call.session();
        let timeout = timeout(&params, call);
        let folder = match session.root.working_dir(params.cwd.as_deref()) {
            Ok(folder) => folder,
            Err(error) => return Err(from_jail(&error)).into(),
        };
        #[cfg(unix)]
        let cwd = Cwd::from_fd(folder.path, folder.dir);
        #[cfg(windows)]
        let cwd = Cwd::from_handle(folder.path, folder.dir);
        let program = match (params.command, params.argv) {
            (Some(command), _) => Program::Line { shell: shell(params.shell), command },
            (None, argv) => Program::Argv(with_program(argv.unwrap_or_default(), allowed_program)),
        };
        let limit = call.limits().max_file_size_bytes.min(TEXT_CEILING_BYTES);
        let output_limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let spec = CommandSpec { program, cwd, timeout, env: params.env.into_iter().collect(), output_limit };
        if call.is_cancelled() {
            return Err(stopped()).into();
        }
        let running = match session.machine.commands.start(session.id.as_str(), spec) {
            Ok(running) => running,
            Err(error) => return Err(from_exec(&error)).into(),
        };
        let canceller = running.canceller();
        if call.is_cancelled() {
            canceller.cancel(); // the kill switch may have looked for processes just before this one was there
        }
        let _cancel_with_the_request = Machine::when_cancelled(&call.stop, move || canceller.cancel());
        let outcome = running.wait();
        if outcome.cancelled || call.is_cancelled() {
            return Err(stopped()).into();
        }
        if outcome.stdout.len() + outcome.stderr.len() >= LARGE_BYTES {
            exec::memory::give_back_free(); // what the last such answer left, before the next one is made
        }
        let result = CommandResult {
            stdout: outcome.stdout,
            stderr: outcome.stderr,
            exit_code: outcome.exit_code,
            timed_out: outcome.timed_out,
            duration_seconds: outcome.duration.as_secs_f64(),
            output_truncated: outcome.output_truncated,
        };
        let mut extra = Map::new();
        extra.insert("output_truncated".to_owned(), result.output_truncated.into());
        extra.insert("timed_out".to_owned(), result.timed_out.into());
        let exit_code = Some(result.exit_code);
        Done { extra, exit_code, ..Ok(result).into() }
    }
}

fn stopped() -> ErrorPayload {
    ErrorPayload::new(ErrorCode::InternalError, "the command was stopped with its connection")
}

/// How many bytes one of a text's has in JSON.
fn json_width(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | 0x08 | b'\t' | b'\n' | 0x0c | b'\r' => 2,
        0..=0x1f => 6,
        _ => 1,
    }
}

/// A rule allowed one file: that one runs, whatever the name leads to by now.
fn with_program(mut argv: Vec<String>, allowed: Option<String>) -> Vec<String> {
    if let (Some(first), Some(allowed)) = (argv.first_mut(), allowed) {
        *first = allowed;
    }
    argv
}

/// The smaller of what was asked and what holds.
fn timeout(params: &ExecuteCommand, call: &Call) -> Duration {
    let limit = call.limits().command_timeout_seconds;
    let seconds = params.timeout_seconds.map_or(limit, |asked| asked.min(limit));
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// The command as it will run, and what else decides what it does.
fn view(params: &ExecuteCommand, call: &Call) -> ActionView {
    let what = match (&params.command, &params.argv) {
        (Some(command), _) => command.clone(),
        (None, argv) => quoted(argv.as_deref().unwrap_or_default()),
    };
    let folder = params.cwd.as_deref().unwrap_or(call.session().root_path());
    let mut view = ActionView::new("Run a command").with("Command", &what).with("Folder", folder);
    if params.command.is_some() {
        view = view.with("Shell", params.shell.as_str());
    }
    params.env.iter().fold(view, |view, (name, value)| view.with("Variable", &format!("{name}={value}")))
}

fn shell(name: ShellName) -> Shell {
    match name {
        ShellName::Auto => Shell::Auto,
        ShellName::Bash => Shell::Bash,
        ShellName::Sh => Shell::Sh,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Pwsh => Shell::Pwsh,
        ShellName::Powershell => Shell::Powershell,
        ShellName::Cmd => Shell::Cmd,
    }
}
