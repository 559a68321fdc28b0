//! What repeats can show, and what a single measurement cannot.

use serde_json::{Value, json};

use super::tables::joined;
use super::{Rule, Verdicts, exact, number};
use crate::audit::recognise::{Evidence, numbered};
use crate::audit::{Meaning, Severity, Sure};
use crate::stats::{CONFIDENCE, holm, mean_ci95, ratio, trend};

/// As surely as this, repeats that rise do not by chance.
const BY_CHANCE: f64 = 1.0 - CONFIDENCE;

/// Several rows that rise are no chance where this many such would rise less often than in one of a hundred reports.
const TOGETHER: f64 = 0.01;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "one-repeat",
        looks_for: "one measurement, or equal ones, of which no spread and no interval can be had",
        source: "docs/statistics.md",
        judge: one_repeat,
    },
    Rule {
        name: "rising-repeats",
        looks_for: "repeats that rise (warm-up) or fall as steadily as one of twenty orders or fewer do",
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

/// The repeats of one thing.
struct Sample {
    label: String,
    lines: Vec<usize>,
    values: Vec<f64>,
}

/// What is compared with each other: the rows of a table, the runs of a report.
fn sets(evidence: &Evidence) -> Vec<Vec<Sample>> {
    let known = evidence.recognised.tables.iter().filter(|t| t.meaning != Meaning::Unknown);
    let mut sets: Vec<Vec<Sample>> = known
        .map(|table| {
            let rows = table.rows.iter().filter(|r| !r.repeats.is_empty());
            rows.map(|r| Sample {
                label: r.label.clone(),
                lines: vec![r.line],
                values: r.repeats.iter().map(|f| f.value).collect(),
            })
            .collect()
        })
        .collect();
    sets.push(run_samples(evidence));
    sets.retain(|set| !set.is_empty());
    sets
}

fn run_samples(evidence: &Evidence) -> Vec<Sample> {
    let runs = &evidence.recognised.runs;
    let samples = evidence.groups.iter().filter_map(|group| {
        let tps: Vec<_> = group.iter().filter_map(|i| runs[*i].tps_connected()).collect();
        let first = &runs[*group.first()?];
        let place = format!("line {}", first.line);
        let label = first.label.as_ref().map_or(place.clone(), |label| format!("{label}, {place}"));
        (!tps.is_empty()).then(|| Sample {
            label,
            lines: tps.iter().map(|f| f.line).collect(),
            values: tps.iter().map(|f| f.value).collect(),
        })
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
            let values: Vec<f64> = row.repeats.iter().map(|f| f.value).collect();
            // A mean beside a single value is the value once more.
            let shown: Vec<f64> = values
                .iter()
                .copied()
                .chain(row.mean.map(|m| m.value).filter(|_| values.len() == 1))
                .collect();
            let equal = values.windows(2).all(|pair| pair[0] == pair[1]);
            if !equal {
                continue;
            }
            let message = match shown.len() {
                1 => format!("`{}`: n = 1 ({}): no spread, so no interval", row.label, joined(&shown)),
                n => format!(
                    "`{}`: n = 1 in effect: {n} equal values ({}), of which no spread and no interval can be had",
                    row.label,
                    joined(&shown)
                ),
            };
            let computed = json!({ "row": row.label, "n_in_effect": 1, "equal_values": shown });
            verdicts.found(Severity::Warning, Sure::Certain, &[row.line], message, computed);
        }
    }
    single_runs(evidence, verdicts);
}

/// A table of which nobody says what was repeated.
fn unknown_repeats(table: &crate::audit::Table, verdicts: &mut Verdicts) {
    let rows: Vec<_> =
        table.rows.iter().filter(|r| !r.has_spread && (r.mean.is_some() || !r.others.is_empty())).collect();
    let lines: Vec<usize> = rows.iter().map(|r| r.line).collect();
    // Rows that only count may be repeats.
    if !table.tps || rows.is_empty() || numbered(table.rows.iter().map(|r| r.label.as_str())) {
        return;
    }
    let computed = json!({ "rows": rows.len() });
    if rows.iter().all(|r| r.mean.is_some()) {
        let message =
            "means of a number of repeats that is not said, without a spread: no interval can be had"
                .to_owned();
        verdicts.found(Severity::Note, Sure::Likely, &lines, message, computed);
    } else if table.has_tps_column() && !table.summarised {
        let rows = if rows.len() == 1 { "1 row".to_owned() } else { format!("{} rows", rows.len()) };
        let message = format!(
            "{rows} of tps, and no word of repeats: each figure seems to be n = 1, so no interval can be had, and differences cannot be told from noise"
        );
        verdicts.found(Severity::Warning, Sure::Likely, &lines, message, computed);
    }
}

fn single_runs(evidence: &Evidence, verdicts: &mut Verdicts) {
    let all = run_samples(evidence);
    let single: Vec<&Sample> = all.iter().filter(|s| s.values.windows(2).all(|p| p[0] == p[1])).collect();
    let lines: Vec<usize> = single.iter().flat_map(|s| s.lines.clone()).collect();
    let (count, runs) = (single.len(), &evidence.recognised.runs);
    if count == 0 {
        return;
    }
    let mut computed =
        json!({ "runs": count, "tps": single.iter().map(|s| s.values[0]).collect::<Vec<_>>() });
    let mut parameters: Vec<String> = runs.iter().map(crate::audit::PgbenchRun::parameters).collect();
    parameters.sort();
    let alike = parameters.windows(2).all(|pair| pair[0] == pair[1]);
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
    let sure = if recur { Sure::Likely } else { Sure::Certain };
    verdicts.found(Severity::Warning, sure, &lines, message, computed);
}

fn rising(evidence: &Evidence, verdicts: &mut Verdicts) {
    for set in sets(evidence) {
        let tested: Vec<_> = set.iter().filter(|s| s.values.len() >= 4).collect();
        let trends: Vec<_> = tested.iter().filter_map(|s| Some((s, trend(&s.values)?))).collect();
        let steady: Vec<_> = trends.iter().filter(|(_, t)| t.chance <= BY_CHANCE).collect();
        let lines: Vec<usize> = tested.iter().flat_map(|s| s.lines.clone()).collect();
        if steady.is_empty() {
            if !tested.is_empty() {
                verdicts.right(
                    &lines,
                    format!("{} rows of four repeats or more neither rise nor fall steadily", tested.len()),
                    json!({}),
                );
            }
            continue;
        }
        let together = at_least(steady.len(), tested.len(), BY_CHANCE);
        let rows: Vec<Value> = steady
            .iter()
            .map(|(s, t)| json!({ "row": s.label, "rising": t.rising, "values": s.values, "chance": t.chance }))
            .collect();
        let names = steady.iter().map(|(s, t)| {
            let way = if t.rising { "rises" } else { "falls" };
            format!(
                "`{}` {way} ({}; by chance in {:.1}% of orders)",
                s.label,
                joined(&s.values),
                t.chance * 100.0
            )
        });
        let message = format!(
            "{} of {} rows rise or fall over their repeats, as warm-up or drift makes them: {}; so many do by chance in 1 of {} such reports",
            steady.len(),
            tested.len(),
            names.collect::<Vec<_>>().join(", "),
            number((1.0 / together).round())
        );
        let sure = if together <= TOGETHER { Sure::Likely } else { Sure::Possible };
        let lines: Vec<usize> = steady.iter().flat_map(|(s, _)| s.lines.clone()).collect();
        let computed = json!({ "rows": rows, "tested": tested.len(), "chance_of_so_many": together });
        verdicts.found(Severity::Warning, sure, &lines, message, computed);
    }
}

/// The chance of at least `hits` in `of` independent trials of chance `p`.
fn at_least(hits: usize, of: usize, p: f64) -> f64 {
    let mut chance = 0.0;
    let mut exactly = (1.0 - p).powi(i32::try_from(of).unwrap_or(i32::MAX));
    for k in 0..hits.min(of + 1) {
        chance += exactly;
        exactly *= (of - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
    }
    (1.0 - chance).clamp(0.0, 1.0)
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
            let mut words: Vec<String> = samples.iter().take(SAID).map(|s| interval_words(s)).collect();
            if let Some(more) = samples.len().checked_sub(SAID).filter(|n| *n > 0) {
                words.push(format!("and {more} more"));
            }
            let words = words.join("; ");
            verdicts.right(&lines, format!("95% intervals of means: {words}"), json!({ "intervals": rows }));
        }
        if samples.len() > MOST_ROWS {
            let message = format!("{} rows are too many to compare each with each: none was", samples.len());
            verdicts.found(Severity::Note, Sure::Certain, &lines, message, json!({ "rows": samples.len() }));
        } else if samples.len() >= 2 {
            compare(&samples, &lines, verdicts);
        }
    }
}

