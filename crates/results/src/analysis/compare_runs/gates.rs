//! What the data say of each gate: passed, exceeded, or undecided.

use pgdyno_model::format;
use pgdyno_stats::{self as stats, POWER};

use super::super::family::ALPHA;
use super::super::view::NoiseFloor;
use super::ratios::{Found, Ratios};
use super::view::{GateState, GateView};
use crate::gate::{Form, Gate, Measure};
use crate::prose::{HOPELESS, reason};

/// A gate before it is put in words.
pub(super) struct Judged {
    gate: Gate,
    pair: usize,
    found: Found,
    limits: Limits,
    state: GateState,
    /// The change that such a gate shows in [`POWER`] of runs like this one (a share, signed).
    catches: Option<f64>,
}

/// Where a gate's verdicts begin, as ratios.
#[derive(Clone, Copy)]
struct Limits {
    /// The condition holds for ratios beyond it.
    holds: f64,
    /// It does not for ratios from here on, on the other side.
    fails: f64,
    /// The host's noise floor (a share), where the gate asks for less than that: no change within
    /// it is one.
    floor: Option<f64>,
}

impl Limits {
    fn of(gate: &Gate, floor: Option<&NoiseFloor>) -> Self {
        let bound = gate.bound();
        let floor = floor
            .and_then(|floor| floor.of(gate.measure))
            .filter(|floor| gate.margin.abs() < *floor);
        let Some(share) = floor else { return Self { holds: bound, fails: bound, floor } };
        let (less, more) = (1.0 / (1.0 + share), 1.0 + share);
        let (holds, fails) = if gate.below { (less, more) } else { (more, less) };
        Self { holds, fails, floor }
    }
}

/// Judges every gate for every pair.
///
/// Those of `--fail-if` are judged together by Holm's rule, at half of the level that two-sided
/// verdicts have, so that none is exceeded whose own 95% interval holds the margin. Those of
/// `--fail-unless` must all be shown, each at that level: that all are shown by chance is no
/// likelier than that one is (intersection-union test: R. L. Berger, *Multiparameter hypothesis
/// testing and acceptance sampling*, Technometrics 24, 1982).
pub(super) fn judge(
    ratios: &Ratios<'_>,
    pairs: usize,
    gates: &[Gate],
    floor: Option<&NoiseFloor>,
) -> Vec<Judged> {
    let all: Vec<(Gate, usize, Found, Limits)> = gates
        .iter()
        .flat_map(|gate| (0..pairs).map(move |pair| (*gate, pair)))
        .map(|(gate, pair)| (gate, pair, ratios.of(pair, gate.measure), Limits::of(&gate, floor)))
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
    #[allow(clippy::cast_precision_loss)]
    let first = 1.0 / p.len().max(1) as f64;
    let mut together = stats::holm(&p).into_iter();
    all.into_iter()
        .map(|(gate, pair, found, limits)| {
            let alone = shown(&gate, &found, &limits);
            let p = if is_together(&gate) { alone.and_then(|_| together.next()) } else { alone };
            let state = match (p, found.ratio.ci95) {
                (Some(p), Some(ci95)) => state(&gate, limits, p, ci95),
                _ => GateState::Unknown,
            };
            let share = if is_together(&gate) { first } else { 1.0 };
            let catches =
                alone.and_then(|_| found.ratio.shown_beyond(limits.holds, gate.below, share));
            Judged { gate, pair, state, catches: catches.map(|ratio| ratio - 1.0), found, limits }
        })
        .collect()
}

/// What interval and p-value say of the condition.
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

/// The gate in words; `labels` are the pairs'.
pub(super) fn said(judged: Judged, labels: &[String]) -> GateView {
    let Judged { gate, pair, found, limits, state, catches } = judged;
    let change = found.ratio.value.map(|value| value - 1.0);
    let ci95 = found.ratio.ci95.map(|ci95| ci95.map(|end| end - 1.0));
    let measured = match (change, ci95) {
        (Some(change), Some([lo, hi])) => {
            format!("{} (95% CI {} to {})", signed(change), signed(lo), signed(hi))
        }
        (Some(change), None) => match found.within_runs {
            Some([lo, hi]) => format!(
                "{} (by these two runs' own trials {} to {})",
                signed(change),
                signed(lo - 1.0),
                signed(hi - 1.0)
            ),
            None => format!("{} (no interval)", signed(change)),
        },
        _ => "no change can be formed".to_owned(),
    };
    let asks_less = limits.floor.map(|floor| {
        format!(
            "the gate asks for less than the noise floor of this host, {}%",
            format::percent(floor)
        )
    });
    let verdict = match state {
        GateState::Exceeded => "exceeded".to_owned(),
        GateState::Kept => "passed".to_owned(),
        GateState::Open => format!(
            "undecided: {}",
            asks_less.unwrap_or_else(
                || "the interval does not exclude the limit on either side".to_owned()
            )
        ),
        GateState::NotShown => format!(
            "not shown: {}",
            asks_less
                .unwrap_or_else(|| "the interval does not lie wholly beyond the limit".to_owned())
        ),
        GateState::Unknown => unknown(&gate, &found),
    };
    let power = catches.map_or_else(String::new, |change| format!(" {}", power(gate.form, change)));
    let of = labels
        .get(pair)
        .filter(|label| !label.is_empty())
        .map_or_else(String::new, |l| format!(", {l}"));
    let unless = if gate.form == Form::FailUnless { "unless " } else { "" };
    GateView {
        words: format!("{unless}{gate}{of}: {measured}; {verdict}.{power}"),
        outcome: state.outcome(),
        noise_floor: limits.floor,
        form: gate.form,
        gate,
        pair,
        change,
        ci95,
        state,
        catches,
    }
}

/// Why there is nothing to judge.
fn unknown(gate: &Gate, found: &Found) -> String {
    if let Some(why) = &found.withheld {
        return why.clone();
    }
    let few = if gate.measure == Measure::Tps {
        ""
    } else {
        "too few transactions for that percentile, or "
    };
    format!("undecided: {few}{}", reason(found.ratio.why, "no interval"))
}

/// What such a gate can show, in a sentence.
fn power(form: Form, change: f64) -> String {
    let often = format::whole_percent(POWER);
    if !(1.0 / (1.0 + HOPELESS) - 1.0..=HOPELESS).contains(&change) {
        return format!(
            "The repeats differ so much that it does not catch a tenfold change in {often}% of such runs."
        );
    }
    match form {
        Form::FailIf => format!("This gate catches {} in {often}% of such runs.", signed(change)),
        Form::FailUnless => {
            format!("A true change of {} is shown in {often}% of such runs.", signed(change))
        }
    }
}

/// A change in percent with its sign.
pub(crate) fn signed(change: f64) -> String {
    let text = format::percent(change);
    if change > 0.0 { format!("+{text}%") } else { format!("{}%", text.replace('-', "−")) }
}
