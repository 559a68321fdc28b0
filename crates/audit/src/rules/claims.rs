//! What prose says of the figures, beside them.

use pgdyno_stats::mean_ci95;
use serde_json::json;

use super::rule::{Rule, Verdicts, exact};
use crate::figure::Figure;
use crate::finding::Confidence::{Certain, Likely};
use crate::finding::Severity::Warning;
use crate::recognise::{Evidence, Meaning, Row, SpreadClaim};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "claimed-ratio",
        looks_for: "`A is N% of B`, where A and B are rows or runs and N is the only percentage of the line, and the figures say another; \
                    `about` allows 2.5 where N is a multiple of 5, else 1",
        source: "arithmetic",
        judge: ratio,
    },
    Rule {
        name: "claimed-spread",
        looks_for: "`A: mean ± spread` where no usual measure of the spread of A's repeats is that",
        source: "standard deviation of sample and population, standard error, 95% interval, mean absolute deviation, half the range",
        judge: spread,
    },
];

/// What a name of prose means.
pub(super) struct Meant {
    pub(super) value: f64,
    pub(super) line: usize,
    /// Whether the report itself gives it that name.
    pub(super) named: bool,
}

/// What both names mean: rows of one table, or the two runs of the report.
pub(super) fn meant_names(evidence: &Evidence, of: &str, to: &str) -> Option<(Meant, Meant)> {
    rows(evidence, of, to).or_else(|| runs(evidence, of, to))
}

fn ratio(evidence: &Evidence, verdicts: &mut Verdicts) {
    for claim in &evidence.ratios {
        let Some((of, to)) = meant_names(evidence, &claim.of, &claim.to) else { continue };
        if of.value <= 0.0 || to.value <= 0.0 {
            continue;
        }
        let computed = of.value / to.value;
        let percent = computed * 100.0;
        let slack = match (claim.about, claim.percent.value % 5.0 == 0.0) {
            (false, _) => 2.0 * claim.percent.half,
            (true, true) => 2.5,
            (true, false) => 1.0 + claim.percent.half,
        };
        let fits = |percent: f64| (percent - claim.percent.value).abs() <= slack;
        let lines = [claim.line, of.line, to.line];
        let words =
            format!("{} ÷ {} is {}: {}%", claim.of, claim.to, exact(computed), exact(percent));
        let said = format!("{}{}%", if claim.about { "about " } else { "" }, claim.percent.value);
        let json = json!({ "ratio": computed, "claimed_percent": claim.percent.value, "of": claim.of, "to": claim.to });
        if fits(percent) {
            verdicts.right(&lines, format!("{words}, as is said ({said})"), json);
        } else if fits(100.0 / computed) {
            verdicts.right(
                &lines,
                format!(
                    "{} ÷ {} is {}, as is said ({said})",
                    claim.to,
                    claim.of,
                    exact(1.0 / computed)
                ),
                json,
            );
        } else {
            let both = of.named && to.named;
            let how =
                if both { "" } else { " (which run is which follows from the one that is named)" };
            let sure = if both { Certain } else { Likely };
            verdicts.found(Warning, sure, &lines, format!("{words}, not {said}{how}"), json);
        }
    }
}

/// Both names as rows of one table.
fn rows(evidence: &Evidence, of: &str, to: &str) -> Option<(Meant, Meant)> {
    evidence.recognised.tables.iter().find_map(|table| {
        let find = |name: &str| {
            let mut rows = table.rows.iter().filter(|r| r.label.eq_ignore_ascii_case(name));
            let row = rows.next().filter(|_| rows.next().is_none())?;
            let mean = || mean_ci95(&row.values()).mean;
            let value = row.value().map(|f| f.value).or_else(mean)?;
            Some(Meant { value, line: row.line, named: true })
        };
        find(of).zip(find(to))
    })
}

/// Both names as the two runs of the report; one of them may be named by the other's being the
/// other one.
fn runs(evidence: &Evidence, of: &str, to: &str) -> Option<(Meant, Meant)> {
    let [first, second] = evidence.recognised.runs.as_slice() else { return None };
    let is = |run: &crate::recognise::PgbenchRun, name: &str| {
        run.label.as_deref().is_some_and(|l| l.eq_ignore_ascii_case(name))
    };
    let meant = |run: &crate::recognise::PgbenchRun, name: &str| {
        run.tps_connected().map(|f: Figure| Meant {
            value: f.value,
            line: f.line,
            named: is(run, name),
        })
    };
    let straight = is(first, of) || is(second, to);
    let crossed = is(first, to) || is(second, of);
    match (straight, crossed) {
        (true, false) => meant(first, of).zip(meant(second, to)),
        (false, true) => meant(second, of).zip(meant(first, to)),
        _ => None,
    }
}

fn spread(evidence: &Evidence, verdicts: &mut Verdicts) {
    for claim in &evidence.spreads {
        let Some(row) = row_of(evidence, claim) else { continue };
        let values = row.values();
        let measures = measures(&values);
        let lines = [claim.line, row.line];
        let json = json!({
            "row": row.label, "claimed": claim.spread.value,
            "measures": measures.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect::<Vec<_>>(),
        });
        let fits = measures.iter().find(|(_, value)| claim.spread.may_print(*value, *value));
        if let Some((name, value)) = fits {
            let message = format!(
                "`{}`: ± {} is its {name}, {}",
                row.label,
                claim.spread.value,
                exact(*value)
            );
            verdicts.right(&lines, message, json);
        } else {
            let known: Vec<String> =
                measures.iter().map(|(name, value)| format!("{name} {}", exact(*value))).collect();
            let message = format!(
                "`{}`: ± {} is no usual measure of its repeats' spread: {}",
                row.label,
                claim.spread.value,
                known.join(", ")
            );
            verdicts.found(Warning, Likely, &lines, message, json);
        }
    }
}

/// The one row whose name holds the claim's and whose mean is the claim's.
fn row_of<'a>(evidence: &'a Evidence, claim: &SpreadClaim) -> Option<&'a Row> {
    let name = claim.name.to_lowercase();
    let known = evidence.recognised.tables.iter().filter(|t| t.meaning != Meaning::Unknown);
    let mut rows = known.flat_map(|t| &t.rows).filter(|row| {
        let mean = mean_ci95(&row.values()).mean;
        row.repeats.len() >= 2
            && row.label.to_lowercase().contains(&name)
            && mean.is_some_and(|mean| claim.mean.may_print(mean, mean))
    });
    rows.next().filter(|_| rows.next().is_none())
}

/// What people call the spread of repeats.
fn measures(values: &[f64]) -> Vec<(&'static str, f64)> {
    let e = mean_ci95(values);
    let (Some(mean), Some(sd)) = (e.mean, e.sd) else { return Vec::new() };
    let n = values.len() as f64;
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    let mut measures = vec![
        ("standard deviation (n − 1)", sd),
        ("standard deviation (n)", sd * ((n - 1.0) / n).sqrt()),
        ("standard error", sd / n.sqrt()),
        ("mean absolute deviation", values.iter().map(|v| (v - mean).abs()).sum::<f64>() / n),
        ("half the range", (high - low) / 2.0),
    ];
    measures.extend(e.ci95.map(|[low, high]| ("half the 95% interval", (high - low) / 2.0)));
    measures
}
