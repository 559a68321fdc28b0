//! Sentences on how a run came into the store, and what became of it there.

use pgdyno_text::format;

use pgdyno_analysis::RunView;
use pgdyno_store::Thinning;

/// Says what is not known of a run that no experiment describes.
pub(super) fn ad_hoc(view: &RunView) -> Option<String> {
    view.ad_hoc.then(|| {
        "Ad hoc: `pgdyno pgbench --store` measured a server as it stood. Its data, its caches, its \
         storage and what else ran beside it were not controlled."
            .to_owned()
    })
}

/// Says what a thinning removed, and when.
pub(super) fn thinned(found: &Thinning) -> String {
    let mut gone = Vec::new();
    let mut lost = Vec::new();
    if found.samples > 0 {
        gone.push(format!("{} of telemetry", format::counted(found.samples, "sample")));
        lost.push(format!(
            "charts and exports of telemetry have one point in {} s and changes of tps lack \
             telemetry's causes",
            found.every_s
        ));
    }
    if found.seconds > 0 {
        gone.push(format!(
            "the latency distribution of {}",
            format::counted(found.seconds, "second")
        ));
        lost.push("the heat map of latency is gone".to_owned());
    }
    format!(
        "Thinned on {}: {} were removed, so that {}. Figures, intervals and percentiles are as \
         before.",
        found.thinned_at,
        gone.join(" and "),
        lost.join(", and ")
    )
}

/// Says that the run was given more repeats, and what that costs.
pub(super) fn extended(view: &RunView) -> Option<String> {
    let after = &view.plan.extended_after;
    let looks: Vec<String> = after.iter().map(ToString::to_string).collect();
    (!after.is_empty()).then(|| {
        format!(
            "The run was complete after {} repeats and was then given {} in all. Verdicts and \
             intervals pay for each look (Bonferroni), which makes intervals wider than those of \
             so many repeats fixed beforehand.",
            looks.join(" and "),
            view.plan.repeats()
        )
    })
}
