//! Whether a change is shown to lie beyond what is let through.

use super::super::compare::{ALPHA, Pairing};
use super::super::treatment::Sums;
use super::super::view::PERCENTILES;
use super::view::{GateState, GateView};
use crate::gate::{Gate, Measure};
use crate::number;
use crate::stats::{self, Ratio};

/// A gate before it is put in words.
pub(super) struct Judged {
    gate: Gate,
    pair: usize,
    ratio: Ratio,
    state: GateState,
}

/// Judges every gate for every pair: together by Holm's rule, at half of the level that two-sided verdicts have, so that none
/// is exceeded whose own 95% interval holds the margin.
pub(super) fn judge(
    a: &[Sums],
    b: &[Sums],
    pairs: &[(usize, usize)],
    gates: &[Gate],
    pairing: &Pairing,
) -> Vec<Judged> {
    let values = |sums: &Sums, measure: Measure| -> Vec<(u32, f64)> {
        match PERCENTILES.iter().position(|(name, _)| *name == measure.name()) {
            Some(i) => sums.percentiles[i].clone(),
            None => sums.tps.clone(),
        }
    };
    let all: Vec<(Gate, usize, Ratio)> = gates
        .iter()
        .flat_map(|gate| pairs.iter().enumerate().map(move |(pair, members)| (*gate, pair, *members)))
        .map(|(gate, pair, (i, j))| {
            (gate, pair, pairing.ratio(&values(&b[j], gate.measure), &values(&a[i], gate.measure)))
        })
        .collect();
    let beyond = |gate: &Gate, ratio: &Ratio| {
        if gate.below { ratio.below_p(gate.bound()) } else { ratio.above_p(gate.bound()) }
    };
    let p: Vec<f64> = all.iter().filter_map(|(gate, _, ratio)| beyond(gate, ratio)).collect();
    let mut together = stats::holm(&p).into_iter();
    all.into_iter()
        .map(|(gate, pair, ratio)| {
            let p = beyond(&gate, &ratio).and_then(|_| together.next());
            let state = match (p, ratio.ci95) {
                (Some(p), Some([lo, hi])) => {
                    let (beyond, harmless) = if gate.below {
                        (hi < gate.bound(), lo >= gate.bound())
                    } else {
                        (lo > gate.bound(), hi <= gate.bound())
                    };
                    match (beyond && p <= ALPHA / 2.0, harmless) {
                        (true, _) => GateState::Exceeded,
                        (_, true) => GateState::Kept,
                        _ => GateState::Open,
                    }
                }
                _ => GateState::Unknown,
            };
            Judged { gate, pair, ratio, state }
        })
        .collect()
}

/// The same in words; `labels` are the pairs'.
pub(super) fn said(judged: Judged, labels: &[String]) -> GateView {
    let Judged { gate, pair, ratio, state } = judged;
    let change = ratio.value.map(|value| value - 1.0);
    let ci95 = ratio.ci95.map(|ci95| ci95.map(|end| end - 1.0));
    let found = match (change, ci95) {
        (Some(change), Some([lo, hi])) => {
            format!("{} (95% CI {} to {})", signed(change), signed(lo), signed(hi))
        }
        (Some(change), None) => format!("{} (no interval)", signed(change)),
        _ => "no change can be formed".to_owned(),
    };
    let few = "too few transactions for that percentile, or ";
    let verdict = match state {
        GateState::Exceeded => "exceeded: the interval excludes the margin".to_owned(),
        GateState::Kept => "kept: the change is shown not to be beyond the margin".to_owned(),
        GateState::Open => "not shown: the interval holds the margin, or does not exclude it beside the other gates; more trials would tell".to_owned(),
        GateState::Unknown => format!(
            "cannot be judged: {}{}",
            if gate.measure == Measure::Tps { "" } else { few },
            ratio.why.unwrap_or("no interval")
        ),
    };
    let of =
        labels.get(pair).filter(|label| !label.is_empty()).map_or_else(String::new, |l| format!(", {l}"));
    GateView { words: format!("{gate}{of}: {found}; {verdict}."), gate, pair, change, ci95, state }
}

/// A change in percent with its sign.
pub(crate) fn signed(change: f64) -> String {
    let text = number::percent(change);
    if change > 0.0 { format!("+{text}%") } else { format!("{}%", text.replace('-', "−")) }
}
