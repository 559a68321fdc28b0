//! Sentences on the noise of a host, and on what a plan will find there.

use pgdyno_stats::NoHostNoise;
use pgdyno_text::format::{self, counted};

use super::comparison::HOPELESS;
use super::noise_prior::conditioned;
use super::phrases::share;
use pgdyno_analysis::host_noise::{BUSY, Finds, Forecast, HostNoiseView, NoForecast};

/// Says what the noise of a host allows, and what to do to see less.
pub(crate) fn allowance(view: &HostNoiseView) -> Vec<String> {
    let mut out = Vec::new();
    if view.finds.is_empty() {
        out.push(
            "No run here has repeats, so that the noise of its trials is not known.".to_owned(),
        );
    } else {
        out.push(format!(
            "In 80% of cases a run of 4 treatments finds a difference of {}.",
            with_repeats(&view.finds)
        ));
    }
    out.extend(longer_or_more(view));
    out.push(match (view.two_runs_find, view.unknown) {
        (Some(share), _) => format!(
            "In 80% of cases `pgdyno compare` of two runs of another experiment finds a difference \
             of {}.",
            difference(share)
        ),
        (None, Some(NoHostNoise::Unlike)) => {
            "How far equal runs of another experiment differ is not known: the experiments here \
             differ too much in it. `compare` needs three earlier runs of the experiment itself."
                .to_owned()
        }
        (None, None) => {
            "How far equal runs of another experiment differ is not known well enough yet: run one \
             of these again, unchanged."
                .to_owned()
        }
        (None, Some(NoHostNoise::NotRepeated)) => {
            "How far equal runs differ is not known: no experiment was run twice here, unchanged. \
             `pgdyno run` one again, on another day if it may."
                .to_owned()
        }
    });
    out
}

/// Says whether longer trials or more of them help, by how much of the trials' noise is in their
/// seconds.
fn longer_or_more(view: &HostNoiseView) -> Option<String> {
    let (seconds, trials) = (view.seconds?.spread, view.trials?.spread);
    let share = (seconds / trials).powi(2);
    if !share.is_finite() {
        return None;
    }
    Some(if share >= 0.5 {
        "Most of what trials differ by is within their seconds: longer trials help as more of them \
         do."
        .to_owned()
    } else {
        format!(
            "{}% of what trials differ by is within their seconds: more repeats help, longer \
             trials hardly.",
            format::whole_percent(share)
        )
    })
}

/// Says what a plan will find, as the last lines of a dry run.
pub(crate) fn forecast(found: &Result<Forecast, NoForecast>) -> Vec<String> {
    let mut out = vec![finds(found)];
    let why = found.as_ref().ok().and_then(|forecast| forecast.conditioning.as_ref());
    out.extend(why.map(conditioned));
    out
}

fn finds(found: &Result<Forecast, NoForecast>) -> String {
    match found {
        Ok(forecast) => format!(
            "In 80% of cases it finds a difference of {}: trials here differ by {} ({}; `pgdyno \
             noise`).",
            with_repeats(&forecast.finds),
            share(forecast.trials.spread),
            format_args!(
                "{} of {}",
                counted(forecast.runs as u64, "run"),
                if forecast.is_own { "this experiment" } else { "this host's experiments" }
            )
        ),
        Err(NoForecast::NothingToCompare) => {
            "Nothing: a difference takes two treatments and two repeats.".to_owned()
        }
        Err(NoForecast::NoRun { on_a_busy_host }) => {
            let mut words =
                "Not known: no completed run on this host has repeats that tell its noise."
                    .to_owned();
            if let Some(found) = on_a_busy_host {
                words.push_str(&format!(
                    " Where trials differ by {}%, as on two busy cores, it finds a difference of \
                     {} in 80% of cases.",
                    format::whole_percent(BUSY),
                    difference(*found)
                ));
            }
            words
        }
        Err(NoForecast::Unreadable { why }) => format!("Not known: {why}."),
    }
}

/// Says the smallest difference that a plan finds on a busy host, as a clause.
pub fn on_a_busy_host(found: f64) -> String {
    format!("finds {} beside {}% of noise", difference(found), format::whole_percent(BUSY))
}

/// Lists differences by repeats: `7.6% with 3 repeats, 4.1% with 5`.
fn with_repeats(finds: &[Finds]) -> String {
    // Of those that are beyond use the last says it.
    let beyond = finds.iter().take_while(|finds| finds.difference > HOPELESS).count();
    let each = finds[beyond.saturating_sub(1)..].iter().enumerate().map(|(index, finds)| {
        let repeats = match index {
            0 => counted(finds.repeats, "repeat"),
            _ => finds.repeats.to_string(),
        };
        format!("{} with {repeats}", difference(finds.difference))
    });
    each.collect::<Vec<_>>().join(", ")
}

fn difference(found: f64) -> String {
    if found > HOPELESS { "more than 100%".to_owned() } else { share(found) }
}
