//! What repeats can show, and what a single measurement cannot.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_stats::{holm, mean_ci95, ratio};
use serde_json::{Value, json};

use super::rising::{BY_CHANCE, Rising, Sample, TOGETHER, are_equal};
use super::rule::{Rule, Verdicts, exact, number};
use super::tables::joined;
use crate::finding::Confidence::{Certain, Likely, Possible};
use crate::finding::Severity::{Note, Warning};
use crate::recognise::{Evidence, Meaning, numbered};
use crate::words::{self, Words};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "one-repeat",
        looks_for: "one measurement, or equal ones, of which no spread and no interval can be had",
        source: "docs/statistics.md",
        judge: one_repeat,
    },
    Rule {
        name: "rising-repeats",
        looks_for: "four repeats or more that rise (warm-up) or fall: so many such rows, or one so steadily, as chance makes in at most 1 of 40 reports, up or down",
        source: "H. B. Mann, Nonparametric tests against trend, Econometrica 13 (1945)",
        judge: rising,
    },
    Rule {
        name: "told-apart",
        looks_for: "rows that cannot be told from the highest by Welch's t test on logarithms, all pairs judged together by Holm's rule at 5%",
        source: "docs/statistics.md",
        judge: told_apart,
    },
];

/// What is compared with each other: the rows of a table that have one unit, the runs of a report.
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
    sets.push(run_samples(evidence));
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

fn run_samples(evidence: &Evidence) -> Vec<Sample> {
    let runs = &evidence.recognised.runs;
    let samples = evidence.groups.iter().filter_map(|group| {
        let tps: Vec<_> = group.iter().filter_map(|i| runs[*i].tps_connected()).collect();
        let first = &runs[*group.first()?];
        let place = format!("line {}", first.line);
        let label = first.label.as_ref().map_or(place.clone(), |label| format!("{label}, {place}"));
        Sample::of_runs(label, &tps)
    });
    samples.collect()
}

fn sysbench_samples(evidence: &Evidence) -> Vec<Sample> {
    let runs = &evidence.recognised.sysbench;
    let samples = evidence.sysbench_groups.iter().filter_map(|group| {
        let rates: Vec<_> = group.iter().filter_map(|i| runs[*i].per_second).collect();
        let first = &runs[*group.first()?];
        Sample::of_runs(format!("sysbench, line {}", first.line), &rates)
    });
    samples.collect()
}

fn one_repeat(evidence: &Evidence, verdicts: &mut Verdicts) {
    for table in &evidence.recognised.tables {
        if table.meaning == Meaning::Unknown {
            unknown_repeats(table, verdicts);
            continue;
        }
        for row in table.rows.iter().filter(|r| !r.repeats.is_empty()) {
            let values = row.values();
            // A mean beside a single value is the value once more.
            let shown: Vec<f64> = values
                .iter()
                .copied()
                .chain(row.mean.map(|m| m.value).filter(|_| values.len() == 1))
                .collect();
            if !are_equal(&values) {
                continue;
            }
            let message = match shown.len() {
                1 => format!(
                    "`{}`: n = 1 ({}): no spread, so no interval",
                    row.label,
                    joined(&shown)
                ),
                n => format!(
                    "`{}`: n = 1 in effect: {n} equal values ({}), of which no spread and no interval can be had",
                    row.label,
                    joined(&shown)
                ),
            };
            let computed = json!({ "row": row.label, "n_in_effect": 1, "equal_values": shown });
            verdicts.found(Warning, Certain, &[row.line], message, computed);
        }
    }
    single_runs(evidence, verdicts);
    let sysbench = sysbench_samples(evidence);
    let single: Vec<&Sample> = sysbench.iter().filter(|s| are_equal(&s.values)).collect();
    if !single.is_empty() {
        let lines: Vec<usize> = single.iter().flat_map(|s| s.lines.clone()).collect();
        let runs = if single.len() == 1 {
            "1 run of sysbench, n = 1".to_owned()
        } else {
            format!("{} runs of sysbench, n = 1 each", single.len())
        };
        let computed = json!({ "runs": single.len(), "tps": single.iter().map(|s| s.values[0]).collect::<Vec<_>>() });
        let sure = if single.len() == 1 { Certain } else { Likely };
        verdicts.found(
            Warning,
            sure,
            &lines,
            format!("{runs}: no spread, so no interval"),
            computed,
        );
    }
}

