//! A scheduled task of this user, run at log-on.

use std::path::Path;

use super::{Program, report, says_yes, text, tool, write, xml};
use crate::failure::{Code, Failure, Outcome};
use crate::output;

const TASK: &str = include_str!("../../../../../installers/service/deskhand-task.xml");
const NAME: &str = "Deskhand";

pub(super) fn install(program: &Program, logs: &Path, passphrase_file: Option<&Path>) -> Outcome {
    if passphrase_file.is_some() {
        return Err(Failure::new(
            Code::Usage,
            "--passphrase-file is for systemd; here secrets are in the credential store",
        ));
    }
    let mut words = program.words()?;
    let executable = words.next().unwrap_or_default();
    let arguments: Vec<_> = words.chain(["run"]).map(quoted).collect();
    let user = std::env::var("USERNAME").unwrap_or_default();
    let user = match std::env::var("USERDOMAIN") {
        Ok(domain) => format!("{domain}\\{user}"),
        Err(_) => user,
    };
    let task = TASK
        .replace("@USER@", &xml(&user))
        .replace("@EXE@", &xml(executable))
        .replace("@ARGS@", &xml(&arguments.join(" ")));
    let file = logs.join("deskhand-task.xml");
    // The scheduler takes UTF-16 with its mark.
    let utf16: Vec<u8> =
        std::iter::once(0xfeff).chain(task.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    write(&file, utf16)?;
    let made = tool("schtasks", &["/Create", "/TN", NAME, "/XML", text(&file)?, "/F"]);
    // It was only for the scheduler to read.
    let _ = std::fs::remove_file(&file);
    made?;
    tool("schtasks", &["/Run", "/TN", NAME])?;
    output::line(format_args!("installed (the scheduled task {NAME}) and started"))
}

pub(super) fn uninstall() -> Outcome {
    if !exists() {
        return output::line("it was not installed");
    }
    says_yes("schtasks", &["/End", "/TN", NAME]);
    tool("schtasks", &["/Delete", "/TN", NAME, "/F"])?;
    output::line("stopped and removed")
}

pub(super) fn status() -> Outcome {
    // The scheduler's own word for "running" is translated; ours is not.
    let running = "if ((Get-ScheduledTask -TaskName Deskhand).State -ne 'Running') { exit 1 }";
    let runs = says_yes("powershell", &["-NoProfile", "-NonInteractive", "-Command", running]);
    report(exists(), runs, &format!("the scheduled task {NAME}"))
}

fn exists() -> bool {
    says_yes("schtasks", &["/Query", "/TN", NAME])
}

/// One word of a command line, as the C runtime takes it apart: backslashes count only before a quotation mark.
fn quoted(word: &str) -> String {
    if !word.is_empty() && !word.contains([' ', '\t', '"']) {
        return word.to_owned();
    }
    let mut quoted = String::from("\"");
    let mut backslashes = 0;
    for character in word.chars() {
        match character {
            '\\' => backslashes += 1,
            '"' => {
                quoted.push_str(&"\\".repeat(backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        quoted.push(character);
    }
    quoted.push_str(&"\\".repeat(backslashes));
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_comes_out_of_the_command_line_as_it_went_in() {
        assert_eq!(quoted("run"), "run");
        assert_eq!(quoted(r"C:\a b\"), r#""C:\a b\\""#);
        assert_eq!(quoted(r#"a\"b"#), r#""a\\\"b""#);
    }
}
