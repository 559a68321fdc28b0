//! The highest rate that keeps an objective: what each treatment's searches tried.

use pgdyno_model::format;
use pgdyno_model::search::Step;

use super::view::{CapacityView, CurvePoint, RunView, TreatmentView, TrialState};

/// Nothing for a plan that looks for no rate.
pub(crate) fn views(view: &RunView) -> Vec<CapacityView> {
    let Some(find) = &view.plan.find else { return Vec::new() };
    let capacity = |t: &TreatmentView| {
        let trials = view
            .trials
            .iter()
            .filter(|x| x.treatment == t.index && x.state == TrialState::Completed);
        let points = trials.flat_map(|x| {
            let steps = x.search.iter().flat_map(|search| &search.steps);
            steps.filter_map(|step| point(x.ordinal, step))
        });
        let mut curve: Vec<CurvePoint> = points.collect();
        curve.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let found = match &t.tps {
            Some(tps) => {
                let interval = tps.ci95.map_or_else(
                    || t.reason.as_ref().map_or_else(String::new, |why| format!(" ({why})")),
                    |[lo, hi]| format!(" (95% CI {} to {})", format::rate(lo), format::rate(hi)),
                );
                let generator = if t.generator_limited > 0 {
                    "; generator-limited: more may be possible with a faster load generator"
                } else {
                    ""
                };
                format!("{}/s{interval} keeps {}{generator}", format::rate(tps.mean), find.slo)
            }
            None => format!("no rate is known to keep {}", find.slo),
        };
        CapacityView { treatment: t.index, curve, words: format!("{}: {found}.", t.label) }
    };
    view.treatments.iter().map(capacity).collect()
}

fn point(ordinal: u32, step: &Step) -> Option<CurvePoint> {
    Some(CurvePoint {
        rate: step.rate?,
        ordinal,
        confirming: step.confirming,
        latency_us_p50: step.latency_us_p50,
        latency_us_p95: step.latency_us_p95,
        latency_us_p99: step.latency_us_p99,
        broken: step.broken.clone(),
    })
}

/// How the rates were found.
pub(crate) fn note(view: &RunView) -> Option<String> {
    let find = view.plan.find.as_ref()?;
    Some(format!(
        "What is compared are maximum rates: open-loop arrivals, bracketed and bisected to {}% in steps of {}, each answer confirmed over the \
         whole window. An interval is that of such searches, and its rate may lie below the true one by as much.",
        format::percent(find.resolution),
        find.step
    ))
}
