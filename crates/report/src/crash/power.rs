//! Detection power of a fault's rounds, in figures and in words.

use pgdyno_model::crash::{FaultOutcome, FaultPower, Verdict, skip_seen};
use pgdyno_text::format;
use serde::Serialize;

/// Detection power: what the rounds put under test, and which faulty disks they would have shown.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PowerView {
    /// The figures.
    #[serde(flatten)]
    pub figures: FaultPower,
    /// Probability of detecting a disk that skips one flush in 10. None if the fault is planted, or
    /// tests no disk's flushes.
    pub one_in_10_seen: Option<f64>,
    /// Probability of detecting a disk that skips one flush in 100; none as above.
    pub one_in_100_seen: Option<f64>,
    /// Detection power in sentences; empty if nothing was counted.
    pub words: Vec<String>,
}

impl PowerView {
    /// Sums up the rounds of `fault`.
    pub fn new(fault: &FaultOutcome) -> Self {
        let figures = fault.power();
        let silent =
            matches!(fault.verdict, Verdict::Pass | Verdict::BoundedLoss | Verdict::Unknown);
        let seen = |one_in: f64| {
            let told =
                silent && !fault.planted && figures.disk_flushes && figures.last_window.is_some();
            told.then(|| skip_seen(&fault.rounds, one_in))
        };
        let mut view = Self {
            figures,
            one_in_10_seen: seen(10.0),
            one_in_100_seen: seen(100.0),
            words: Vec::new(),
        };
        view.words = view.words(fault.rounds.len(), silent && !fault.planted);
        view
    }

    fn words(&self, rounds: usize, silent: bool) -> Vec<String> {
        let FaultPower { checkpoints, flushes, last_window, disk_flushes, .. } = self.figures;
        if (checkpoints, flushes, last_window) == (None, None, None) {
            return Vec::new();
        }
        let counted =
            |count: Option<u64>| count.map_or_else(|| "not counted".to_owned(), format::count);
        let window = match last_window {
            None => "not counted".to_owned(),
            Some((fewest, most)) if fewest == most => format::count(most),
            Some((fewest, most)) => format!("{} to {}", format::count(fewest), format::count(most)),
        };
        let mut words = vec![format!(
            "checkpoints completed: {} in {}; flushes under test: {}; commits in the last flush \
             window: {window}",
            counted(checkpoints),
            format::counted(rounds as u64, "round"),
            counted(flushes),
        )];
        if let (Some(ten), Some(hundred)) = (self.one_in_10_seen, self.one_in_100_seen) {
            words.push(format!(
                "a disk that skips 1 flush in 10 would have been seen with probability {}%, 1 in \
                 100 with {}%",
                format::whole_percent(ten),
                format::whole_percent(hundred)
            ));
        } else if silent && !disk_flushes {
            words.push(
                "kernel and filesystem were under test, not the disk's own flushes: `--emulated` \
                 puts those under test"
                    .to_owned(),
            );
        }
        words
    }
}
