//! Judges gates by the data: passed, exceeded or undecided.

use pgdyno_stats as stats;

use super::super::family::ALPHA;
use super::ratios::{Found, Ratios};
use super::view::{GateState, GateUnknown, GateView};
use crate::gate::{Form, Gate};
use crate::view::NoiseFloor;

/// Ratios at which a gate's verdicts begin.
#[derive(Clone, Copy)]
struct Limits {
    /// The condition holds for ratios beyond it.
    holds: f64,
    /// The condition fails for ratios from here on, on the other side.
    fails: f64,
    /// Noise floor of the host (a share), if the gate's margin is less: a change within the floor
    /// may be none.
    floor: Option<f64>,
}

impl Limits {
    fn new(gate: &Gate, floor: Option<&NoiseFloor>) -> Self {
        let bound = gate.bound();
        let floor = floor
            .and_then(|floor| floor.of_measure(gate.measure))
            .filter(|floor| gate.margin.abs() < *floor);
        let Some(share) = floor else { return Self { holds: bound, fails: bound, floor } };
        let (less, more) = (1.0 / (1.0 + share), 1.0 + share);
        let (holds, fails) = if gate.below { (less, more) } else { (more, less) };
        Self { holds, fails, floor }
    }
}

/// Judges every gate for every pair.
///
/// Gates of `--fail-if` are judged together by Holm's rule, at half the level of two-sided
/// verdicts: none is exceeded whose own 95% interval contains the margin. Gates of `--fail-unless`
/// must all be shown, each at that level. That all are shown by chance is no likelier than that one
/// is (intersection-union test: R. L. Berger, *Multiparameter hypothesis testing and acceptance
/// sampling*, Technometrics 24, 1982).
pub(super) fn judge(
    ratios: &Ratios<'_>,
    gates: &[Gate],
    floor: Option<&NoiseFloor>,
) -> Vec<GateView> {
    let all: Vec<(Gate, usize, Found, Limits)> = gates
        .iter()
        .flat_map(|gate| (0..ratios.pairs.len()).map(move |pair| (*gate, pair)))
        .map(|(gate, pair)| {
            (gate, pair, ratios.judged(pair, gate.measure), Limits::new(&gate, floor))
        })
        .collect();
    let shown = |gate: &Gate, found: &Found, limits: &Limits| {
        let ratio = found.withheld.is_none().then_some(&found.ratio)?;
        if gate.below { ratio.below_p(limits.holds) } else { ratio.above_p(limits.holds) }
    };
    let is_together = |gate: &Gate| gate.form == Form::FailIf;
    let p: Vec<f64> = all
        .iter()
        .filter(|(gate, ..)| is_together(gate))
        .filter_map(|(gate, _, f, l)| shown(gate, f, l))
        .collect();
    let first = 1.0 / p.len().max(1) as f64;
    let mut together = stats::holm(&p).into_iter();
    all.into_iter()
        .map(|(gate, pair, found, limits)| {
            let alone = shown(&gate, &found, &limits);
            let p = if is_together(&gate) { alone.and_then(|_| together.next()) } else { alone };
            let state = match (p, found.ratio.ci95) {
                (Some(p), Some(ci95)) => state(&gate, limits, p, ci95),
                _ if ratios.lacks_trial(pair) => GateState::NoTrial,
                _ => GateState::Unknown,
            };
            let share = if is_together(&gate) { first } else { 1.0 };
            let catches =
                alone.and_then(|_| found.ratio.shown_beyond(limits.holds, gate.below, share));
            let Found { ratio, within_runs, withheld } = found;
            let lacks = ratios.lacks(pair, gate.measure);
            GateView {
                outcome: state.outcome(gate.form),
                noise_floor: limits.floor,
                form: gate.form,
                gate,
                pair,
                change: ratio.value.map(|value| value - 1.0),
                ci95: ratio.ci95.map(|ci95| ci95.map(|end| end - 1.0)),
                state,
                catches: catches.map(|ratio| ratio - 1.0),
                within_runs,
                unknown: GateUnknown { withheld, lacks, why: ratio.why },
            }
        })
        .collect()
}

/// Returns the evidence for a gate's condition, from the p-value and the interval of the ratio.
fn state(gate: &Gate, limits: Limits, p: f64, [lo, hi]: [f64; 2]) -> GateState {
    let (holds, fails) = if gate.below {
        (hi < limits.holds, lo >= limits.fails)
    } else {
        (lo > limits.holds, hi <= limits.fails)
    };
    match (gate.form, holds && p <= ALPHA / 2.0) {
        (Form::FailIf, true) => GateState::Exceeded,
        (Form::FailIf, false) if fails => GateState::Kept,
        (Form::FailIf, false) => GateState::Open,
        (Form::FailUnless, true) => GateState::Kept,
        (Form::FailUnless, false) => GateState::NotShown,
    }
}
