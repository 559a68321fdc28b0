//! What prose claims of a change, against the figures.

use serde_json::json;

use super::claims::{Meant, meant_names};
use super::rule::{Rule, Verdicts, exact};
use crate::finding::Confidence::{self, Certain, Likely};
use crate::finding::Severity::Warning;
use crate::recognise::{Change, ChangeClaim, Evidence, PgbenchRun};

/// `times` allow this share of what is claimed, or half of one.
const TIMES_SLACK: f64 = 0.15;

/// Percentages that are multiples of 5 are rounded.
const ROUND: f64 = 2.5;

/// Large percentages are rounded further: this share of them.
const LARGE: f64 = 0.025;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "claimed-change",
    looks_for: "`A is 25% faster than B`, `twice as fast`, `tps = 538 (+35%)`, where A and B are rows or runs, or the report has two \
                runs or a first one to compare with, and neither tps nor latency of the figures says so",
    source: "arithmetic",
    judge: changes,
}];

/// The two that are compared: their tps, and their latencies where both have one.
struct Compared {
    a: Meant,
    b: Meant,
    latencies: Option<(f64, f64)>,
    sure: Confidence,
}

fn of_runs(a: &PgbenchRun, b: &PgbenchRun, sure: Confidence) -> Option<Compared> {
    let meant = |run: &PgbenchRun| {
        run.tps_connected().map(|f| Meant { value: f.value, line: f.line, named: true })
    };
    let latencies = a.latency().zip(b.latency()).map(|(a, b)| (a.value, b.value));
    Some(Compared { a: meant(a)?, b: meant(b)?, latencies, sure })
}

fn compared(evidence: &Evidence, claim: &ChangeClaim) -> Option<Compared> {
    if let Some((of, to)) = &claim.names {
        let (a, b) = meant_names(evidence, of, to)?;
        let sure = if a.named && b.named { Certain } else { Likely };
        return Some(Compared { a, b, latencies: None, sure });
    }
    let runs: Vec<&PgbenchRun> = evidence.measured_runs().collect();
    if let Some(tps) = claim.tps {
        let is = |run: &&&PgbenchRun| {
            [run.tps(), run.tps_connected()].iter().flatten().any(|f| f.value == tps.value)
        };
        let first = runs.first()?;
        let run = runs.iter().find(is).filter(|run| run.line != first.line)?;
        return of_runs(run, first, Likely);
    }
    // With two runs of one load there is only one comparison, and it stands above the claim.
    match runs.as_slice() {
        [a, b] if a.transaction_type == b.transaction_type && b.line < claim.line => {
            of_runs(b, a, Likely)
        }
        _ => None,
    }
}

/// Whether `ratio`, the larger over the smaller, may be what is claimed.
fn fits(claim: &ChangeClaim, ratio: f64) -> bool {
    match claim.change {
        Change::Percent(percent) => {
            let round = if percent.value % 5.0 == 0.0 { ROUND } else { 2.0 * percent.half };
            let slack = round.max(LARGE * percent.value).max(if claim.about { ROUND } else { 0.0 });
            // Beside its tps a percentage is of the first one's; else it may be of either.
            let of_either = [ratio - 1.0, 1.0 - 1.0 / ratio];
            of_either[..if claim.tps.is_some() { 1 } else { 2 }].iter().any(|change| {
                (change * 100.0 - percent.value).abs() <= slack
                    || claim.at_least && change * 100.0 > percent.value
            })
        }
        Change::Times(low, high) => {
            let slack = |n: f64| {
                (TIMES_SLACK * n).max(0.5) + if claim.about { TIMES_SLACK * n } else { 0.0 }
            };
            // `3 times faster` is said of three times as much, and of four.
            [ratio, ratio - 1.0].iter().any(|times| {
                *times >= low - slack(low) && (claim.at_least || *times <= high + slack(high))
            })
        }
    }
}

fn changes(evidence: &Evidence, verdicts: &mut Verdicts) {
    for claim in &evidence.changes {
        let Some(Compared { a, b, latencies, sure }) = compared(evidence, claim) else { continue };
        if a.value <= 0.0 || b.value <= 0.0 {
            continue;
        }
        let larger = |a: f64, b: f64| a.max(b) / a.min(b);
        let ratio = larger(a.value, b.value);
        let lines = [claim.line, a.line, b.line];
        let words = format!(
            "{} against {} tps are {} times as much",
            exact(a.value),
            exact(b.value),
            exact(a.value / b.value)
        );
        let computed = json!({ "ratio": a.value / b.value, "claimed": claim.words });
        let by_latency = latencies
            .filter(|(a, b)| *a > 0.0 && *b > 0.0)
            .is_some_and(|(a, b)| fits(claim, larger(a, b)));
        if fits(claim, ratio) || by_latency {
            verdicts.right(&lines, format!("{words}, as is said ({})", claim.words), computed);
        } else {
            let message = format!(
                "{words} ({}%), not `{}`",
                exact((a.value / b.value - 1.0) * 100.0),
                claim.words
            );
            verdicts.found(Warning, sure, &lines, message, computed);
        }
    }
}
