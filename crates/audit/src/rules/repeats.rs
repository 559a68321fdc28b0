//! What repeats can show, and what a single measurement cannot.

use pgdyno_stats::{CONFIDENCE, Trend, holm, mean_ci95, ratio, share_of_orders_with_trend, trend};
use serde_json::{Value, json};

use super::rule::{Rule, Verdicts, exact, number};
use super::tables::joined;
use crate::finding::{Confidence, Severity};
use crate::recognise::{Evidence, Meaning, numbered};

/// What chance does no more often than this is told from it.
const BY_CHANCE: f64 = 1.0 - CONFIDENCE;

/// Two-sided p-value up to which a row is counted as one that rises or falls: one of twenty orders
/// either way. Four repeats, the fewest that are judged, reach it when all rise or all fall (2 of
/// 24 orders).
const STEADY: f64 = 0.1;

/// Rows together are judged in two ways: how many rise or fall, and how steadily the steadiest
/// does. Each may err in half as many reports.
const EACH_WAY: f64 = BY_CHANCE / 2.0;

/// They are no chance where such rows would be found in less than one of a hundred reports.
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
    sets.push(sysbench_samples(evidence));
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

fn sysbench_samples(evidence: &Evidence) -> Vec<Sample> {
    let runs = &evidence.recognised.sysbench;
    let samples = evidence.sysbench_groups.iter().filter_map(|group| {
        let rates: Vec<_> = group.iter().filter_map(|i| runs[*i].per_second).collect();
        let first = &runs[*group.first()?];
        (!rates.is_empty()).then(|| Sample {
            label: format!("sysbench, line {}", first.line),
            lines: rates.iter().map(|f| f.line).collect(),
            values: rates.iter().map(|f| f.value).collect(),
        })
    });
    samples.collect()
}

fn one_repeat(evidence: &Evidence, verdicts: &mut Verdicts) {
    for table in &evidence.recognised.tables {
        if table.meaning == Meaning::Unknown {
            unknown_repeats(table, evidence.said.repeats, verdicts);
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
            verdicts.found(Severity::Warning, Confidence::Certain, &[row.line], message, computed);
        }
    }
    single_runs(evidence, verdicts);
    let sysbench = sysbench_samples(evidence);
    let single: Vec<&Sample> =
        sysbench.iter().filter(|s| s.values.windows(2).all(|p| p[0] == p[1])).collect();
    if !single.is_empty() {
        let lines: Vec<usize> = single.iter().flat_map(|s| s.lines.clone()).collect();
        let runs = if single.len() == 1 {
            "1 run of sysbench, n = 1".to_owned()
        } else {
            format!("{} runs of sysbench, n = 1 each", single.len())
        };
        let computed = json!({ "runs": single.len(), "tps": single.iter().map(|s| s.values[0]).collect::<Vec<_>>() });
        let sure = if single.len() == 1 { Confidence::Certain } else { Confidence::Likely };
        verdicts.found(
            Severity::Warning,
            sure,
            &lines,
            format!("{runs}: no spread, so no interval"),
            computed,
        );
    }
}

/// A table of which nobody says what was repeated.
fn unknown_repeats(
    table: &crate::recognise::Table,
    said_at: Option<usize>,
    verdicts: &mut Verdicts,
) {
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
        let message =
            "means of a number of repeats that is not said, without a spread: no interval can be had"
                .to_owned();
        verdicts.found(Severity::Note, Confidence::Likely, &lines, message, computed);
    } else if let Some(line) = said_at {
        let message = "figures are of several measurements by what is said".to_owned();
        verdicts.right(&[line, table.line], message, computed);
    } else if (times || table.has_tps_column()) && !table.summarised {
        let rows =
            if rows.len() == 1 { "1 row".to_owned() } else { format!("{} rows", rows.len()) };
        let what = if times { "times" } else { "tps" };
        let message = format!(
            "{rows} of {what}, and no word of repeats: each figure seems to be n = 1, so no interval can be had, and differences cannot be told from noise"
        );
        verdicts.found(Severity::Warning, Confidence::Likely, &lines, message, computed);
    }
}

fn single_runs(evidence: &Evidence, verdicts: &mut Verdicts) {
    let all = run_samples(evidence);
    let single: Vec<&Sample> =
        all.iter().filter(|s| s.values.windows(2).all(|p| p[0] == p[1])).collect();
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
    let sure = if recur { Confidence::Likely } else { Confidence::Certain };
    verdicts.found(Severity::Warning, sure, &lines, message, computed);
}

/// The rows of a table that rise or fall, and by how little chance.
struct Rising<'a> {
    /// Each with a two-sided p-value of at most [`STEADY`].
    rows: Vec<(&'a Sample, Trend)>,
    /// Rows of four repeats or more (count).
    tested: usize,
    /// The chance of so many such rows.
    so_many: f64,
    /// A bound for the chance that the steadiest of the tested rows is so steady (Bonferroni).
    so_steadily: f64,
}

