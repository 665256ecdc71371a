//! What a benchmark says: a line of the table, an object of the JSON.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// What must hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bar {
    /// Ours over the floor's, a rate.
    RatioAtLeast(f64),
    /// Ours over the floor's, a duration.
    RatioAtMost(f64),
    /// Ours minus the floor's.
    OverFloorAtMost(f64),
    /// Ours.
    AtLeast(f64),
    /// Ours.
    AtMost(f64),
}

/// One measured row.
#[derive(Debug)]
pub(crate) struct Row {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Our figure.
    pub(crate) ours: f64,
    /// The floor's, where there is one.
    pub(crate) floor: Option<f64>,
    /// Of both.
    pub(crate) unit: &'static str,
    /// What must hold.
    pub(crate) bar: Bar,
    /// What else is worth knowing.
    pub(crate) note: String,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.floor.map(|floor| self.ours / floor)
    }

    /// Whether the bar holds. What cannot be compared does not hold.
    pub(crate) fn holds(&self) -> bool {
        match self.bar {
            Bar::RatioAtLeast(bar) => self.ratio().is_some_and(|ratio| ratio >= bar),
            Bar::RatioAtMost(bar) => self.ratio().is_some_and(|ratio| ratio <= bar),
            Bar::OverFloorAtMost(bar) => self.floor.is_some_and(|floor| self.ours - floor <= bar),
            Bar::AtLeast(bar) => self.ours >= bar,
            Bar::AtMost(bar) => self.ours <= bar,
        }
    }

    fn bar_value(&self) -> (f64, &'static str) {
        match self.bar {
            Bar::RatioAtLeast(bar) => (bar, "ratio at least"),
            Bar::RatioAtMost(bar) => (bar, "ratio at most"),
            Bar::OverFloorAtMost(bar) => (bar, "over the floor by at most"),
            Bar::AtLeast(bar) => (bar, "ours at least"),
            Bar::AtMost(bar) => (bar, "ours at most"),
        }
    }

    fn json(&self) -> Value {
        let (bar, meaning) = self.bar_value();
        json!({
            "name": self.name, "ours": self.ours, "floor": self.floor, "unit": self.unit, "ratio": self.ratio(),
            "bar": bar, "bar_means": meaning, "holds": self.holds(), "note": self.note,
        })
    }
}

/// The table's first lines.
pub(crate) fn print_head() {
    println!(
        "{:<13} {:>11} {:>11} {:<6} {:>7}  {:<30} note",
        "name", "ours", "floor", "unit", "ratio", "bar"
    );
}

/// One line of the table.
pub(crate) fn print(row: &Row) {
    let (bar, meaning) = row.bar_value();
    let ratio = row.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
    let floor = row.floor.map_or_else(|| "-".to_owned(), figure);
    let bar = format!("{} {meaning} {bar}", if row.holds() { "ok  " } else { "MISS" });
    println!(
        "{:<13} {:>11} {floor:>11} {:<6} {ratio:>7}  {bar:<30} {}",
        row.name,
        figure(row.ours),
        row.unit,
        row.note
    );
}

fn figure(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// A list of `{name, ours, floor, unit, ratio, bar, bar_means, holds, note}`; `floor` and `ratio` null where there is none.
pub(crate) fn write_json(rows: &[Row], file: &Path) -> Result<()> {
    let list: Vec<Value> = rows.iter().map(Row::json).collect();
    let text = serde_json::to_string_pretty(&list)?;
    std::fs::write(file, text + "\n").with_context(|| format!("{} cannot be written", file.display()))
}
