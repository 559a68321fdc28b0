//! Whether pgbench's counts and percentages of failures, retries and late transactions agree.

use serde_json::json;

use super::rule::{Rule, Verdicts, exact};
use crate::figure::Figure;
use crate::finding::Confidence::Certain;
use crate::finding::Severity::Serious;
use crate::recognise::{Counted, Evidence, PgbenchRun, PrintedShare};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "printed-shares",
    looks_for: "pgbench's failed, skipped, retried and late transactions: percentages that are not those of the counts, kinds of failures that \
                are not all failures, fewer retries than retried transactions",
    source: "pgbench documentation, Failures and Serialization/Deadlock Retries; -L; -R",
    judge,
}];

/// A figure that is printed, and what it is by the others: the least and the greatest.
struct Sum {
    what: &'static str,
    printed: Figure,
    computed: [f64; 2],
    lines: Vec<usize>,
}

fn judge(evidence: &Evidence, verdicts: &mut Verdicts) {
    for (run, shares) in evidence.recognised.runs.iter().zip(&evidence.shares) {
        let mut right = Vec::new();
        for Sum { what, printed, computed: [low, high], lines } in sums(run, shares) {
            let slip = 1e-9 * low.abs();
            if printed.high() + slip >= low && printed.low() - slip <= high {
                right.push(printed.line);
                continue;
            }
            let message = format!("{what}: {}, not {}", exact(low), exact(printed.value));
            let computed = json!({ "computed": low, "printed": printed.value });
            verdicts.found(Serious, Certain, &lines, message, computed);
        }
        if !right.is_empty() {
            let message =
                format!("counts and percentages of pgbench's that agree: {}", right.len());
            verdicts.right(&right, message, json!({ "figures": right.len() }));
        }
    }
}

/// All that can be computed twice of what was printed.
fn sums(run: &PgbenchRun, shares: &[PrintedShare]) -> Vec<Sum> {
    let mut sums = Vec::new();
    let find = |of: Counted| shares.iter().find(|share| share.of == of);
    let count = |of: Counted| find(of).map(|share| share.count);
    let done = run.transactions;
    // Whatever began: done, failed or skipped.
    let all = done.map(|done| {
        let others = [Counted::Failed, Counted::Skipped].into_iter().filter_map(count);
        done.value + others.map(|figure| figure.value).sum::<f64>()
    });
    for share in shares {
        let whole = match share.of {
            Counted::AboveLimit => share.whole.or(done).map(|whole| whole.value),
            _ => all,
        };
        if let (Some(percent), Some(whole)) = (share.percent, whole.filter(|whole| *whole > 0.0)) {
            let computed = 100.0 * share.count.value / whole;
            let mut lines = vec![percent.line];
            lines.extend(done.map(|done| done.line));
            let what = "the percentage of the counts";
            sums.push(Sum { what, printed: percent, computed: [computed; 2], lines });
        }
        if let (Counted::AboveLimit, Some(whole), Some(done)) = (share.of, share.whole, done) {
            let (computed, lines) = ([done.value; 2], vec![whole.line, done.line]);
            sums.push(Sum { what: "transactions done", printed: whole, computed, lines });
        }
    }
    let kinds = [Counted::SerializationFailures, Counted::DeadlockFailures, Counted::OtherFailures];
    let kinds: Vec<Figure> = kinds.into_iter().filter_map(count).collect();
    if let (Some(failed), [first, _, ..]) = (count(Counted::Failed), kinds.as_slice()) {
        let computed = [kinds.iter().map(|kind| kind.value).sum::<f64>(); 2];
        let (what, lines) = ("failures of all kinds", vec![failed.line, first.line]);
        sums.push(Sum { what, printed: failed, computed, lines });
    }
    if let (Some(retried), Some(retries)) = (count(Counted::Retried), count(Counted::Retries)) {
        let (what, lines) =
            ("retries, at least one of each retried transaction", vec![retries.line, retried.line]);
        sums.push(Sum { what, printed: retries, computed: [retried.value, f64::MAX], lines });
    }
    sums
}
