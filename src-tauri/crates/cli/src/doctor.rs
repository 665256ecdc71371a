//! `deskhand doctor`

use executor::doctor::{Check, Status, Subject, examine};

use crate::context::Context;
use crate::failure::{Code, Failure, Outcome};
use crate::output;

pub(crate) fn doctor(context: &Context, as_json: bool) -> Outcome {
    let subject =
        Subject { dirs: context.dirs.clone(), config: context.try_load(), vault: context.vault_options()? };
    let found = examine(&subject);
    if as_json {
        output::json(&serde_json::to_value(&found).map_err(|error| Failure::new(Code::Failed, error))?)?;
    } else {
        let width = found.checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
        found.checks.iter().try_for_each(|check| show(check, width))?;
    }
    if found.ok { Ok(()) } else { Err(Failure::silent(Code::Setup)) }
}

fn show(check: &Check, width: usize) -> Outcome {
    let mark = match check.status {
        Status::Ok => "ok  ",
        Status::Warn => "WARN",
        Status::Fail => "FAIL",
        Status::Skipped => "-   ",
    };
    output::line(format_args!("{mark} {:width$}  {}", check.name, check.detail))?;
    match &check.advice {
        Some(advice) => output::line(format_args!("     {:width$}  → {advice}", "")),
        None => Ok(()),
    }
}
