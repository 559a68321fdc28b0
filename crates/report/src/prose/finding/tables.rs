//! Sentences on figures of tables.

use pgdyno_audit::{TableKind, Whole};

use super::{exact, joined, rounded};

pub(super) fn message(kind: &TableKind, is_right: bool) -> String {
    match kind {
        TableKind::Mean { row, values, mean, printed } => format!(
            "`{row}`: the mean of {} is {}, not {}",
            joined(values),
            exact(*mean),
            exact(*printed)
        ),
        TableKind::Means { rows, .. } => format!("{rows} means are those of their rows"),
        TableKind::Ratio { row, base, ratio, printed } => {
            format!("`{row}` ÷ `{base}` is {}, not {}", exact(*ratio), exact(*printed))
        }
        TableKind::Ratios { rows, base, .. } => {
            format!("{rows} ratios to `{base}` are right to their printed digits")
        }
        TableKind::Percentages { whole, sum_percent } => {
            let parts = match whole {
                Whole::CpuTime => "the parts of CPU time",
                Whole::Shares => "the shares",
            };
            let outcome = if is_right { "" } else { ", not to 100%" };
            format!("{parts} add up to {}%{outcome}", exact(*sum_percent))
        }
        TableKind::FlushRate { method, us, per_second, printed } => format!(
            "{method}: {us} µs for each are {} in a second, not {}",
            rounded(*per_second),
            exact(*printed)
        ),
        TableKind::FlushRates { rates } => {
            format!("rates of pg_test_fsync that agree with their times: {rates}")
        }
    }
}
