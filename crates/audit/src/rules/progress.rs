//! Whether a run was one thing all along, and whether its transactions were done.

use serde_json::json;

use super::rule::{Rule, Verdicts, exact, number};
use crate::finding::Confidence::Certain;
use crate::finding::Severity::Warning;
use crate::recognise::{Evidence, Progress};

/// Lines are joined to stretches of at least this (seconds): seconds by themselves vary at every
/// checkpoint.
const STRETCH_S: f64 = 5.0;

/// Fewer stretches than these show nothing.
const LEAST: usize = 3;

/// A stretch below this share of the median has collapsed.
const COLLAPSED: f64 = 0.5;

/// The highest stretch over the lowest, the most extreme tenth at each end left out, from which on
/// they swing.
const SWING: f64 = 1.5;

/// The last over the first, or less than one over this, where every stretch goes the same way.
const CLIMB: f64 = 1.3;

/// Fewer transactions in a stretch vary by chance.
const COUNTED: f64 = 100.0;

/// A share of failures that is large.
const FAILED: f64 = 0.05;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "unsteady-progress",
        looks_for: "progress lines, joined to stretches of 5 s, of which one is below half the median, all rise or fall by 30% or more, or the \
                    highest is 1.5 times the lowest (without the most extreme tenths)",
        source: "docs/statistics.md, warm-up and changes",
        judge: unsteady,
    },
    Rule {
        name: "failed-transactions",
        looks_for: "5% or more of transactions that failed (sysbench: ignored errors), or of clients that were aborted",
        source: "pgbench documentation, Failures and Serialization/Deadlock Retries; sysbench, ignored errors",
        judge: failed,
    },
];

/// A stretch of a run: its first line, its mean tps, how long it was (seconds).
struct Stretch {
    line: usize,
    tps: f64,
    length_s: f64,
}

/// The lines as stretches, the last one short or not.
fn stretches(progress: &[Progress]) -> Vec<Stretch> {
    let mut steps: Vec<f64> =
        progress.windows(2).map(|pair| pair[1].at_s.value - pair[0].at_s.value).collect();
    steps.sort_by(f64::total_cmp);
    let Some(step) = steps.get(steps.len() / 2).copied().filter(|step| *step > 0.0) else {
        return Vec::new();
    };
    let mut found: Vec<Stretch> = Vec::new();
    let mut before: Option<f64> = None;
    for point in progress {
        let at = point.at_s.value;
        // Lines that were left out, or that go back, part stretches.
        let follows = before.is_some_and(|b| at - b > 0.0 && at - b < 1.5 * step);
        match found.last_mut() {
            Some(open) if follows && open.length_s + step / 2.0 < STRETCH_S => {
                open.tps =
                    (open.tps * open.length_s + point.tps.value * step) / (open.length_s + step);
                open.length_s += step;
            }
            _ => found.push(Stretch { line: point.tps.line, tps: point.tps.value, length_s: step }),
        }
        before = Some(at);
    }
    found.retain(|stretch| stretch.length_s + step / 2.0 >= STRETCH_S);
    found
}

fn unsteady(evidence: &Evidence, verdicts: &mut Verdicts) {
    let runs = evidence.measured_runs().map(|r| &r.progress);
    let runs = runs.chain(evidence.recognised.sysbench.iter().map(|r| &r.progress));
    for progress in runs {
        let stretches = stretches(progress);
        let mut sorted: Vec<f64> = stretches.iter().map(|s| s.tps).collect();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        let counted = stretches.first().is_some_and(|s| median * s.length_s >= COUNTED);
        let [first, .., last] = stretches.as_slice() else { continue };
        if stretches.len() < LEAST || !counted {
            continue;
        }
        let all: Vec<usize> = stretches.iter().map(|s| s.line).collect();
        let low: Vec<&Stretch> = stretches.iter().filter(|s| s.tps < COLLAPSED * median).collect();
        let rises = stretches.windows(2).all(|pair| pair[1].tps > pair[0].tps);
        let falls = stretches.windows(2).all(|pair| pair[1].tps < pair[0].tps);
        let tenth = sorted.len() / 10;
        let swing = sorted[sorted.len() - 1 - tenth] / sorted[tenth].max(f64::MIN_POSITIVE);
        let climb = last.tps / first.tps.max(f64::MIN_POSITIVE);
        let computed = json!({ "stretches": sorted.len(), "median_tps": median, "lowest_tps": sorted[0], "highest_tps": sorted[sorted.len() - 1] });
        let range = format!("{} to {} tps", exact(first.tps), exact(last.tps));
        let (lines, what) = if let Some(lowest) = low.iter().min_by(|a, b| a.tps.total_cmp(&b.tps))
        {
            let lines: Vec<usize> = low.iter().map(|s| s.line).collect();
            (
                lines,
                format!(
                    "{} of {} stretches are below half the median: {} of {} tps",
                    low.len(),
                    sorted.len(),
                    exact(lowest.tps),
                    exact(median)
                ),
            )
        } else if falls && climb * CLIMB <= 1.0 {
            (all, format!("tps falls all along, {range}"))
        } else if rises && climb >= CLIMB {
            (all, format!("tps rises all along, {range}"))
        } else if swing >= SWING {
            (
                all,
                format!(
                    "tps swings between {} and {}",
                    exact(sorted[tenth]),
                    exact(sorted[sorted.len() - 1 - tenth])
                ),
            )
        } else {
            verdicts.right(
                &all,
                format!("{} stretches of progress are steady", sorted.len()),
                computed,
            );
            continue;
        };
        let message = format!(
            "{what}: the run is not one steady thing, so its mean depends on when it began and ended"
        );
        verdicts.found(Warning, Certain, &lines, message, computed);
    }
}

fn failed(evidence: &Evidence, verdicts: &mut Verdicts) {
    let mut judge = |failed: f64, whole: f64, lines: &[usize], what: &str| {
        let share = if whole > 0.0 { failed / whole } else { 0.0 };
        let computed = json!({ "failed": failed, "of": whole, "percent": share * 100.0 });
        if share >= FAILED {
            let message = format!(
                "{} of {} {what} ({}%): what is left of the load is measured, and not the one that was asked for",
                exact(failed),
                exact(whole),
                number(share * 100.0)
            );
            verdicts.found(Warning, Certain, lines, message, computed);
        } else {
            verdicts.right(lines, format!("{failed} of {whole} {what}"), computed);
        }
    };
    let mut from = 0;
    for run in &evidence.recognised.runs {
        let aborted: Vec<usize> =
            evidence.aborted.iter().copied().filter(|l| *l > from && *l < run.line).collect();
        if let (Some(clients), [first, ..]) = (run.clients, aborted.as_slice()) {
            let near = run.line - first < aborted.len() + 30;
            if near && aborted.len() as f64 <= clients.value {
                judge(aborted.len() as f64, clients.value, &aborted, "clients were aborted");
            }
        }
        from = run.last_line;
        if let (Some(failed), Some(done)) = (run.failed, run.transactions) {
            judge(
                failed.value,
                failed.value + done.value,
                &[failed.line, done.line],
                "transactions failed",
            );
        }
    }
    for run in &evidence.recognised.sysbench {
        if let (Some(errors), Some(done)) = (run.errors, run.transactions) {
            judge(
                errors.value,
                errors.value + done.value,
                &[errors.line, done.line],
                "transactions failed with errors that were ignored",
            );
        }
    }
}
