//! Lines that seem to hold a figure of a benchmark, and that no recogniser reads.

use super::columns::names_tps;
use super::scan::Scan;
use crate::finding::WhyNot;
use crate::words::Words;

/// Finds all that no recogniser read.
pub(super) fn find(scan: &mut Scan<'_>) {
    const SIGNS: Words = Words("ops/sec|latency average|latency stddev");
    const PERFORMANCE: Words = Words("performance|výkonu|leistung|性能|производительность");
    for (at, line) in scan.lines.iter().enumerate() {
        let lower = line.text.to_lowercase();
        let number = lower.contains(|c: char| c.is_ascii_digit()) || lower.contains("twice");
        if scan.read[at] || !number || lower.len() > 2000 {
            continue;
        }
        let why = if names_tps(&lower) || SIGNS.any_in(&lower) {
            WhyNot::Figure
        } else if lower.contains('%') && PERFORMANCE.any_in(&lower) {
            WhyNot::Percentage
        } else {
            continue;
        };
        scan.not_understood(line.number, why);
    }
}