/// A table of which nobody says what was repeated.
fn unknown_repeats(table: &crate::recognise::Table, verdicts: &mut Verdicts) {
    let rows: Vec<_> = table
        .rows
        .iter()
        .filter(|r| !r.has_spread && (r.mean.is_some() || !r.others.is_empty()))
        .collect();
    let lines: Vec<usize> = rows.iter().map(|r| r.line).collect();
    // Rows that only count may be repeats.
    let times = !table.tps && table.has_time_column();
    // A single row of times compares nothing.
    if !(table.tps || times && rows.len() >= 2)
        || rows.is_empty()
        || numbered(table.rows.iter().map(|r| r.label.as_str()))
    {
        return;
    }
    let computed = json!({ "rows": rows.len() });
    if rows.iter().all(|r| r.mean.is_some()) {
        let message = "means of a number of repeats that is not said, without a spread: no interval can be had";
        verdicts.found(Note, Likely, &lines, message, computed);
    } else if (times || table.has_tps_column()) && !table.summarised {
        let rows =
            if rows.len() == 1 { "1 row".to_owned() } else { format!("{} rows", rows.len()) };
        let what = if times { "times" } else { "tps" };
        let message = format!(
            "{rows} of {what} with one figure each and no spread: no interval can be had, and differences cannot be told from noise"
        );
        verdicts.found(Warning, Likely, &lines, message, computed);
    }
}

fn single_runs(evidence: &Evidence, verdicts: &mut Verdicts) {
    let all = run_samples(evidence);
    let single: Vec<&Sample> = all.iter().filter(|s| are_equal(&s.values)).collect();
    let lines: Vec<usize> = single.iter().flat_map(|s| s.lines.clone()).collect();
    let (count, runs) = (single.len(), &evidence.recognised.runs);
    if count == 0 {
        return;
    }
    let mut computed =
        json!({ "runs": count, "tps": single.iter().map(|s| s.values[0]).collect::<Vec<_>>() });
    let mut parameters: Vec<String> =
        runs.iter().map(crate::recognise::PgbenchRun::parameters).collect();
    parameters.sort();
    let alike = are_equal(&parameters);
    let ratio = match single.as_slice() {
        [a, b] if alike && b.values[0] > 0.0 => {
            let ratio = a.values[0] / b.values[0];
            computed["ratio"] = json!(ratio);
            format!(
                "; the ratio {} ÷ {} = {} rests on one run of each",
                exact(a.values[0]),
                exact(b.values[0]),
                exact(ratio)
            )
        }
        _ => String::new(),
    };
    let runs_word = if count == 1 {
        "1 run of pgbench, n = 1".to_owned()
    } else {
        format!("{count} runs of pgbench, n = 1 each")
    };
    let message = format!("{runs_word}: no spread, so no interval{ratio}");
    // Where parameters recur, text between the runs is all that says that they are not repeats.
    let recur = parameters.windows(2).any(|pair| pair[0] == pair[1]);
    let sure = if recur { Likely } else { Certain };
    verdicts.found(Warning, sure, &lines, message, computed);
}

fn rising(evidence: &Evidence, verdicts: &mut Verdicts) {
    for set in sets(evidence) {
        let tested: Vec<&Sample> = set.iter().filter(|s| s.values.len() >= 4).collect();
        let lines: Vec<usize> = tested.iter().flat_map(|s| s.lines.clone()).collect();
        let found = Rising::among(&tested);
        let rows: Vec<Value> = found
            .rows
            .iter()
            .map(|(s, t)| json!({ "row": s.label, "rising": t.rising, "values": s.values, "chance": t.chance }))
            .collect();
        let computed = json!({
            "rows": rows, "tested": found.tested, "chance_of_so_many": found.so_many,
            "chance_of_one_so_steady": found.so_steadily,
        });
        if found.is_significant() {
            let likely = found.so_many.min(found.so_steadily) <= TOGETHER;
            let sure = if likely { Likely } else { Possible };
            let lines: Vec<usize> = found.rows.iter().flat_map(|(s, _)| s.lines.clone()).collect();
            verdicts.found(Warning, sure, &lines, found.message(), computed);
        } else if !tested.is_empty() {
            let message = format!(
                "{} rows of four repeats or more: no more rise or fall than by chance",
                tested.len()
            );
            verdicts.right(&lines, message, computed);
        }
    }
}

/// More rows than these make more pairs than anyone reads.
const MOST_ROWS: usize = 60;

/// More intervals than these are only in `computed`.
const SAID: usize = 12;

fn told_apart(evidence: &Evidence, verdicts: &mut Verdicts) {
    for set in sets(evidence) {
        let samples: Vec<&Sample> = set.iter().filter(|s| s.values.len() >= 2).collect();
        let lines: Vec<usize> = samples.iter().flat_map(|s| s.lines.clone()).collect();
        if !samples.is_empty() {
            let rows: Vec<Value> = samples.iter().map(|s| interval(s)).collect();
            let mut words: Vec<String> =
                samples.iter().take(SAID).map(|s| interval_words(s)).collect();
            if let Some(more) = samples.len().checked_sub(SAID).filter(|n| *n > 0) {
                words.push(format!("and {more} more"));
            }
            let words = words.join("; ");
            verdicts.right(
                &lines,
                format!("95% intervals of means: {words}"),
                json!({ "intervals": rows }),
            );
        }
        if samples.len() > MOST_ROWS {
            let message =
                format!("{} rows are too many to compare each with each: none was", samples.len());
            verdicts.found(Note, Certain, &lines, message, json!({ "rows": samples.len() }));
        } else if samples.len() >= 2 {
            compare(&samples, &lines, verdicts);
        }
    }
}

