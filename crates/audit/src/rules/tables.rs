//! Figures that the authors of tables computed, computed again.

use super::rule::{AuditRule, Verdicts};
use crate::figure::Figure;
use crate::finding::Confidence::{Certain, Likely};
use crate::finding::Severity::{Serious, Warning};
use crate::finding::{TableKind, Whole};
use crate::recognise::{Evidence, Meaning, Row, Table, mean_holds};

pub(super) const RULES: &[AuditRule] = &[
    AuditRule { name: "means", judge: means },
    AuditRule { name: "ratios", judge: ratios },
    AuditRule { name: "percentages", judge: percentages },
    AuditRule { name: "fsync-arithmetic", judge: fsync_arithmetic },
];

fn means(evidence: &Evidence, verdicts: &mut Verdicts) {
    for table in &evidence.recognised.tables {
        let with_mean = table.rows.iter().filter(|row| !row.repeats.is_empty());
        let (right, wrong): (Vec<_>, Vec<_>) = with_mean
            .filter_map(|row| Some((row, row.mean?)))
            .partition(|(row, mean)| mean_holds(&row.repeats, *mean));
        for (row, printed) in wrong {
            let values = row.values();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let (row, line, printed) = (row.label.clone(), printed.line, printed.value);
            let kind = TableKind::Mean { row, values, mean, printed };
            verdicts.report(Serious, Certain, [line], kind);
        }
        let lines: Vec<usize> = right.iter().map(|(row, _)| row.line).collect();
        if !lines.is_empty() {
            let means = right.iter().map(|(row, mean)| (row.label.clone(), mean.value));
            let kind = TableKind::Means { rows: lines.len(), means: means.collect() };
            verdicts.right(lines, kind);
        }
    }
}

/// Value that a row's ratio is computed from.
fn basis(row: &Row) -> Option<Figure> {
    row.value().or_else(|| {
        let n = row.repeats.len() as f64;
        let add = |of: fn(&Figure) -> f64| row.repeats.iter().map(of).sum::<f64>() / n;
        let first = row.repeats.first()?;
        Some(Figure { value: add(|f| f.value), half: add(|f| f.half), line: first.line })
    })
}

fn ratios(evidence: &Evidence, verdicts: &mut Verdicts) {
    for table in &evidence.recognised.tables {
        judge_ratios(table, verdicts);
    }
}

fn judge_ratios(table: &Table, verdicts: &mut Verdicts) {
    let rows: Vec<(&Row, Figure, Figure)> =
        table.rows.iter().filter_map(|row| Some((row, row.ratio?, basis(row)?))).collect();
    // Percent where one row is 100, plain where one is 1: the row that all others are compared
    // with.
    let base_of = |whole: f64| {
        let mut bases = rows.iter().filter(|(_, ratio, _)| ratio.value == whole);
        bases.next().filter(|_| bases.next().is_none()).map(|(row, _, value)| (row, *value, whole))
    };
    let Some((base_row, base, whole)) = base_of(100.0).or_else(|| base_of(1.0)) else { return };
    if base.low() <= 0.0 {
        return;
    }
    let holds = |ratio: Figure, value: Figure| {
        ratio.may_print(value.low() / base.high() * whole, value.high() / base.low() * whole)
    };
    let others = rows.iter().filter(|(row, ..)| row.line != base_row.line);
    let (right, wrong): (Vec<_>, Vec<_>) =
        others.partition(|(_, ratio, value)| holds(*ratio, *value));
    // A column of which little is so is a ratio of something else, unless it can be nothing else.
    let is_short = table.meaning != Meaning::Unknown && right.len() + wrong.len() <= 2;
    if !wrong.is_empty() && right.len() <= wrong.len() && !is_short {
        return;
    }
    let computed = |value: Figure| value.value / base.value * whole;
    for (row, printed, value) in wrong {
        let sure = if right.is_empty() { Likely } else { Certain };
        let kind = TableKind::Ratio {
            row: row.label.clone(),
            base: base_row.label.clone(),
            ratio: computed(value),
            printed: printed.value,
        };
        verdicts.report(Serious, sure, [printed.line, base_row.line], kind);
    }
    if !right.is_empty() {
        let lines: Vec<usize> = right.iter().map(|(row, ..)| row.line).collect();
        let ratios = right.iter().map(|(row, _, value)| (row.label.clone(), computed(*value)));
        let (rows, base, ratios) = (lines.len(), base_row.label.clone(), ratios.collect());
        verdicts.right(lines, TableKind::Ratios { rows, base, ratios });
    }
}

fn percentages(evidence: &Evidence, verdicts: &mut Verdicts) {
    for cpu in &evidence.recognised.cpus {
        let parts: Vec<Figure> = cpu.parts.iter().map(|(_, f)| *f).collect();
        if cpu.parts.iter().any(|(name, _)| name == "idle") {
            judge_sum(&parts, vec![cpu.line], Whole::CpuTime, verdicts);
        }
    }
    for table in &evidence.recognised.tables {
        let shares: Vec<Figure> = table.rows.iter().filter_map(|r| r.share).collect();
        if shares.len() >= 2 {
            let lines = shares.iter().map(|f| f.line).collect();
            judge_sum(&shares, lines, Whole::Shares, verdicts);
        }
    }
}

fn judge_sum(parts: &[Figure], lines: Vec<usize>, whole: Whole, verdicts: &mut Verdicts) {
    let sum_percent: f64 = parts.iter().map(|p| p.value).sum();
    // Rounded or cut off.
    let tolerance: f64 = parts.iter().map(|p| 2.0 * p.half).sum::<f64>() + 1e-6;
    let is_less = sum_percent < 100.0 - tolerance;
    // Some of the shares may have been left out.
    if is_less && whole == Whole::Shares {
        return;
    }
    let fault = (is_less || sum_percent > 100.0 + tolerance).then_some((Warning, Certain));
    verdicts.judge(fault, lines, TableKind::Percentages { whole, sum_percent });
}

fn fsync_arithmetic(evidence: &Evidence, verdicts: &mut Verdicts) {
    let mut right = Vec::new();
    for line in &evidence.recognised.fsync {
        let Some(us) = line.us.filter(|us| us.low() > 0.0) else { continue };
        let rate = line.per_second;
        // Cut off or rounded: pg_test_fsync rounds, others that write such lines may not.
        let (low, high) = (1e6 / (us.value + 2.0 * us.half), 1e6 / us.low());
        if rate.high() >= low && rate.low() <= high {
            right.push(rate.line);
            continue;
        }
        let kind = TableKind::FlushRate {
            method: line.method.clone(),
            us: us.value,
            per_second: 1e6 / us.value,
            printed: rate.value,
        };
        verdicts.report(Serious, Certain, [rate.line], kind);
    }
    if !right.is_empty() {
        let rates = right.len();
        verdicts.right(right, TableKind::FlushRates { rates });
    }
}
