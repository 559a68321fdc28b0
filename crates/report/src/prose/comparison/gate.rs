//! Results of gates in sentences.

use pgdyno_stats::{NoInterval, POWER};
use pgdyno_text::format;

use super::{HOPELESS, equal_runs_unknown, reason};
use pgdyno_analysis::Withheld;
use pgdyno_analysis::comparison::runs::{GateState, GateUnknown, GateView};
use pgdyno_analysis::gate::Form;

/// Renders why nothing is known of a gate's condition.
fn why_unknown(unknown: &GateUnknown) -> String {
    match unknown.withheld {
        _ if unknown.lacks => "a trial has too few transactions for that percentile".to_owned(),
        Some(Withheld::RunNotFinished) => "the run is not finished".to_owned(),
        Some(Withheld::TooFewRuns { found }) => equal_runs_unknown(found),
        None => reason(unknown.why, "no interval"),
    }
}

/// Renders the result of a gate for the pair `label`.
pub(crate) fn gate(view: &GateView, label: &str) -> String {
    let measured = match (view.change, view.ci95) {
        (Some(change), Some([lo, hi])) => {
            format!("{} (95% CI {} to {})", signed(change), signed(lo), signed(hi))
        }
        (Some(change), None) => match view.within_runs {
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
    let asks_less = view.noise_floor.map(|floor| {
        format!(
            "the gate asks for less than the noise floor of this host, {}%",
            format::percent(floor)
        )
    });
    let verdict = match view.state {
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
        GateState::Unknown | GateState::NoTrial => {
            let found = match view.form {
                Form::FailIf => "undecided",
                Form::FailUnless => "not shown",
            };
            let why = match view.state {
                GateState::NoTrial => NoInterval::OneSideEmpty.to_string(),
                _ => why_unknown(&view.unknown),
            };
            format!("{found}: {why}")
        }
    };
    let power =
        view.catches.map_or_else(String::new, |change| format!(" {}", power(view.form, change)));
    let of = if label.is_empty() { String::new() } else { format!(", {label}") };
    let unless = if view.form == Form::FailUnless { "unless " } else { "" };
    format!("{unless}{}{of}: {measured}; {verdict}.{power}", view.gate)
}

/// Says which true change such a gate shows.
fn power(form: Form, change: f64) -> String {
    let often = format::whole_percent(POWER);
    if !(1.0 / (1.0 + HOPELESS) - 1.0..=HOPELESS).contains(&change) {
        return format!(
            "The repeats differ so much that it does not catch a tenfold change in {often}% of \
             such runs."
        );
    }
    match form {
        Form::FailIf => format!("This gate catches {} in {often}% of such runs.", signed(change)),
        Form::FailUnless => {
            format!("A true change of {} is shown in {often}% of such runs.", signed(change))
        }
    }
}

/// Renders a change in percent with its sign.
fn signed(change: f64) -> String {
    let text = format::percent(change);
    if change > 0.0 { format!("+{text}%") } else { format!("{}%", text.replace('-', "−")) }
}
