//! Whether a run was one thing all along, and whether its transactions were done.

use super::rule::{AuditRule, Verdicts};
use crate::finding::Confidence::Certain;
use crate::finding::Severity::Warning;
use crate::finding::{Course, DesignKind, Lost};
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

pub(super) const RULES: &[AuditRule] = &[
    AuditRule { name: "unsteady-progress", judge: unsteady },
    AuditRule { name: "failed-transactions", judge: failures },
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
        let [lowest_tps, .., highest_tps] = sorted[..] else { continue };
        let median_tps = sorted[sorted.len() / 2];
        if stretches.len() < LEAST || median_tps * stretches[0].length_s < COUNTED {
            continue;
        }
        let course = course(&stretches, &sorted);
        let is_low = |s: &&Stretch| s.tps < COLLAPSED * median_tps;
        let has_collapsed = matches!(course, Course::Collapsed { .. });
        let told = stretches.iter().filter(|s| !has_collapsed || is_low(s));
        let lines: Vec<usize> = told.map(|s| s.line).collect();
        let fault = (course != Course::Steady).then_some((Warning, Certain));
        let stretches = stretches.len();
        let kind = DesignKind::Progress { course, stretches, median_tps, lowest_tps, highest_tps };
        verdicts.judge(fault, lines, kind);
    }
}

/// The course of three stretches or more, which `sorted` has by their tps.
fn course(stretches: &[Stretch], sorted: &[f64]) -> Course {
    let median = sorted[sorted.len() / 2];
    let low = sorted.iter().filter(|tps| **tps < COLLAPSED * median).count();
    let [first, last] = [&stretches[0], &stretches[stretches.len() - 1]].map(|s| s.tps);
    let climb = last / first.max(f64::MIN_POSITIVE);
    let rises = stretches.windows(2).all(|pair| pair[1].tps > pair[0].tps);
    let falls = stretches.windows(2).all(|pair| pair[1].tps < pair[0].tps);
    let tenth = sorted.len() / 10;
    let [lowest, highest] = [sorted[tenth], sorted[sorted.len() - 1 - tenth]];
    if low > 0 {
        Course::Collapsed { stretches: low }
    } else if falls && climb * CLIMB <= 1.0 {
        Course::Falling { first, last }
    } else if rises && climb >= CLIMB {
        Course::Rising { first, last }
    } else if highest / lowest.max(f64::MIN_POSITIVE) >= SWING {
        Course::Swinging { low: lowest, high: highest }
    } else {
        Course::Steady
    }
}

fn failures(evidence: &Evidence, verdicts: &mut Verdicts) {
    let mut judge = |lost: Lost, failed: f64, of: f64, lines: Vec<usize>| {
        let share = if of > 0.0 { failed / of } else { 0.0 };
        let fault = (share >= FAILED).then_some((Warning, Certain));
        let kind = DesignKind::Failures { lost, failed, of, percent: share * 100.0 };
        verdicts.judge(fault, lines, kind);
    };
    let mut from = 0;
    for run in &evidence.recognised.runs {
        let aborted: Vec<usize> =
            evidence.aborted.iter().copied().filter(|l| *l > from && *l < run.line).collect();
        if let (Some(clients), [first, ..]) = (run.clients, aborted.as_slice()) {
            let is_near = run.line - first < aborted.len() + 30;
            let count = aborted.len() as f64;
            if is_near && count <= clients.value {
                judge(Lost::Clients, count, clients.value, aborted);
            }
        }
        from = run.last_line;
        if let (Some(failed), Some(done)) = (run.failed, run.transactions) {
            let lines = vec![failed.line, done.line];
            judge(Lost::Transactions, failed.value, failed.value + done.value, lines);
        }
    }
    for run in &evidence.recognised.sysbench {
        if let (Some(errors), Some(done)) = (run.errors, run.transactions) {
            let lines = vec![errors.line, done.line];
            judge(Lost::IgnoredErrors, errors.value, errors.value + done.value, lines);
        }
    }
}
