//! Rounds and medians.

use anyhow::Result;

/// Both figures of one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    /// Ours.
    pub(crate) ours: f64,
    /// The floor's.
    pub(crate) floor: f64,
}

/// Measures both sides in turn, after one round that does not count, and gives the round whose ratio is the median: both
/// figures of it were taken at the same time, whatever else the machine did.
pub(crate) fn in_turn(
    rounds: usize,
    mut ours: impl FnMut() -> Result<f64>,
    mut floor: impl FnMut() -> Result<f64>,
) -> Result<Pair> {
    ours()?;
    floor()?;
    let mut pairs = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        pairs.push(Pair { ours: ours()?, floor: floor()? });
    }
    pairs.sort_by(|a, b| (a.ours / a.floor).total_cmp(&(b.ours / b.floor)));
    Ok(pairs[pairs.len() / 2])
}

/// The median. 0 of nothing.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// Milliseconds, as the rows give durations.
pub(crate) fn ms(duration: std::time::Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
