//! What the authors of tables computed, computed again.

use serde_json::json;

use super::rule::{Rule, Verdicts, exact, number};
use crate::figure::Figure;
use crate::finding::Confidence::{Certain, Likely};
use crate::finding::Severity::{Serious, Warning};
use crate::recognise::{Evidence, Meaning, Row, Table, mean_holds};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "means",
        looks_for: "a mean that is not that of its row's repeats, rounded or cut off to the printed digits",
        source: "arithmetic",
        judge: means,
    },
    Rule {
        name: "ratios",
        looks_for: "a ratio that is not the row's value over that of the one row of 100% (or 1), rounded or cut off to the printed digits; \
                    where most of a column is otherwise, it is taken to mean something else",
        source: "arithmetic",
        judge: ratios,
    },
    Rule {
        name: "percentages",
        looks_for: "shares of a whole, and parts of iostat's CPU line, that do not add up to 100% within their printed digits",
        source: "arithmetic; iostat(1)",
        judge: percentages,
    },
    Rule {
        name: "fsync-arithmetic",
        looks_for: "pg_test_fsync's ops/sec × usecs/op beyond one second by more than their printed digits",
        source: "PostgreSQL documentation, pg_test_fsync",
        judge: fsync_arithmetic,
    },
];

fn means(evidence: &Evidence, verdicts: &mut Verdicts) {
    for table in &evidence.recognised.tables {
        let mut right = Vec::new();
        for row in table.rows.iter().filter(|r| !r.repeats.is_empty()) {
            let Some(mean) = row.mean else { continue };
            if mean_holds(&row.repeats, mean) {
                right.push(row);
                continue;
            }
            let values = row.values();
            let computed = values.iter().sum::<f64>() / values.len() as f64;
            let message = format!(
                "`{}`: the mean of {} is {}, not {}",
                row.label,
                joined(&values),
                exact(computed),
                exact(mean.value)
            );
            let computed = json!({ "mean": computed, "printed": mean.value, "row": row.label });
            verdicts.found(Serious, Certain, &[mean.line], message, computed);
        }
        let lines: Vec<usize> = right.iter().map(|r| r.line).collect();
        if !lines.is_empty() {
            let computed: serde_json::Map<_, _> =
                right.iter().map(|r| (r.label.clone(), json!(r.mean.map(|m| m.value)))).collect();
            verdicts.right(
                &lines,
                format!("{} means are those of their rows", lines.len()),
                computed.into(),
            );
        }
    }
}

pub(super) fn joined(values: &[f64]) -> String {
    values.iter().map(|v| exact(*v)).collect::<Vec<_>>().join(", ")
}

/// What a row's ratio is a ratio of.
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
    let others: Vec<_> = rows.iter().filter(|(row, ..)| row.line != base_row.line).collect();
    let holds = |ratio: Figure, value: Figure| {
        ratio.may_print(value.low() / base.high() * whole, value.high() / base.low() * whole)
    };
    let (right, wrong): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|(_, ratio, value)| holds(*ratio, *value));
    // A column of which little is so is a ratio of something else, unless it can be nothing else.
    let said = table.meaning != Meaning::Unknown || right.len() > wrong.len();
    if !wrong.is_empty() && right.len() <= wrong.len() && !(said && right.len() + wrong.len() <= 2)
    {
        return;
    }
    for (row, ratio, value) in wrong {
        let computed = value.value / base.value * whole;
        let message = format!(
            "`{}` ÷ `{}` is {}, not {}",
            row.label,
            base_row.label,
            exact(computed),
            exact(ratio.value)
        );
        let sure = if right.is_empty() { Likely } else { Certain };
        let computed = json!({ "ratio": computed, "printed": ratio.value, "row": row.label, "base": base_row.label });
        verdicts.found(Serious, sure, &[ratio.line, base_row.line], message, computed);
    }
    if !right.is_empty() {
        let lines: Vec<usize> = right.iter().map(|(row, ..)| row.line).collect();
        let computed: serde_json::Map<_, _> = right
            .iter()
            .map(|(row, _, value)| (row.label.clone(), json!(value.value / base.value * whole)))
            .collect();
        let message = format!(
            "{} ratios to `{}` are right to their printed digits",
            lines.len(),
            base_row.label
        );
        verdicts.right(&lines, message, computed.into());
    }
}

fn percentages(evidence: &Evidence, verdicts: &mut Verdicts) {
    for cpu in &evidence.recognised.cpus {
        let parts: Vec<Figure> = cpu.parts.iter().map(|(_, f)| *f).collect();
        if cpu.parts.iter().any(|(name, _)| name == "idle") {
            hundred(&parts, &[cpu.line], "the parts of CPU time", true, verdicts);
        }
    }
    for table in &evidence.recognised.tables {
        let shares: Vec<Figure> = table.rows.iter().filter_map(|r| r.share).collect();
        if shares.len() >= 2 {
            let lines: Vec<usize> = shares.iter().map(|f| f.line).collect();
            // Some parts may have been left out.
            hundred(&shares, &lines, "the shares", false, verdicts);
        }
    }
}

fn hundred(parts: &[Figure], lines: &[usize], what: &str, whole: bool, verdicts: &mut Verdicts) {
    let sum: f64 = parts.iter().map(|p| p.value).sum();
    // Rounded or cut off.
    let tolerance: f64 = parts.iter().map(|p| 2.0 * p.half).sum::<f64>() + 1e-6;
    let computed = json!({ "sum_percent": sum });
    let words = format!("{what} add up to {}%", exact(sum));
    if sum > 100.0 + tolerance || (whole && sum < 100.0 - tolerance) {
        verdicts.found(Warning, Certain, lines, format!("{words}, not to 100%"), computed);
    } else if sum >= 100.0 - tolerance {
        verdicts.right(lines, words, computed);
    }
}

fn fsync_arithmetic(evidence: &Evidence, verdicts: &mut Verdicts) {
    let mut right = Vec::new();
    for line in &evidence.recognised.fsync {
        let Some(us) = line.us.filter(|us| us.low() > 0.0) else { continue };
        let rate = line.per_second;
        // Cut off or rounded: pg_test_fsync rounds, others that write such lines may not.
        let (low, high) = (1e6 / (us.value + 2.0 * us.half), 1e6 / us.low());
        if rate.high() < low || rate.low() > high {
            let implied = 1e6 / us.value;
            let message = format!(
                "{}: {} µs for each are {} in a second, not {}",
                line.method,
                us.value,
                number(implied),
                exact(rate.value)
            );
            let computed = json!({ "per_second": implied, "printed": rate.value });
            verdicts.found(Serious, Certain, &[rate.line], message, computed);
        } else {
            right.push(rate.line);
        }
    }
    if !right.is_empty() {
        let message =
            format!("rates of pg_test_fsync that agree with their times: {}", right.len());
        verdicts.right(&right, message, json!({}));
    }
}
