//! Results go to standard output, everything else to standard error.

use std::io::{self, IsTerminal as _, Write as _};

use tracing_subscriber::EnvFilter;

use crate::failure::{Code, Failure, Outcome};

/// Writes one line of a result. A reader that has seen enough (`| head`) ends the program quietly.
pub(crate) fn line(text: impl std::fmt::Display) -> Outcome {
    match writeln!(io::stdout().lock(), "{text}") {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::new(Code::Failed, format!("cannot write the result: {error}"))),
    }
}

/// Writes a value as indented JSON.
pub(crate) fn json(value: &serde_json::Value) -> Outcome {
    line(format_args!("{value:#}"))
}

/// Says something to the person that is no result.
pub(crate) fn note(text: impl std::fmt::Display) {
    // With nobody to read it there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Diagnostics on standard error: `DESKHAND_LOG`, else what a person at `run` wants to see.
pub(crate) fn start_logging(is_run: bool) {
    let usual = if is_run { "info" } else { "warn" };
    let asked = std::env::var("DESKHAND_LOG").ok().filter(|filter| !filter.is_empty());
    let (filter, refused) = match asked.as_deref().map(EnvFilter::try_new) {
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(usual), Some(error)),
        None => (EnvFilter::new(usual), None),
    };
    let colours =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colours).init();
    if let Some(error) = refused {
        tracing::warn!(%error, "DESKHAND_LOG is not a filter; an example: DESKHAND_LOG=debug,executor::connection=trace");
    }
}

/// Bytes as a person reads them.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit / (unit / 10)),
        None => format!("{bytes} bytes"),
    }
}

/// Seconds as a person reads them.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86400, seconds % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_are_for_reading() {
        assert_eq!(
            [0, 999, 1000, 1_250_000, 67_108_864].map(size),
            ["0 bytes", "999 bytes", "1.0 kB", "1.2 MB", "67.1 MB"]
        );
        assert_eq!([5, 65, 3700, 90_000].map(duration), ["5 s", "1 min", "1 h 1 min", "1 d 1 h"]);
    }
}
