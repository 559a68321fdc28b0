//! The highest rate that keeps an objective: what each treatment's searches tried.

use pgdyno_model::Plan;
use pgdyno_model::search::{Limit, Slo, Step};

use super::view::{CapacityView, CurvePoint, ObjectiveView, TrialState, TrialView};

/// Curves of all treatments; none for a plan that looks for no rate.
pub(super) fn views(plan: &Plan, trials: &[TrialView]) -> Vec<CapacityView> {
    let Some(find) = &plan.find else { return Vec::new() };
    let capacity = |treatment: usize| {
        let is_its = |x: &&TrialView| x.treatment == treatment && x.state == TrialState::Completed;
        let points = trials.iter().filter(is_its).flat_map(|x| {
            let steps = x.search.iter().flat_map(|search| &search.steps);
            steps.filter_map(|step| point(x.ordinal, step))
        });
        let mut curve: Vec<CurvePoint> = points.collect();
        curve.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let objective = objective(&find.slo);
        CapacityView { treatment, objective, curve }
    };
    (0..plan.treatments.len()).map(capacity).collect()
}

fn objective(slo: &Slo) -> Option<ObjectiveView> {
    slo.0.iter().find_map(|limit| match limit {
        Limit::Latency { percentile, below } => Some(ObjectiveView {
            percentile: format!("p{percentile}"),
            limit_us: below.0.as_secs_f64() * 1e6,
            text: slo.to_string(),
        }),
        Limit::Failed(_) => None,
    })
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
