//! Sentences on maximum rates.

use pgdyno_model::search::{Find, Slo};
use pgdyno_text::format;

use super::phrases::interval;
use pgdyno_analysis::{RunView, TreatmentView};

/// Names the highest rate at which each treatment keeps the objective; empty without a search.
pub(crate) fn capacities(view: &RunView) -> Vec<String> {
    let of = |find: &Find| view.treatments.iter().map(|t| capacity(t, &find.slo)).collect();
    view.plan.find.as_ref().map_or_else(Vec::new, of)
}

fn capacity(t: &TreatmentView, slo: &Slo) -> String {
    let found = match &t.tps {
        Some(tps) => {
            let why = t.reason.as_ref().filter(|_| tps.ci95.is_none());
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            let generator = if t.generator_limited > 0 {
                "; generator-limited: more may be possible with a faster load generator"
            } else {
                ""
            };
            format!("{}/s{}{why} keeps {slo}{generator}", format::rate(tps.mean), interval(tps))
        }
        None => format!("no rate is known to keep {slo}"),
    };
    format!("{}: {found}.", t.label)
}

/// Says how the rates were found; none for a plan that looks for none.
pub(super) fn how_found(view: &RunView) -> Option<String> {
    let find = view.plan.find.as_ref()?;
    Some(format!(
        "What is compared are maximum rates: open-loop arrivals, bracketed and bisected to {}% in \
         steps of {}, each answer confirmed over the whole window. An interval is that of such \
         searches, and its rate may lie below the true one by as much.",
        format::percent(find.resolution),
        find.step
    ))
}