fn interval(sample: &Sample) -> Value {
    let e = mean_ci95(&sample.values);
    json!({ "row": sample.label, "n": e.n, "mean": e.mean, "sd": e.sd, "ci95": e.ci95, "why": e.why.map(|why| why.to_string()) })
}

fn interval_words(sample: &Sample) -> String {
    let e = mean_ci95(&sample.values);
    let mean = e.mean.map_or_else(|| "–".to_owned(), number);
    match e.ci95 {
        Some([low, high]) => {
            format!("`{}` {mean} ({}–{}, n = {})", sample.label, number(low), number(high), e.n)
        }
        None => format!(
            "`{}` {mean} ({})",
            sample.label,
            e.why.map_or_else(String::new, |why| why.to_string())
        ),
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
    // Nobody says that the n-th repeats of two rows belong together, so no block is common.
    let values = |at: usize| {
        let first = u32::try_from(at).unwrap_or(u32::MAX / 2).saturating_mul(100_000);
        (first..).zip(samples[at].values.iter().copied()).collect::<Vec<_>>()
    };
    let mut pairs: Vec<Pair> = Vec::new();
    for a in 0..samples.len() {
        for b in a + 1..samples.len() {
            let ratio = ratio(&values(a), &values(b));
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

fn compare(samples: &[&Sample], lines: &[usize], verdicts: &mut Verdicts) {
    let pairs = pairs(samples);
    if pairs.is_empty() {
        return;
    }
    let seen = |pair: &Pair| pair.ratio.minimum_detectable(pairs.len());
    let name = |at: usize| format!("`{}`", samples[at].label);
    let all: Vec<Value> = pairs
        .iter()
        .map(|pair| {
            json!({
                "a": samples[pair.a].label, "b": samples[pair.b].label, "ratio": pair.ratio.value, "ci95": pair.ratio.ci95,
                "p_holm": pair.p, "would_have_been_seen_percent": seen(pair).map(|d| d * 100.0),
            })
        })
        .collect();
    let alike: Vec<&Pair> = pairs.iter().filter(|pair| pair.p > BY_CHANCE).collect();
    if alike.is_empty() {
        let message = format!("{} rows are told apart from each other", samples.len());
        verdicts.right(lines, message, json!({ "pairs": all }));
        return;
    }
    let mean = |at: usize| mean_ci95(&samples[at].values).mean.unwrap_or(f64::NEG_INFINITY);
    let best = (0..samples.len()).max_by(|a, b| mean(*a).total_cmp(&mean(*b))).unwrap_or(0);
    let beside: Vec<&Pair> =
        alike.iter().copied().filter(|pair| pair.a == best || pair.b == best).collect();
    let group = rows_of(beside.iter().copied());
    let (within, others): (Vec<&Pair>, Vec<&Pair>) =
        alike.iter().partition(|pair| group.contains(&pair.a) && group.contains(&pair.b));
    let mut sentences = Vec::new();
    if !group.is_empty() {
        let names = group.iter().map(|at| name(*at)).collect::<Vec<_>>().join(", ");
        let least = beside.iter().filter_map(|pair| seen(pair)).fold(f64::NAN, f64::max);
        let seen = if least.is_finite() {
            format!("; only a difference over {}% would have been seen", number(least * 100.0))
        } else {
            String::new()
        };
        let how = if within.len() == group.len() * (group.len() - 1) / 2 {
            "from each other".to_owned()
        } else {
            format!("from the highest, {}", name(best))
        };
        sentences.push(format!("{names} cannot be told apart {how}{seen}"));
    }
    if !others.is_empty() {
        let rest = others.iter().map(|pair| format!("{} and {}", name(pair.a), name(pair.b)));
        sentences.push(format!("nor can {}", rest.collect::<Vec<_>>().join(", ")));
    }
    let lines: Vec<usize> =
        rows_of(alike).iter().flat_map(|at| samples[*at].lines.clone()).collect();
    let rows: Vec<&str> = group.iter().map(|at| samples[*at].label.as_str()).collect();
    let computed = json!({ "rows": rows, "pairs": all });
    verdicts.found(Warning, Certain, &lines, sentences.join("; "), computed);
}
