//! Renders runs beside each other, mostly of one experiment on several hosts: the tps of each
//! treatment in each run.

use std::collections::BTreeSet;

use comfy_table::Cell;
use pgdyno_text::format;

use super::table::{NONE, right, table_lines};
use super::terminal::half_width;
use super::text::{plain, wrap};
use pgdyno_analysis::{RunView, TreatmentView};

use crate::RunReport;

const BY_HOST: &str = "tps ± half of its 95% confidence interval, by host. Hosts are not blocks: \
                       intervals and tests hold within a host. `pgdyno compare --by host RUN RUN` \
                       compares two.";
const BY_RUN: &str = "tps ± half of its 95% confidence interval, by run. Intervals and tests hold \
                      within a run. `pgdyno compare RUN RUN` compares two.";

/// Renders the table of treatments and runs in at most `width` columns. Each run has its host's
/// name, or its own where a host would stand twice.
pub fn hosts(reports: &[RunReport], width: u16) -> String {
    let runs: Vec<&RunView> = reports.iter().map(|report| &report.view).collect();
    let by_host: BTreeSet<String> = runs.iter().map(|view| host(view)).collect();
    let is_by_host = by_host.len() == runs.len() && !by_host.contains("");
    let name = |view: &RunView| if is_by_host { host(view) } else { view.run.id.clone() };
    let cell = |view: &RunView, label: &str| {
        let treatment = view.treatments.iter().find(|treatment| treatment.label == label);
        treatment.and_then(tps).unwrap_or_else(|| NONE.to_owned())
    };
    let mut labels: Vec<&String> = Vec::new();
    for treatment in runs.iter().flat_map(|view| &view.treatments) {
        if !labels.contains(&&treatment.label) {
            labels.push(&treatment.label);
        }
    }
    let row = |label: &&String| {
        let cells = runs.iter().map(|view| right(cell(view, label)));
        [Cell::new(plain(label))].into_iter().chain(cells).collect()
    };
    let names = runs.iter().map(|view| right(plain(&name(view))));
    let header = [Cell::new("treatment")].into_iter().chain(names).collect();
    let mut lines = table_lines(header, labels.iter().map(row).collect(), width);
    lines.extend(wrap(if is_by_host { BY_HOST } else { BY_RUN }, usize::from(width), ""));
    lines.join("\n") + "\n"
}

/// Names the machines that a run ran on; empty if they are not known.
fn host(view: &RunView) -> String {
    view.hosts().join(" and ")
}

/// `504 ±14.1%`; none without a completed trial.
fn tps(treatment: &TreatmentView) -> Option<String> {
    let tps = treatment.tps.as_ref()?;
    let half = tps.ci95.filter(|_| tps.mean > 0.0);
    let half = half.map(|[low, high]| half_width((high - low) / 2.0 / tps.mean));
    Some(format!("{}{}", format::rate(tps.mean), half.unwrap_or_default()))
}
