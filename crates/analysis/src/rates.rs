//! Converts raw counters to rates.
//!
//! A counter that went back was reset or wrapped: the interval has no rate. An interval in which
//! the source reports a reset has none either, since the counter may have passed its old value.

use pgdyno_model::telemetry::{Kind, STATS_RESET, Sample, Table};

/// Removes intervals shorter than half the usual length; their counts go to a neighbour.
///
/// A rate over a sliver of time is noise, such as from the last second's sample to the one at the
/// window's close.
pub(crate) fn even(table: &Table) -> Table {
    let mut lengths: Vec<f64> = intervals(table).map(|(a, b)| b.t_s - a.t_s).collect();
    lengths.sort_by(f64::total_cmp);
    let shortest = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0) / 2.0;
    let mut samples: Vec<Sample> = Vec::with_capacity(table.samples.len());
    for (i, sample) in table.samples.iter().enumerate() {
        let sliver = samples.last().is_some_and(|last| sample.t_s - last.t_s < shortest);
        let is_last = i + 1 == table.samples.len();
        match (sliver, is_last) {
            (true, false) => continue,
            // The last one has what the others have not: the one before it goes.
            (true, true) if samples.len() > 1 => drop(samples.pop()),
            _ => {}
        }
        samples.push(sample.clone());
    }
    Table { samples, ..table.clone() }
}

pub(crate) fn column(table: &Table, name: &str) -> Option<usize> {
    table.columns.iter().position(|c| c.name == name)
}

/// Returns the begin of each interval (seconds from the window's opening).
pub(crate) fn begins(table: &Table) -> Vec<f64> {
    intervals(table).map(|(a, _)| (a.t_s * 1000.0).round() / 1000.0).collect()
}

/// Pairs neighbouring samples, unless time did not move on between them.
pub(crate) fn intervals(table: &Table) -> impl Iterator<Item = (&Sample, &Sample)> {
    table.samples.windows(2).filter_map(|pair| match pair {
        [a, b] if b.t_s > a.t_s => Some((a, b)),
        _ => None,
    })
}

/// Computes a counter's growth over each interval; none across a reset.
pub(crate) fn differences(table: &Table, column: usize) -> Vec<Option<f64>> {
    let reset = self::column(table, STATS_RESET);
    intervals(table)
        .map(|(a, b)| {
            let grown = value(b, column)? - value(a, column)?;
            let same_epoch = reset.is_none_or(|reset| value(a, reset) == value(b, reset));
            (grown.is_finite() && grown >= 0.0 && same_epoch).then_some(grown)
        })
        .collect()
}

/// Reads a gauge at the end of each interval.
pub(crate) fn ends(table: &Table, column: usize, scale: f64) -> Vec<Option<f64>> {
    intervals(table)
        .map(|(_, end)| value(end, column).filter(|v| v.is_finite()).map(|v| short(v * scale)))
        .collect()
}

/// Adds up a counter's growth over the whole table; none if no interval has one.
pub(crate) fn growth(table: &Table, column: usize) -> Option<f64> {
    differences(table, column).into_iter().flatten().reduce(|a, b| a + b)
}

/// Finds the intervals in which counters of `table` were reset, and returns their ends (seconds
/// from the window's opening).
///
/// The kernel may take back idle and iowait time that it had counted on another CPU, which is no
/// reset.
pub(crate) fn resets(table: &Table) -> Vec<f64> {
    let fell = |a: &Sample, b: &Sample, i: usize| {
        value(a, i).zip(value(b, i)).is_some_and(|(before, after)| after < before)
    };
    let counters: Vec<usize> = (0..table.columns.len())
        .filter(|i| {
            let c = &table.columns[*i];
            c.kind == Kind::Counter && !c.name.ends_with("idle") && !c.name.ends_with("iowait")
        })
        .collect();
    let reset = column(table, STATS_RESET);
    intervals(table)
        .filter(|(a, b)| {
            let told = reset.is_some_and(|i| value(a, i) != value(b, i));
            told || counters.iter().any(|i| fell(a, b, *i))
        })
        .map(|(_, b)| b.t_s)
        .collect()
}

fn value(sample: &Sample, column: usize) -> Option<f64> {
    sample.values.get(column).copied().flatten()
}

pub(crate) fn per_second(table: &Table, column: usize, scale: f64) -> Vec<Option<f64>> {
    let lengths = intervals(table).map(|(a, b)| b.t_s - a.t_s);
    differences(table, column)
        .into_iter()
        .zip(lengths)
        .map(|(d, s)| d.map(|d| short(scale * d / s)))
        .collect()
}

/// Adds columns element by element; none where any is none.
pub(crate) fn sum(columns: impl Iterator<Item = Vec<Option<f64>>>) -> Vec<Option<f64>> {
    columns
        .reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| Some(a? + b?)).collect())
        .unwrap_or_default()
}

/// Three decimals are more than a chart shows; more digits would only make reports large.
pub(crate) fn short(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