fn interval(sample: &Sample) -> Value {
    let e = mean_ci95(&sample.values);
    json!({ "row": sample.label, "n": e.n, "mean": e.mean, "sd": e.sd, "ci95": e.ci95, "why": e.why })
}

fn interval_words(sample: &Sample) -> String {
    let e = mean_ci95(&sample.values);
    let mean = e.mean.map_or_else(|| "–".to_owned(), number);
    match e.ci95 {
        Some([low, high]) => {
            format!("`{}` {mean} ({}–{}, n = {})", sample.label, number(low), number(high), e.n)
        }
        None => format!("`{}` {mean} ({})", sample.label, e.why.unwrap_or("no interval")),
    }
}

/// Two rows and their ratio.
struct Pair {
    a: usize,
    b: usize,
    ratio: crate::stats::Ratio,
}

fn compare(samples: &[&Sample], lines: &[usize], verdicts: &mut Verdicts) {
    // Nobody says that the n-th repeats of two rows belong together, so no block is common.
    let values = |at: usize| {
        let first = u32::try_from(at).unwrap_or(u32::MAX / 2).saturating_mul(100_000);
        (first..).zip(samples[at].values.iter().copied()).collect::<Vec<_>>()
    };
    let mut pairs: Vec<Pair> = Vec::new();
    for a in 0..samples.len() {
        for b in a + 1..samples.len() {
            let ratio = ratio(&values(a), &values(b));
            if ratio.p.is_some() {
                pairs.push(Pair { a, b, ratio });
            }
        }
    }
    if pairs.is_empty() {
        return;
    }
    let p = holm(&pairs.iter().map(|pair| pair.ratio.p.unwrap_or(f64::NAN)).collect::<Vec<_>>());
    let alike: Vec<(&Pair, f64)> =
        pairs.iter().zip(p.iter().copied()).filter(|(_, p)| *p > BY_CHANCE).collect();
    let shown = |pair: &Pair, p: f64| {
        json!({
            "a": samples[pair.a].label, "b": samples[pair.b].label, "ratio": pair.ratio.value, "ci95": pair.ratio.ci95,
            "p_holm": p, "would_have_been_seen_percent": pair.ratio.detectable(pairs.len()).map(|d| d * 100.0),
        })
    };
    let all: Vec<Value> = pairs.iter().zip(p.iter().copied()).map(|(pair, p)| shown(pair, p)).collect();
    if alike.is_empty() {
        let message = format!("{} rows are told apart from each other", samples.len());
        verdicts.right(lines, message, json!({ "pairs": all }));
        return;
    }
    let mean = |at: usize| mean_ci95(&samples[at].values).mean.unwrap_or(f64::NEG_INFINITY);
    let best = (0..samples.len()).max_by(|a, b| mean(*a).total_cmp(&mean(*b))).unwrap_or(0);
    let with_best = |pair: &Pair| pair.a == best || pair.b == best;
    let beside: Vec<&(&Pair, f64)> = alike.iter().filter(|(pair, _)| with_best(pair)).collect();
    let name = |at: usize| format!("`{}`", samples[at].label);
    let mut group: Vec<usize> = beside.iter().flat_map(|(pair, _)| [pair.a, pair.b]).collect();
    group.sort_unstable();
    group.dedup();
    let of_group = |pair: &Pair| group.contains(&pair.a) && group.contains(&pair.b);
    let each_other = alike.iter().filter(|(pair, _)| of_group(pair)).count()
        == group.len() * group.len().saturating_sub(1) / 2;
    let mut sentences = Vec::new();
    if !group.is_empty() {
        let names = group.iter().map(|at| name(*at)).collect::<Vec<_>>().join(", ");
        let least =
            beside.iter().filter_map(|(pair, _)| pair.ratio.detectable(pairs.len())).fold(f64::NAN, f64::max);
        let seen = if least.is_finite() {
            format!("; only a difference over {}% would have been seen", number(least * 100.0))
        } else {
            String::new()
        };
        let how = if each_other {
            "from each other".to_owned()
        } else {
            format!("from the highest, {}", name(best))
        };
        sentences.push(format!("{names} cannot be told apart {how}{seen}"));
    }
    let rest: Vec<String> = alike
        .iter()
        .filter(|(pair, _)| !of_group(pair))
        .map(|(pair, _)| format!("{} and {}", name(pair.a), name(pair.b)))
        .collect();
    if !rest.is_empty() {
        sentences.push(format!("nor can {}", rest.join(", ")));
    }
    let mut at: Vec<usize> = alike.iter().flat_map(|(pair, _)| [pair.a, pair.b]).collect();
    at.sort_unstable();
    at.dedup();
    let lines: Vec<usize> = at.iter().flat_map(|at| samples[*at].lines.clone()).collect();
    let rows: Vec<&str> = group.iter().map(|at| samples[*at].label.as_str()).collect();
    let computed = json!({ "rows": rows, "pairs": all });
    verdicts.found(Severity::Warning, Sure::Certain, &lines, sentences.join("; "), computed);
}
