//! Renders the groups of treatments' clients: what each did, and how long its transactions took.

use comfy_table::Cell;
use pgdyno_analysis::{GroupView, LatencyView, RunView};
use pgdyno_text::format;

use super::table::{NONE, TitledTable, labelled_rows, milliseconds, right};
use super::text::{Detail, plain};

/// Rows of a brief report.
const ROWS: usize = 24;

const LEGEND: &str = "Of each group of clients: tps with its 95% confidence interval, and latency \
                      in ms from when transactions were due.";

/// Renders the table of groups in at most `width` columns; nothing where clients have none.
pub(super) fn lines(view: &RunView, width: u16, detail: Detail) -> Vec<String> {
    let rows = view.treatments.iter().flat_map(|t| labelled_rows(&t.label, &t.groups, row));
    let names = ["treatment", "group"].map(Cell::new);
    let figures = ["clients", "due", "tps", "95% CI", "p50", "p95", "p99", "failed"].map(right);
    let header = names.into_iter().chain(figures).collect();
    let title = "Groups of clients";
    let table = TitledTable { title, header, rows: rows.collect(), most: ROWS, legend: LEGEND };
    table.lines(width, detail)
}

fn row(label: &str, group: &GroupView) -> Vec<Cell> {
    let tps = group.tps.as_ref();
    let none = || NONE.to_owned();
    let ends = tps.and_then(|tps| tps.ci95).map(|ci| ci.map(format::rate));
    let latency = |of: fn(&LatencyView) -> f64| milliseconds(group.latency_us.as_ref().map(of));
    let texts = [
        group.clients.to_string(),
        group.rate.clone().unwrap_or_else(none),
        tps.map_or_else(none, |tps| format::rate(tps.mean)),
        ends.map_or_else(none, |[low, high]| format!("{low}–{high}")),
        latency(|l| l.p50),
        latency(|l| l.p95),
        latency(|l| l.p99),
        format::count(group.failed),
    ];
    let names = [Cell::new(label), Cell::new(name(group))];
    names.into_iter().chain(texts.into_iter().map(right)).collect()
}

/// `readers`, with its think time and server in parentheses.
fn name(group: &GroupView) -> String {
    let think_time = group.think_time.as_ref().map(|time| format!("thinks {time}"));
    let server = group.server.as_ref().map(|server| format!("server {server}"));
    let more: Vec<String> = think_time.into_iter().chain(server).collect();
    match more.is_empty() {
        true => plain(&group.name),
        false => plain(&format!("{} ({})", group.name, more.join(", "))),
    }
}
