//! In which statements the difference of two treatments lies.

use serde::Serialize;

use super::{Comparison, RunView, StatementView};
use crate::number;

/// What one statement has of the difference of two treatments in the mean latency of all statements of its script.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatementGap {
    /// The script's name.
    pub script: String,
    /// The line it begins on.
    pub line: u32,
    /// The command.
    pub text: String,
    /// Its mean latency under the compared treatment (microseconds).
    pub mean_us: f64,
    /// The same under the treatment it is compared to.
    pub to_mean_us: f64,
    /// Its part of the whole difference: the shares of a script add up to 1, and are negative where it went the other way.
    pub share: f64,
}

/// The statements of two treatments that run the same single script, the largest part of the difference first; empty where
/// they cannot be compared, or do not differ.
pub(super) fn statements(compared: &[StatementView], to: &[StatementView]) -> Vec<StatementGap> {
    let alike = compared.len() == to.len()
        && compared.iter().zip(to).all(|(a, b)| (&a.script, a.line, &a.text) == (&b.script, b.line, &b.text))
        // The parts of scripts that are drawn by weight do not add up to one transaction.
        && compared.iter().all(|s| s.script == compared[0].script);
    if !alike {
        return Vec::new();
    }
    let pair = |(a, b): (&StatementView, &StatementView)| {
        Some((a.clone(), a.latency_us.as_ref()?.mean, b.latency_us.as_ref()?.mean))
    };
    let pairs: Vec<_> = compared.iter().zip(to).filter_map(pair).collect();
    let whole: f64 = pairs.iter().map(|(_, a, b)| a - b).sum();
    if whole == 0.0 {
        return Vec::new();
    }
    let mut gaps: Vec<StatementGap> = pairs
        .into_iter()
        .map(|(s, mean_us, to_mean_us)| {
            let share = (mean_us - to_mean_us) / whole;
            StatementGap { script: s.script, line: s.line, text: s.text, mean_us, to_mean_us, share }
        })
        .collect();
    gaps.sort_by(|a, b| b.share.total_cmp(&a.share));
    gaps
}

/// The statements that hold most of the difference, for comparisons that were told apart: at most three sentences.
pub(super) fn notes(view: &RunView) -> Vec<String> {
    let told_apart = |c: &&Comparison| c.ratio.told_apart == Some(true) && c.statements.len() > 1;
    view.comparisons.iter().filter(told_apart).take(3).map(|c| sentence(view, c)).collect()
}

fn sentence(view: &RunView, comparison: &Comparison) -> String {
    let whole: f64 = comparison.statements.iter().map(|s| s.mean_us - s.to_mean_us).sum();
    let more = if whole > 0.0 { "more" } else { "less" };
    let of = |index: usize| view.treatments.get(index).map_or("", |t| t.label.as_str());
    let parts: Vec<String> = comparison
        .statements
        .iter()
        .take(3)
        .map(|s| {
            format!(
                "{}% in `{}` ({} against {} ms)",
                number::percent(s.share),
                shortened(&s.text),
                number::milliseconds(s.mean_us),
                number::milliseconds(s.to_mean_us)
            )
        })
        .collect();
    format!(
        "The statements of a transaction took {} ms {more} with {} than with {}: {}.",
        number::milliseconds(whole.abs()),
        of(comparison.treatment),
        of(comparison.to),
        parts.join(", ")
    )
}

/// A command's beginning, on one line and without backticks, which would end the code that it is shown as.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "'");
    match line.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::LatencyView;

    fn statement(line: u32, text: &str, mean_ms: f64) -> StatementView {
        let mean = mean_ms * 1000.0;
        let latency_us = Some(LatencyView {
            count: 10,
            mean,
            p50: mean,
            p90: mean,
            p95: mean,
            p99: mean,
            p99_9: mean,
            p99_99: mean,
            max: mean,
        });
        StatementView {
            script: "tpcb-like".into(),
            line,
            text: text.into(),
            failed: 0,
            latency_us,
            first_byte_us: None,
        }
    }

    /// The statement latencies of a report of 2016 on ZFS and XFS (docs/field-reports/004-zfs-xfs.md).
    fn script(means_ms: [f64; 7]) -> Vec<StatementView> {
        let texts =
            ["BEGIN", "UPDATE accounts", "SELECT", "UPDATE tellers", "UPDATE branches", "INSERT", "END"];
        (5..)
            .zip(texts.iter().zip(means_ms))
            .map(|(line, (text, mean))| statement(line, text, mean))
            .collect()
    }

    #[test]
    fn most_of_a_published_gap_is_one_update() {
        let zfs = script([0.146_576, 3.357_134, 0.199_865, 1.036_640, 0.636_415, 0.523_942, 0.434_377]);
        let xfs = script([0.096_122, 1.521_620, 0.121_572, 1.035_498, 0.631_052, 0.524_147, 0.450_451]);
        let gaps = statements(&zfs, &xfs);
        assert_eq!(gaps[0].text, "UPDATE accounts");
        // 1.8355 ms of 1.9545 ms in all statements.
        assert!((gaps[0].share - 0.9391).abs() < 0.0001, "{}", gaps[0].share);
        assert!((gaps.iter().map(|g| g.share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(gaps[6].share < 0.0, "END took less: {gaps:?}");
    }

    #[test]
    fn what_is_not_alike_is_not_compared() {
        let one = script([1.0; 7]);
        assert!(statements(&one, &one).is_empty(), "no difference");
        assert!(statements(&one, &one[..6]).is_empty());
        let mut other = script([2.0; 7]);
        other[3].script = "simple-update".into();
        assert!(statements(&other, &one).is_empty());
    }
}
