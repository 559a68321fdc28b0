//! Sentences on the highest tps of a client sweep.

use pgdyno_text::format;

use super::super::factors::peak_between;
use super::super::phrases::{capital, rate, so_far};
use super::leader;
use pgdyno_analysis::{RunView, ScalingView, TreatmentView};

/// Most combinations of the other factors' levels that are named.
const SHOWN: usize = 6;

pub(super) fn answer(view: &RunView) -> Vec<String> {
    let mut out: Vec<String> =
        view.scaling.iter().take(SHOWN).filter_map(|s| one(view, s)).collect();
    if out.is_empty() {
        return leader::answer(view);
    }
    if view.scaling.len() > SHOWN {
        out.push(format!("{} more below.", view.scaling.len() - SHOWN));
    }
    out
}

/// Names the highest tps of one sweep, as a multiple of the tps with the fewest clients.
fn one(view: &RunView, sweep: &ScalingView) -> Option<String> {
    let clients = |t: &TreatmentView| view.plan.treatments[t.index].clients;
    let mut measured: Vec<&TreatmentView> = sweep
        .treatments
        .iter()
        .filter_map(|i| view.treatments.get(*i))
        .filter(|t| t.tps.is_some())
        .collect();
    measured.sort_by_key(|t| clients(t));
    let tps = |t: &TreatmentView| t.tps.as_ref().map_or(0.0, |tps| tps.mean);
    let highest = measured.iter().copied().max_by(|a, b| tps(a).total_cmp(&tps(b)))?;
    let (fewest, most) = (measured.first()?, measured.last()?);
    let grown = (tps(fewest) > 0.0 && fewest.index != highest.index).then(|| {
        format!(
            ", {} times the tps of {}",
            format::times(tps(highest) / tps(fewest)),
            format::counted(clients(fewest), "client")
        )
    });
    let still = (highest.index == most.index && measured.len() > 1)
        .then_some("; more clients were not measured, and may give more");
    let given = match sweep.given.as_str() {
        "" => String::new(),
        given => format!("{given}: "),
    };
    let peak = peak_between(view, &sweep.treatments).map(|peak| format!("; {peak}"));
    let once = measured.iter().all(|t| t.trials <= 1).then_some(" (one trial each)");
    let said = format!(
        "{}{given}highest with {}, {}{}{}{}{}.",
        so_far(view),
        format::counted(clients(highest), "client"),
        rate(view, highest),
        grown.unwrap_or_default(),
        once.unwrap_or_default(),
        peak.unwrap_or_default(),
        still.unwrap_or_default()
    );
    Some(capital(&said))
}
