//! Repeats: what they can show, and what a single measurement cannot.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_stats::{holm, mean_ci95, unpaired_ratio};

use super::rising::{BY_CHANCE, Rising, Sample, TOGETHER, are_equal};
use super::rule::{AuditRule, Verdicts};
use crate::figure::Figure;
use crate::finding::Confidence::{Certain, Likely, Possible};
use crate::finding::Severity::{Note, Warning};
use crate::finding::{Compared, Interval, Program, RepeatsKind, RowTrend, RowsCompared, Trends};
use crate::recognise::{Evidence, Meaning, PgbenchRun, SysbenchRun, Table, is_numbered};
use crate::words::{self, Words};

pub(super) const RULES: &[AuditRule] = &[
    AuditRule { name: "one-repeat", judge: one_repeat },
    AuditRule { name: "rising-repeats", judge: rising },
    AuditRule { name: "told-apart", judge: intervals },
];

/// Samples that can be compared: the rows of a table that have one unit, the runs of a report.
fn sets(evidence: &Evidence) -> Vec<Vec<Sample>> {
    let known = evidence.recognised.tables.iter().filter(|t| t.meaning != Meaning::Unknown);
    let mut sets = Vec::new();
    for table in known {
        let mut by_unit: BTreeMap<Option<&str>, Vec<Sample>> = BTreeMap::new();
        for row in table.rows.iter().filter(|row| !row.repeats.is_empty()) {
            let (label, lines, values) = (row.label.clone(), vec![row.line], row.values());
            let set = by_unit.entry(unit_of(&row.label)).or_default();
            set.push(Sample { label, lines, values });
        }
        sets.extend(by_unit.into_values());
    }
    sets.push(pgbench_samples(evidence));
    sets.push(sysbench_samples(evidence));
    sets.retain(|set| !set.is_empty());
    sets
}

/// Returns the unit that a row's name has; none where it names none.
fn unit_of(label: &str) -> Option<&'static str> {
    const UNITS: Words = Words("tps|ktps|tpm|tpmc|nopm|qps|kqps|iops|ops|latency|ms");
    let lower = label.to_lowercase();
    let words = words::split(&lower);
    UNITS.iter().find(|unit| words.contains(unit))
}

fn pgbench_samples(evidence: &Evidence) -> Vec<Sample> {
    let label = |run: &PgbenchRun| {
        let label = run.label.as_ref().map(|label| format!("{label}, "));
        format!("{}line {}", label.unwrap_or_default(), run.line)
    };
    samples(&evidence.recognised.runs, &evidence.groups, label, PgbenchRun::tps_connected)
}

fn sysbench_samples(evidence: &Evidence) -> Vec<Sample> {
    let runs = &evidence.recognised.sysbench;
    let label = |run: &SysbenchRun| format!("sysbench, line {}", run.line);
    samples(runs, &evidence.sysbench_groups, label, |run| run.per_second)
}

/// The rates of each group of runs that has any.
fn samples<R>(
    runs: &[R],
    groups: &[Vec<usize>],
    label: impl Fn(&R) -> String,
    rate: fn(&R) -> Option<Figure>,
) -> Vec<Sample> {
    let samples = groups.iter().filter_map(|group| {
        let rates: Vec<Figure> = group.iter().filter_map(|at| rate(&runs[*at])).collect();
        let label = label(&runs[*group.first()?]);
        let lines = rates.iter().map(|figure| figure.line).collect();
        let values = rates.iter().map(|figure| figure.value).collect();
        (!rates.is_empty()).then_some(Sample { label, lines, values })
    });
    samples.collect()
}

fn one_repeat(evidence: &Evidence, verdicts: &mut Verdicts) {
    for table in &evidence.recognised.tables {
        if table.meaning == Meaning::Unknown {
            unknown_repeats(table, verdicts);
        } else {
            equal_repeats(table, verdicts);
        }
    }
    let runs = &evidence.recognised.runs;
    let mut parameters: Vec<String> = runs.iter().map(PgbenchRun::parameters).collect();
    parameters.sort();
    // Where parameters recur, text between the runs is all that says that they are not repeats.
    let recur = parameters.windows(2).any(|pair| pair[0] == pair[1]);
    let samples = pgbench_samples(evidence);
    single_runs(Program::Pgbench, &samples, are_equal(&parameters), recur, verdicts);
    let samples = sysbench_samples(evidence);
    let several = samples.iter().filter(|sample| are_equal(&sample.values)).count() > 1;
    single_runs(Program::Sysbench, &samples, false, several, verdicts);
}

