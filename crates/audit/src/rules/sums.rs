//! Figures of pgbench and sysbench that their other figures give too.

use super::rule::{AuditRule, EDGES, Verdicts, weight};
use crate::figure::Figure;
use crate::finding::Confidence::Certain;
use crate::finding::PrintedFigure::{self, *};
use crate::finding::Severity::{Serious, Warning};
use crate::finding::{Program, RunKind};
use crate::recognise::{Counted, Evidence, PgbenchRun, PrintedShare, SysbenchRun};

pub(super) const RULES: &[AuditRule] = &[
    AuditRule { name: "printed-shares", judge: printed_shares },
    AuditRule { name: "sysbench-arithmetic", judge: sysbench },
    AuditRule { name: "capped-percentile", judge: capped_percentile },
];

/// Printed figure, and the least and greatest value that the other figures give it.
struct Sum {
    figure: PrintedFigure,
    printed: Figure,
    computed: [f64; 2],
    lines: Vec<usize>,
}

/// Judges the sums of one report; clocks may take `slack` of a figure.
fn judge(program: Program, sums: Vec<Sum>, slack: f64, verdicts: &mut Verdicts) {
    let mut right = Vec::new();
    for Sum { figure, printed, computed: [low, high], lines } in sums {
        if low <= printed.high() * (1.0 + slack) && high >= printed.low() * (1.0 - slack) {
            right.push(printed.line);
            continue;
        }
        let computed = if high.is_finite() { f64::midpoint(low, high) } else { low };
        let (severity, off_percent) = match program {
            Program::Pgbench => (Serious, None),
            Program::Sysbench => {
                let off = (computed - printed.value) / printed.value;
                (weight(off), Some(off * 100.0))
            }
        };
        let printed = printed.value;
        let kind = RunKind::Printed { figure, computed, printed, off_percent };
        verdicts.report(severity, Certain, lines, kind);
    }
    if !right.is_empty() {
        let figures = right.len();
        verdicts.right(right, RunKind::Agreement { program, figures });
    }
}

fn printed_shares(evidence: &Evidence, verdicts: &mut Verdicts) {
    for (run, shares) in evidence.recognised.runs.iter().zip(&evidence.shares) {
        judge(Program::Pgbench, sums_of_shares(run, shares), 1e-9, verdicts);
    }
}

fn sums_of_shares(run: &PgbenchRun, shares: &[PrintedShare]) -> Vec<Sum> {
    let mut sums = Vec::new();
    let mut add = |figure, printed: Figure, computed, beside: Option<Figure>| {
        let lines = [printed].into_iter().chain(beside).map(|f| f.line).collect();
        sums.push(Sum { figure, printed, computed, lines });
    };
    let count = |of| shares.iter().find(|share| share.of == of).map(|share| share.count);
    let done = run.transactions;
    // Whatever began: done, failed or skipped.
    let all = done.map(|done| {
        let others = [Counted::Failed, Counted::Skipped].into_iter().filter_map(count);
        done.value + others.map(|figure| figure.value).sum::<f64>()
    });
    for share in shares {
        let is_late = share.of == Counted::AboveLimit;
        let whole = if is_late { share.whole.or(done).map(|whole| whole.value) } else { all };
        if let (Some(percent), Some(whole)) = (share.percent, whole.filter(|whole| *whole > 0.0)) {
            add(PercentageOfCount, percent, [100.0 * share.count.value / whole; 2], done);
        }
        if let (true, Some(whole), Some(done)) = (is_late, share.whole, done) {
            add(TransactionsDone, whole, [done.value; 2], Some(done));
        }
    }
    let kinds = [Counted::SerializationFailures, Counted::DeadlockFailures, Counted::OtherFailures];
    let kinds: Vec<Figure> = kinds.into_iter().filter_map(count).collect();
    if let (Some(failed), [first, _, ..]) = (count(Counted::Failed), kinds.as_slice()) {
        let sum = kinds.iter().map(|kind| kind.value).sum::<f64>();
        add(FailuresOfAllKinds, failed, [sum; 2], Some(*first));
    }
    if let (Some(retried), Some(retries)) = (count(Counted::Retried), count(Counted::Retries)) {
        add(Retries, retries, [retried.value, f64::INFINITY], Some(retried));
    }
    sums
}

fn sysbench(evidence: &Evidence, verdicts: &mut Verdicts) {
    for run in &evidence.recognised.sysbench {
        judge(Program::Sysbench, sums_of_sysbench(run), EDGES, verdicts);
    }
}

fn product(a: Figure, b: Figure) -> [f64; 2] {
    [a.low() * b.low(), a.high() * b.high()]
}

fn quotient(a: Figure, b: Figure) -> [f64; 2] {
    [a.low() / b.high(), a.high() / b.low()]
}

fn sums_of_sysbench(run: &SysbenchRun) -> Vec<Sum> {
    let time = run.total_time_s.filter(|time| time.low() > 0.0);
    let thread_time_ms = run.thread_time_s.map(|time| Figure {
        value: time.value * 1000.0,
        half: time.half * 1000.0,
        ..time
    });
    let sums = [
        (TransactionRate, run.per_second, run.transactions.zip(time), quotient as fn(_, _) -> _),
        (QueryRate, run.queries_per_second, run.queries.zip(time), quotient),
        (LatencySum, run.latency_sum_ms, run.latency_average_ms.zip(run.events), product),
        (Events, run.events, run.events_per_thread.zip(run.threads), product),
        (ThreadTime, run.latency_sum_ms, thread_time_ms.zip(run.threads), product),
    ];
    let mut found: Vec<Sum> = Vec::new();
    for (figure, printed, parts, compute) in sums {
        if let (Some(printed), Some((a, b))) = (printed, parts) {
            let lines = vec![printed.line, a.line, b.line];
            found.push(Sum { figure, printed, computed: compute(a, b), lines });
        }
    }
    if let (Some(total), Some(reads), Some(writes), Some(others)) =
        (run.total, run.reads, run.writes, run.others)
    {
        let whole = reads.value + writes.value + others.value;
        let lines = vec![total.line, reads.line];
        found.push(Sum { figure: Queries, printed: total, computed: [whole; 2], lines });
    }
    found.retain(|sum| sum.printed.value > 0.0 && sum.computed[1] > 0.0);
    found
}

fn capped_percentile(evidence: &Evidence, verdicts: &mut Verdicts) {
    for figure in &evidence.capped {
        let kind = RunKind::CappedPercentile { printed: figure.value };
        verdicts.report(Warning, Certain, [figure.line], kind);
    }
}
