//! Commands, shown as they are run.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `command` in the foreground; anything but success is an error that names it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Whether `command` can be started and succeeds; says nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// What `command` prints on success; what it says on failure is in the error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` ended with {}: {}", output.status, said.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed no UTF-8"))
}

/// Becomes `command`, so that signals and the terminal reach it directly; on Windows waits for it instead.
pub(crate) fn become_command(command: &mut Command) -> Result<ExitCode> {
    let shown = show(command);
    eprintln!("$ {shown}");
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        Err(command.exec()).with_context(|| format!("cannot start `{shown}`"))
    }
    #[cfg(not(unix))]
    {
        let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }
}

/// The command line as a person would type it: the program without its folder, and no environment.
pub(crate) fn show(command: &Command) -> String {
    let program = command.get_program();
    let program = Path::new(program).file_name().unwrap_or(program);
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| quote(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("cargo");
        command.args(["run", "-E", "test(a b)", "", "it's"]);
        assert_eq!(show(&command), r"cargo run -E 'test(a b)' '' 'it'\''s'");
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let error = run(Command::new("cargo").arg("no-such-subcommand").stderr(Stdio::null())).unwrap_err();
        assert!(error.to_string().starts_with("`cargo no-such-subcommand` ended with"), "{error}");
    }
}
