//! Reduces a trial's seconds and telemetry to what a page keeps.

use pgdyno_model::SecondLatencies;
use pgdyno_model::measurement::CommandSums;
use serde::Serialize;

use super::heat::{self, Heat};
use super::reduction::{Grid, Reduced, lengths, short};
use pgdyno_analysis::{RateTable, SecondView, TrialView};

/// Seconds and telemetry of a trial, reduced to a bounded number of buckets.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct TrialDetail {
    /// Most buckets of time.
    buckets: usize,
    /// Whether a bucket holds more than one second.
    reduced: bool,
    series: Series,
    /// Latencies over time; none in trials that earlier versions stored.
    heat: Option<Heat>,
    /// The trial's statements, in their order; empty in trials that earlier versions stored.
    statements: Vec<StatementSeries>,
    telemetry: Vec<Chart>,
}

/// Seconds of the window. Latencies are in microseconds.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Series {
    t_s: Vec<f64>,
    length_s: Vec<f64>,
    tps: Reduced,
    transactions: Vec<u64>,
    failed: Vec<u64>,
    p50: Vec<Option<f64>>,
    p95: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
}

/// One statement over buckets.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StatementSeries {
    /// Executions that ended well (count).
    executions: Vec<u64>,
    /// Their mean latency (microseconds); none where nothing was executed.
    latency_us: Vec<Option<f64>>,
}

/// One chart of telemetry.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Chart {
    group: &'static str,
    title: String,
    unit: &'static str,
    stacked: bool,
    detail: bool,
    t_s: Vec<f64>,
    lines: Vec<Line>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ChartLine"))]
struct Line {
    name: String,
    #[serde(flatten)]
    values: Reduced,
}

impl TrialDetail {
    /// Reduces `trial` to at most `limit` buckets; none without seconds or telemetry.
    pub(super) fn new(trial: &TrialView, limit: usize) -> Option<Self> {
        if trial.series.is_empty() && trial.telemetry.is_empty() {
            return None;
        }
        let grid = Grid::new(duration(trial), limit);
        let buckets = buckets(&trial.series, grid);
        let latencies = heat::merged(&buckets);
        Some(Self {
            buckets: limit,
            reduced: grid.is_reduced(),
            series: series(&buckets, &latencies, grid),
            heat: Heat::new(&latencies),
            statements: statements(&buckets),
            telemetry: trial.telemetry.iter().map(|table| chart(table, grid, limit)).collect(),
        })
    }

    /// Returns the most rows that a table of `trial` has.
    pub(super) fn rows(trial: &TrialView) -> usize {
        let tables = trial.telemetry.iter().map(|table| table.t_s.len());
        tables.chain([trial.series.len()]).max().unwrap_or(0)
    }
}

/// Returns the time from the window's opening to the last value (seconds).
fn duration(trial: &TrialView) -> f64 {
    let seconds = trial.series.iter().map(|s| f64::from(s.second.t_s) + 1.0);
    let samples = trial.telemetry.iter().flat_map(|table| table.t_s.iter().copied());
    seconds.chain(samples.filter(|t| t.is_finite())).fold(1.0, f64::max)
}

/// Groups the seconds of a window by the grid's buckets.
fn buckets(seconds: &[SecondView], grid: Grid) -> Vec<Vec<&SecondView>> {
    let times: Vec<f64> = seconds.iter().map(|s| f64::from(s.second.t_s)).collect();
    let of = |group: Vec<usize>| group.into_iter().map(|i| &seconds[i]).collect();
    grid.groups(&times).into_iter().map(of).collect()
}