impl<'a> Rising<'a> {
    fn of(tested: &[&'a Sample]) -> Self {
        let trends: Vec<(&Sample, Trend)> =
            tested.iter().filter_map(|s| Some((*s, trend(&s.values)?))).collect();
        let least = trends.iter().map(|(_, t)| t.chance).fold(1.0, f64::min);
        let rows: Vec<_> = trends.into_iter().filter(|(_, t)| t.chance <= STEADY).collect();
        // A few repeats have few orders, so that a row is counted by chance less often than at the
        // level.
        let chances: Vec<f64> =
            tested.iter().map(|s| share_of_orders_with_trend(&s.values, STEADY)).collect();
        Self {
            so_many: at_least(rows.len(), &chances),
            so_steadily: (least * tested.len().max(1) as f64).min(1.0),
            rows,
            tested: tested.len(),
        }
    }

    fn is_significant(&self) -> bool {
        self.so_many.min(self.so_steadily) <= EACH_WAY
    }

    fn message(&self) -> String {
        let names = self.rows.iter().map(|(s, t)| {
            let way = if t.rising { "rises" } else { "falls" };
            format!(
                "`{}` {way} ({}; by chance in {:.1}% of orders, up or down)",
                s.label,
                joined(&s.values),
                t.chance * 100.0
            )
        });
        let names = names.collect::<Vec<_>>().join(", ");
        let (what, chance) = if self.so_many <= self.so_steadily {
            ("so many do", self.so_many)
        } else {
            ("one does so as steadily", self.so_steadily)
        };
        format!(
            "{} of {} rows rise or fall over their repeats, as warm-up or drift makes them: {names}; {what} by chance in 1 of {} such reports",
            self.rows.len(),
            self.tested,
            number((1.0 / chance).round())
        )
    }
}

fn rising(evidence: &Evidence, verdicts: &mut Verdicts) {
    for set in sets(evidence) {
        let tested: Vec<&Sample> = set.iter().filter(|s| s.values.len() >= 4).collect();
        let lines: Vec<usize> = tested.iter().flat_map(|s| s.lines.clone()).collect();
        let found = Rising::of(&tested);
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
            let sure = if likely { Confidence::Likely } else { Confidence::Possible };
            let lines: Vec<usize> = found.rows.iter().flat_map(|(s, _)| s.lines.clone()).collect();
            verdicts.found(Severity::Warning, sure, &lines, found.message(), computed);
        } else if !tested.is_empty() {
            let message = format!(
                "{} rows of four repeats or more: no more rise or fall than by chance",
                tested.len()
            );
            verdicts.right(&lines, message, computed);
        }
    }
}

/// The chance of at least `hits` in independent trials of these chances.
fn at_least(hits: usize, chances: &[f64]) -> f64 {
    // Of 0, 1, 2, … hits.
    let mut exactly = vec![1.0];
    for chance in chances {
        let mut next = vec![0.0; exactly.len() + 1];
        for (i, share) in exactly.iter().enumerate() {
            next[i] += share * (1.0 - chance);
            next[i + 1] += share * chance;
        }
        exactly = next;
    }
    exactly.iter().skip(hits).sum::<f64>().clamp(0.0, 1.0)
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
            verdicts.found(
                Severity::Note,
                Confidence::Certain,
                &lines,
                message,
                json!({ "rows": samples.len() }),
            );
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

/// Two rows and their ratio.
struct Pair {
    a: usize,
    b: usize,
    ratio: pgdyno_stats::Ratio,
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
            "p_holm": p, "would_have_been_seen_percent": pair.ratio.minimum_detectable(pairs.len()).map(|d| d * 100.0),
        })
    };
    let all: Vec<Value> =
        pairs.iter().zip(p.iter().copied()).map(|(pair, p)| shown(pair, p)).collect();
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
        let least = beside
            .iter()
            .filter_map(|(pair, _)| pair.ratio.minimum_detectable(pairs.len()))
            .fold(f64::NAN, f64::max);
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
    verdicts.found(Severity::Warning, Confidence::Certain, &lines, sentences.join("; "), computed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rising(rows: &[Sample]) -> (f64, bool) {
        let rows: Vec<&Sample> = rows.iter().collect();
        let found = Rising::of(&rows);
        (found.so_many, found.is_significant())
    }

    fn row(values: Vec<f64>) -> Sample {
        Sample { label: String::new(), lines: vec![1], values }
    }

    #[test]
    fn three_of_five_rows_of_four_repeats_rise_or_fall_in_1_of_197_reports_as_counted() {
        // Each row does in 2 of 24 orders. At least three of five: (10 × 11² + 5 × 11 + 1) / 12⁵.
        let counted = 1266.0 / 248_832.0;
        let still = || row(vec![3.0, 1.0, 4.0, 2.0]);
        let falling = || row(vec![4.0, 3.0, 2.0, 1.0]);
        let rows = [falling(), still(), row(vec![1.0, 2.0, 3.0, 4.0]), still(), falling()];
        let (so_many, significant) = rising(&rows);
        assert!((so_many - counted).abs() < 1e-12 && significant, "{so_many}");

        let mut random = fastrand::Rng::with_seed(31);
        let mut drawn =
            || (0..5).map(|_| row((0..4).map(|_| random.f64()).collect())).collect::<Vec<_>>();
        let times = 100_000;
        let found = (0..times).filter(|_| rising(&drawn()).0 <= counted + 1e-9).count();
        // 509 of 100,000 are expected, with a standard error of 22.
        assert!((440..=580).contains(&found), "{found} of {times}");
    }

    #[test]
    fn of_reports_whose_rows_are_steady_at_most_5_in_100_are_told_otherwise() {
        let mut random = fastrand::Rng::with_seed(32);
        for (rows, repeats) in [(1, 4), (1, 8), (5, 4), (16, 5), (40, 10)] {
            let found = (0..1000)
                .filter(|_| {
                    let drawn = |_| row((0..repeats).map(|_| random.f64()).collect());
                    rising(&(0..rows).map(drawn).collect::<Vec<_>>()).1
                })
                .count();
            eprintln!("falsely rising, {rows} rows of {repeats}: {found} of 1000");
            assert!(found <= 65, "{rows} rows of {repeats}: {found} of 1000");
        }
    }

    #[test]
    fn one_row_that_rises_for_long_is_enough_and_one_of_four_repeats_is_not() {
        assert!(rising(&[row((0..8).map(f64::from).collect())]).1);
        assert!(!rising(&[row((0..4).map(f64::from).collect())]).1);
    }
}
