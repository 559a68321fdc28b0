//! How tps grows with the number of clients, and what bounds it.

use std::collections::BTreeSet;

use pgdyno_model::{Levels, Plan, Treatment, format};
use pgdyno_stats::{self as stats, Fitted, Scaling};

use super::treatment::TreatmentSamples;
use super::view::{ScalingView, TreatmentView};

/// The client sweeps of `plan`.
pub(super) fn sweeps(plan: &Plan, sums: &[TreatmentSamples]) -> Vec<ScalingView> {
    let bare = |t: &Treatment| Treatment {
        levels: Levels(Vec::new()),
        clients: 0,
        threads: 0,
        ..t.clone()
    };
    let given = |t: &Treatment| {
        Levels(t.levels.0.iter().filter(|(name, _)| name != "clients").cloned().collect())
            .to_string()
    };
    let mut groups: Vec<(Treatment, String, Vec<usize>)> = Vec::new();
    for (index, t) in plan.treatments.iter().enumerate() {
        // With a rate, tps is what was asked for and not what the clients reach.
        if t.options.rate.is_some() || plan.find.is_some() {
            continue;
        }
        let (bare, given) = (bare(t), given(t));
        match groups.iter_mut().find(|(b, g, _)| *b == bare && *g == given) {
            Some((.., members)) => members.push(index),
            None => groups.push((bare, given, vec![index])),
        }
    }
    groups
        .into_iter()
        .filter(|(.., members)| {
            let clients: BTreeSet<u32> =
                members.iter().map(|i| plan.treatments[*i].clients).collect();
            clients.len() > 2
        })
        .map(|(_, given, treatments)| {
            let trials: Vec<(u32, u32, f64)> = treatments
                .iter()
                .flat_map(|i| {
                    sums[*i]
                        .tps
                        .iter()
                        .map(|(block, tps)| (*block, plan.treatments[*i].clients, *tps))
                })
                .collect();
            let law = stats::scaling(&trials);
            let with = if given.is_empty() { String::new() } else { format!("With {given}: ") };
            let words = match &law {
                Ok(law) => format!("{with}{}", say(law)),
                Err(why) => format!("{with}no law of scaling is fitted: {why}."),
            };
            ScalingView { given, treatments, law: law.ok(), words }
        })
        .collect()
}

fn say(law: &Scaling) -> String {
    /// A law that is farther off than this describes something else.
    const POOR: f64 = 0.1;
    let mut out = format!(
        "the Universal Scalability Law has λ = {} tps, σ = {}, κ = {}",
        shown(law.lambda, format::rate),
        shown(law.sigma, format::times),
        shown(law.kappa, format::times)
    );
    match (&law.peak_clients, &law.peak) {
        (Some(clients), Some(peak)) => {
            let beyond = if clients.value > f64::from(law.measured_to) {
                format!(" (beyond the {} that were measured: extrapolated)", law.measured_to)
            } else {
                String::new()
            };
            out.push_str(&format!(
                "; the peak is {} tps at {} clients{beyond}",
                shown(*peak, format::rate),
                shown(*clients, format::rate)
            ));
        }
        (None, Some(limit)) => {
            out.push_str(&format!("; no peak, {} tps are approached", shown(*limit, format::rate)));
        }
        _ => out.push_str("; no limit shows"),
    }
    if let Some(knee) = law.knee {
        out.push_str(&format!(", the knee is at {} clients", shown(knee, format::rate)));
    }
    if law.worst > POOR {
        out.push_str(&format!(
            ". It is off by up to {}%, so that it describes this poorly",
            format::percent(law.worst)
        ));
    }
    out.push('.');
    out
}

fn shown(fitted: Fitted, show: fn(f64) -> String) -> String {
    match fitted.ci95 {
        Some([lo, hi]) => format!("{} (95% CI {}–{})", show(fitted.value), show(lo), show(hi)),
        None => format!("{} (no interval)", show(fitted.value)),
    }
}

/// What is to be said of a treatment by Little's law and of its flushes.
pub(crate) fn notes(t: &TreatmentView, planned: &Treatment) -> Vec<String> {
    /// Histograms and windows' edges make less.
    const OFF: f64 = 0.05;
    let mut out = Vec::new();
    if let Some(share) = t.little.filter(|share| (share - 1.0).abs() > OFF) {
        let rest = if share < 1.0 {
            "the rest of their time lies between transactions, in the load generator"
        } else {
            "the window is short beside its longest transactions"
        };
        out.push(format!(
            "{}: tps times mean latency comes to {} clients of {} (Little's law): {rest}.",
            t.label,
            format::times(share * f64::from(planned.clients)),
            planned.clients
        ));
    }
    if let (Some(commits), Some(flushes), Some(rate)) =
        (t.commits_per_flush, t.wal_flushes_per_second, t.fsync_per_second)
    {
        out.push(format!(
            "{}: {} commits a WAL flush; its {} flushes/s are {}% of what one writer gets from storage `{}`.",
            t.label,
            format::times(commits),
            format::rate(flushes),
            format::percent(flushes / rate),
            planned.storage
        ));
    }
    out
}