fn series(
    buckets: &[Vec<&SecondView>],
    latencies: &[Option<SecondLatencies>],
    grid: Grid,
) -> Series {
    let sum = |count: fn(&SecondView) -> u64| -> Vec<u64> {
        buckets.iter().map(|b| b.iter().map(|s| count(s)).fold(0, u64::saturating_add)).collect()
    };
    // Percentiles cannot be averaged: without their latencies, the longest of several seconds
    // stands for them.
    let longest = |b: &Vec<&SecondView>, of: fn(&SecondView) -> Option<f64>| {
        b.iter().filter_map(|s| of(s)).reduce(f64::max)
    };
    let percentile = |quantile: f64, of: fn(&SecondView) -> Option<f64>| -> Vec<Option<f64>> {
        let one = |(b, all): (&Vec<&SecondView>, &Option<SecondLatencies>)| match all {
            Some(all) if b.len() > 1 => short(all.quantile_us(quantile)),
            _ => short(longest(b, of)),
        };
        buckets.iter().zip(latencies).map(one).collect()
    };
    let length = |b: &Vec<&SecondView>| b.iter().map(|s| s.second.length_s).sum::<f64>();
    Series {
        t_s: buckets.iter().map(|b| b.first().map_or(0.0, |s| f64::from(s.second.t_s))).collect(),
        length_s: buckets.iter().map(|b| short(Some(length(b))).unwrap_or(0.0)).collect(),
        tps: tps(buckets, grid),
        transactions: sum(|s| s.second.transactions),
        failed: sum(|s| s.second.failed),
        p50: percentile(0.5, |s| s.second.latency_us_p50),
        p95: percentile(0.95, |s| s.second.latency_us_p95),
        p99: percentile(0.99, |s| s.second.latency_us_p99),
        max: buckets.iter().map(|b| short(longest(b, |s| s.second.latency_us_max))).collect(),
    }
}

/// Returns what each statement did in each bucket. A second without any is one of nothing.
fn statements(buckets: &[Vec<&SecondView>]) -> Vec<StatementSeries> {
    let seconds = buckets.iter().flatten();
    let known = seconds.map(|second| second.statements.len()).max().unwrap_or(0);
    let statement = |at: usize| {
        let sum = |bucket: &Vec<&SecondView>| {
            let mut sum = CommandSums::default();
            let done = bucket.iter().filter_map(|second| second.statements.get(at));
            done.for_each(|done| sum.merge(*done));
            sum
        };
        let sums: Vec<CommandSums> = buckets.iter().map(sum).collect();
        StatementSeries {
            executions: sums.iter().map(|sum| sum.count).collect(),
            latency_us: sums.iter().map(|sum| short(sum.mean_us())).collect(),
        }
    };
    (0..known).map(statement).collect()
}

/// tps of each bucket. Slivers of a second have no extremes worth the name.
fn tps(buckets: &[Vec<&SecondView>], grid: Grid) -> Reduced {
    if !grid.is_reduced() {
        return Reduced::whole(buckets.iter().map(|b| b.first().and_then(|s| s.tps)));
    }
    let mean = |b: &Vec<&SecondView>| {
        let length: f64 = b.iter().map(|s| s.second.length_s).sum();
        let transactions: f64 = b.iter().map(|s| s.second.transactions as f64).sum();
        short((length > 0.0).then(|| transactions / length))
    };
    let extreme = |pick: fn(f64, f64) -> f64| {
        let of = |b: &Vec<&SecondView>| {
            let is_whole = |s: &&&SecondView| b.len() == 1 || s.second.length_s > 0.5;
            short(b.iter().filter(is_whole).filter_map(|s| s.tps).reduce(pick))
        };
        Some(buckets.iter().map(of).collect())
    };
    Reduced {
        mean: buckets.iter().map(mean).collect(),
        min: extreme(f64::min),
        max: extreme(f64::max),
    }
}

fn chart(table: &RateTable, grid: Grid, limit: usize) -> Chart {
    let is_reduced = grid.is_reduced() || table.t_s.len() > limit;
    let groups = if is_reduced { grid.groups(&table.t_s) } else { Vec::new() };
    let weights = lengths(&table.t_s);
    let line = |line: &pgdyno_analysis::RateLine| Line {
        name: line.name.clone(),
        values: if is_reduced {
            Reduced::new(&line.values, &weights, &groups)
        } else {
            Reduced::whole(line.values.iter().copied())
        },
    };
    let begin = |group: &Vec<usize>| group.first().and_then(|i| table.t_s.get(*i)).copied();
    let times: Vec<Option<f64>> = if is_reduced {
        groups.iter().map(begin).collect()
    } else {
        table.t_s.iter().copied().map(Some).collect()
    };
    Chart {
        group: table.group,
        title: table.title.clone(),
        unit: table.unit,
        stacked: table.stacked,
        detail: table.detail,
        t_s: times.into_iter().map(|t| short(t).unwrap_or(0.0)).collect(),
        lines: table.lines.iter().map(line).collect(),
    }
}
