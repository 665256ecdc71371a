//! A systemd user unit.

use std::path::{Path, PathBuf};

use directories::BaseDirs;

use super::{Program, remove, report, says_yes, text, tool, write};
use crate::failure::{Code, Failure, Outcome, failed};
use crate::output;

const UNIT: &str = include_str!("../../../../../installers/service/deskhand.service");
const PASSPHRASE: &str = include_str!("../../../../../installers/service/deskhand.service.d-passphrase.conf");
const NAME: &str = "deskhand.service";

pub(super) fn install(program: &Program, _logs: &Path, passphrase_file: Option<&Path>) -> Outcome {
    let unit = unit_path()?;
    let words: Vec<_> = program.words()?.map(quoted).collect();
    let drop_in = drop_in(&unit);
    match passphrase_file {
        Some(file) => {
            let file = std::fs::canonicalize(file)
                .map_err(|error| Failure::new(Code::Setup, format!("{}: {error}", file.display())))?;
            write(&drop_in, PASSPHRASE.replace("@FILE@", &specifiers(text(&file)?)))?;
        }
        None => {
            remove(&drop_in)?;
        }
    }
    write(&unit, UNIT.replace("\"@EXE@\"", &words.join(" ")))?;
    let started = tool("systemctl", &["--user", "daemon-reload"])
        .and_then(|()| tool("systemctl", &["--user", "enable", NAME]))
        .and_then(|()| tool("systemctl", &["--user", "restart", NAME]));
    if let Err(failure) = started {
        output::note(format_args!(
            "deskhand: {} is written, and could not be started; in a session with systemd: systemctl --user enable --now {NAME}",
            unit.display()
        ));
        return Err(failure);
    }
    output::line(format_args!("installed ({}) and started", unit.display()))?;
    output::note("it runs while you are logged in; to let it run without that: loginctl enable-linger");
    Ok(())
}

pub(super) fn uninstall() -> Outcome {
    let unit = unit_path()?;
    if unit.exists() {
        // Where systemd cannot be reached nothing of it runs.
        if let Err(failure) = tool("systemctl", &["--user", "disable", "--now", NAME]) {
            failure.report();
        }
    }
    let drop_in = drop_in(&unit);
    remove(&drop_in)?;
    if let Some(folder) = drop_in.parent() {
        // Stays where somebody keeps a drop-in of their own.
        let _ = std::fs::remove_dir(folder);
    }
    if !remove(&unit)? {
        return output::line("it was not installed");
    }
    says_yes("systemctl", &["--user", "daemon-reload"]);
    output::line("stopped and removed")
}

pub(super) fn status() -> Outcome {
    let unit = unit_path()?;
    report(
        unit.exists(),
        says_yes("systemctl", &["--user", "is-active", "--quiet", NAME]),
        &unit.display().to_string(),
    )
}

fn unit_path() -> Outcome<PathBuf> {
    let base = BaseDirs::new().ok_or("no home folder is known; set HOME").map_err(failed(Code::Setup))?;
    Ok(base.config_dir().join("systemd").join("user").join(NAME))
}

fn drop_in(unit: &Path) -> PathBuf {
    unit.with_extension("service.d").join("passphrase.conf")
}

/// One word of an `ExecStart=` line, as systemd.service(5) and systemd.unit(5) want it.
fn quoted(word: &str) -> String {
    let word = specifiers(word).replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
    format!("\"{word}\"")
}

/// `%` begins a specifier everywhere in a unit.
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_the_templates_is_filled_in() {
        assert!(UNIT.contains("ExecStart=\"@EXE@\" run\n"), "{UNIT}");
        assert_eq!(UNIT.matches("\"@EXE@\"").count(), 1);
        assert!(PASSPHRASE.contains("@FILE@"));
    }

    #[test]
    fn a_word_comes_out_of_the_unit_as_it_went_in() {
        assert_eq!(quoted("/opt/a b/deskhand"), "\"/opt/a b/deskhand\"");
        assert_eq!(quoted(r#"/x"%i\$HOME"#), r#""/x\"%%i\\$$HOME""#);
    }
}
