//! Benchmarks with their floors: both sides run here, in turn, and a ratio is printed, so that a figure says something on any
//! machine. `cargo xtask bench [NAME…] [--json FILE]`.
//!
//! | file | what is in it |
//! |---|---|
//! | `measure`, `report` | rounds and medians; the table and the JSON |
//! | `wire` | both sides of the rows over a socket: an executor here, and an echo |
//! | `daemon`, `process` | the real `deskhand` as a child; what the OS says of processes |
//! | `frames`, `list`, `commands`, `log`, `resident`, `stop` | the rows |

mod commands;
mod daemon;
mod frames;
mod list;
mod log;
mod measure;
mod process;
mod report;
mod resident;
mod stop;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Parser;

use report::Row;

/// Measures Deskhand against its floors.
#[derive(Parser)]
struct Args {
    /// Only these: a row's name, or the part before its last dash [default: all]
    names: Vec<String>,
    /// Write the figures here too
    #[arg(long)]
    json: Option<PathBuf>,
    /// Say the names and end
    #[arg(long)]
    list: bool,
}

/// Rows that are measured together, by name.
struct Group {
    rows: &'static [&'static str],
    measure: fn() -> Result<Vec<Row>>,
}

const GROUPS: &[Group] = &[
    Group { rows: &["stat-1"], measure: || frames::stat(1) },
    Group { rows: &["stat-4"], measure: || frames::stat(4) },
    Group { rows: &["read-8m"], measure: frames::read },
    Group { rows: &["write-1m"], measure: frames::write },
    Group { rows: &["list-20k"], measure: list::list },
    Group { rows: &["exec-argv"], measure: || commands::exec(commands::Form::Argv) },
    Group { rows: &["exec-line"], measure: || commands::exec(commands::Form::Line) },
    Group { rows: &["output-rate", "output-pss"], measure: commands::output },
    Group { rows: &["audit-write", "audit-verify"], measure: log::audit },
    Group { rows: &["idle-pss", "idle-cpu"], measure: resident::idle },
    Group { rows: &["hello"], measure: resident::hello },
    Group { rows: &["stop"], measure: stop::stop },
];

impl Group {
    fn is_asked(&self, names: &[String]) -> bool {
        names.is_empty() || names.iter().any(|name| self.rows.iter().any(|row| is_named(row, name)))
    }
}

fn is_named(row: &str, name: &str) -> bool {
    row == name || row.rsplit_once('-').is_some_and(|(kind, _)| kind == name)
}

fn main() -> ExitCode {
    exec::supervisor::run_if_asked();
    exec::memory::keep_until_given_back(); // as `deskhand` does
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// 0 when all bars hold, 1 when one does not.
fn run(args: &Args) -> Result<ExitCode> {
    let all = || GROUPS.iter().flat_map(|group| group.rows);
    if args.list {
        all().for_each(|row| println!("{row}"));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = args.names.iter().find(|name| !all().any(|row| is_named(row, name))) {
        bail!("there is no benchmark '{unknown}'; --list says which there are");
    }
    report::print_head();
    let mut rows = Vec::new();
    for group in GROUPS.iter().filter(|group| group.is_asked(&args.names)) {
        let measured = (group.measure)().with_context(|| group.rows.join(", "))?;
        measured.iter().for_each(report::print);
        rows.extend(measured);
    }
    if let Some(file) = &args.json {
        report::write_json(&rows, file)?;
    }
    Ok(if rows.iter().all(Row::holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
