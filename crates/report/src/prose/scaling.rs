//! Sentences on how tps grows with the number of clients, and what bounds it.

use pgdyno_model::Treatment;
use pgdyno_stats::{Fitted, Scaling};
use pgdyno_text::format;

use super::phrases::with;
use pgdyno_analysis::{ScalingView, TreatmentView};

/// Renders the law of one client sweep, or why there is none.
pub(crate) fn scaling(view: &ScalingView) -> String {
    let with = with(&view.given);
    match &view.law {
        Ok(law) => format!("{with}{}", sentence(law)),
        Err(why) => format!("{with}no law of scaling is fitted: {why}."),
    }
}

/// Renders the law with its figures, its peak and how well it fits.
fn sentence(law: &Scaling) -> String {
    /// Error of a fit (a share) beyond which the law does not describe the sweep.
    const POOR: f64 = 0.1;
    let mut out = format!(
        "the Universal Scalability Law has λ = {} tps, σ = {}, κ = {}",
        estimate(law.lambda, format::rate),
        estimate(law.sigma, format::times),
        estimate(law.kappa, format::times)
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
                estimate(*peak, format::rate),
                estimate(*clients, format::rate)
            ));
        }
        (None, Some(limit)) => {
            out.push_str(&format!(
                "; no peak, {} tps are approached",
                estimate(*limit, format::rate)
            ));
        }
        _ => out.push_str("; no limit shows"),
    }
    if let Some(knee) = law.knee {
        out.push_str(&format!(", the knee is at {} clients", estimate(knee, format::rate)));
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

/// Renders a fitted parameter with its interval.
fn estimate(fitted: Fitted, show: fn(f64) -> String) -> String {
    match fitted.ci95 {
        Some([lo, hi]) => format!("{} (95% CI {}–{})", show(fitted.value), show(lo), show(hi)),
        None => format!("{} (no interval)", show(fitted.value)),
    }
}

/// Compares a treatment with Little's law and with the flush rate of its storage.
pub(super) fn closed_loop(t: &TreatmentView, planned: &Treatment) -> Vec<String> {
    /// Smaller deviations come from histograms and the window's edges.
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
            "{}: {} commits a WAL flush; its {} flushes/s are {}% of what one writer gets from \
             storage `{}`.",
            t.label,
            format::times(commits),
            format::rate(flushes),
            format::percent(flushes / rate),
            planned.storage
        ));
    }
    out
}