/// Rows with one value, or with equal ones.
fn equal_repeats(table: &Table, verdicts: &mut Verdicts) {
    for row in table.rows.iter().filter(|r| !r.repeats.is_empty()) {
        let mut equal_values = row.values();
        if !are_equal(&equal_values) {
            continue;
        }
        // A mean beside a single value is the value once more.
        if equal_values.len() == 1 {
            equal_values.extend(row.mean.map(|mean| mean.value));
        }
        let row_label = row.label.clone();
        let kind = RepeatsKind::EqualValues { row: row_label, n_in_effect: 1, equal_values };
        verdicts.report(Warning, Certain, [row.line], kind);
    }
}

/// A table of which nobody says what was repeated.
fn unknown_repeats(table: &Table, verdicts: &mut Verdicts) {
    let rows: Vec<_> = table
        .rows
        .iter()
        .filter(|r| !r.has_spread && (r.mean.is_some() || !r.others.is_empty()))
        .collect();
    let lines: Vec<usize> = rows.iter().map(|r| r.line).collect();
    let is_time = !table.tps && table.has_time_column();
    // A single row of times compares nothing. Rows that only count may be repeats.
    let compares = table.tps || is_time && rows.len() >= 2;
    if !compares || rows.is_empty() || is_numbered(table.rows.iter().map(|r| r.label.as_str())) {
        return;
    }
    if rows.iter().all(|r| r.mean.is_some()) {
        verdicts.report(Note, Likely, lines, RepeatsKind::MeansAlone { rows: rows.len() });
    } else if (is_time || table.has_tps_column()) && !table.summarised {
        let kind = RepeatsKind::OneFigure { rows: rows.len(), is_time };
        verdicts.report(Warning, Likely, lines, kind);
    }
}

/// Runs without a repeat. Runs that are `alike` have a ratio; `may_repeat` says that some may be
/// repeats after all.
fn single_runs(
    program: Program,
    samples: &[Sample],
    alike: bool,
    may_repeat: bool,
    verdicts: &mut Verdicts,
) {
    let single = samples.iter().filter(|sample| are_equal(&sample.values));
    let (lines, tps): (Vec<&[usize]>, Vec<f64>) =
        single.map(|sample| (sample.lines.as_slice(), sample.values[0])).unzip();
    let ratio = match tps[..] {
        [] => return,
        [a, b] if alike && b > 0.0 => Some(a / b),
        _ => None,
    };
    let sure = if may_repeat { Likely } else { Certain };
    let kind = RepeatsKind::SingleRuns { program, runs: tps.len(), tps, ratio };
    verdicts.report(Warning, sure, lines.concat(), kind);
}

fn lines_of<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<usize> {
    samples.into_iter().flat_map(|sample| sample.lines.iter().copied()).collect()
}

fn rising(evidence: &Evidence, verdicts: &mut Verdicts) {
    for set in sets(evidence) {
        let tested: Vec<&Sample> = set.iter().filter(|s| s.values.len() >= 4).collect();
        if tested.is_empty() {
            continue;
        }
        let found = Rising::among(&tested);
        let fault = found.is_significant().then(|| {
            let is_likely = found.so_many.min(found.so_steadily) <= TOGETHER;
            (Warning, if is_likely { Likely } else { Possible })
        });
        let lines = match fault {
            Some(_) => lines_of(found.rows.iter().map(|(sample, _)| *sample)),
            None => lines_of(tested),
        };
        let rows = found.rows.iter().map(|(sample, trend)| RowTrend {
            row: sample.label.clone(),
            rising: trend.rising,
            values: sample.values.clone(),
            chance: trend.chance,
        });
        let trends = Trends {
            rows: rows.collect(),
            tested: found.tested,
            chance_of_so_many: found.so_many,
            chance_of_one_so_steady: found.so_steadily,
        };
        verdicts.judge(fault, lines, RepeatsKind::Trends(trends));
    }
}

/// More rows than these make more pairs than anyone reads.
const MOST_ROWS: usize = 60;

fn intervals(evidence: &Evidence, verdicts: &mut Verdicts) {
    for set in sets(evidence) {
        let samples: Vec<&Sample> = set.iter().filter(|s| s.values.len() >= 2).collect();
        if samples.is_empty() {
            continue;
        }
        let lines = lines_of(samples.iter().copied());
        let intervals = samples.iter().map(|sample| interval(sample)).collect();
        verdicts.right(lines.clone(), RepeatsKind::Intervals { intervals });
        if samples.len() > MOST_ROWS {
            let kind = RepeatsKind::TooManyRows { rows: samples.len() };
            verdicts.report(Note, Certain, lines, kind);
        } else {
            compare(&samples, lines, verdicts);
        }
    }
}

fn interval(sample: &Sample) -> Interval {
    let estimate = mean_ci95(&sample.values);
    Interval {
        row: sample.label.clone(),
        n: estimate.n,
        mean: estimate.mean,
        sd: estimate.sd,
        ci95: estimate.ci95,
        why: estimate.why.map(|why| why.to_string()),
    }
}

/// Two rows, their ratio, and its p-value by Holm's rule.
struct Pair {
    a: usize,
    b: usize,
    ratio: pgdyno_stats::Ratio,
    p: f64,
}

/// All pairs of rows that can be compared.
fn pairs(samples: &[&Sample]) -> Vec<Pair> {
    let numbered = |sample: &&Sample| (0..).zip(sample.values.iter().copied()).collect();
    let values: Vec<Vec<(u32, f64)>> = samples.iter().map(numbered).collect();
    let mut pairs: Vec<Pair> = Vec::new();
    for a in 0..samples.len() {
        for b in a + 1..samples.len() {
            // Nobody says that the n-th repeats of two rows belong together.
            let ratio = unpaired_ratio(1.0, &values[a], &values[b]);
            if let Some(p) = ratio.p {
                pairs.push(Pair { a, b, ratio, p });
            }
        }
    }
    let adjusted = holm(&pairs.iter().map(|pair| pair.p).collect::<Vec<_>>());
    for (pair, p) in pairs.iter_mut().zip(adjusted) {
        pair.p = p;
    }
    pairs
}

/// The rows of these pairs, in order.
fn rows_of<'a>(pairs: impl IntoIterator<Item = &'a Pair>) -> BTreeSet<usize> {
    pairs.into_iter().flat_map(|pair| [pair.a, pair.b]).collect()
}

fn compare(samples: &[&Sample], lines: Vec<usize>, verdicts: &mut Verdicts) {
    let pairs = pairs(samples);
    if pairs.is_empty() {
        return;
    }
    let name = |at: usize| samples[at].label.clone();
    let detectable = |pair: &Pair| {
        pair.ratio.minimum_detectable(pairs.len()).map(|difference| difference * 100.0)
    };
    let all = pairs.iter().map(|pair| RowsCompared {
        a: name(pair.a),
        b: name(pair.b),
        ratio: pair.ratio.value,
        ci95: pair.ratio.ci95,
        p_holm: pair.p,
        would_have_been_seen_percent: detectable(pair),
    });
    let all = all.collect();
    let alike: Vec<&Pair> = pairs.iter().filter(|pair| pair.p > BY_CHANCE).collect();
    let mean = |sample: &&Sample| mean_ci95(&sample.values).mean.unwrap_or(f64::NEG_INFINITY);
    let means: Vec<f64> = samples.iter().map(mean).collect();
    let best = (0..means.len()).max_by(|a, b| means[*a].total_cmp(&means[*b])).unwrap_or(0);
    let beside: Vec<&Pair> =
        alike.iter().copied().filter(|pair| pair.a == best || pair.b == best).collect();
    let group = rows_of(beside.iter().copied());
    let (within, others): (Vec<&Pair>, Vec<&Pair>) =
        alike.iter().partition(|pair| group.contains(&pair.a) && group.contains(&pair.b));
    let some_differ = within.len() < group.len() * group.len().saturating_sub(1) / 2;
    let rows = if alike.is_empty() { (0..samples.len()).collect() } else { group };
    let compared = Compared {
        rows: rows.into_iter().map(name).collect(),
        pairs: all,
        highest: some_differ.then(|| name(best)),
        detectable_percent: beside
            .iter()
            .filter_map(|pair| detectable(pair))
            .reduce(f64::max)
            .filter(|percent| percent.is_finite()),
        others: others.iter().map(|pair| [name(pair.a), name(pair.b)]).collect(),
    };
    let kind = RepeatsKind::Compared(compared);
    if alike.is_empty() {
        verdicts.right(lines, kind);
    } else {
        let lines = lines_of(rows_of(alike).into_iter().map(|at| samples[at]));
        verdicts.report(Warning, Certain, lines, kind);
    }
}
