//! Renders the generators of a run: who is far away, busy, or late is seen here, not in the sums.

use comfy_table::Cell;
use pgdyno_text::format;

use super::table::{NONE, TitledTable, labelled_rows, milliseconds, right};
use super::text::{Detail, plain};
use pgdyno_analysis::{GeneratorView, RunView};

/// Rows of a brief report.
const ROWS: usize = 12;

const LEGEND: &str = "Of each generator: latency in ms, over trials as a range; CPU of one core; \
                      start: the trial farthest from the agreed instant, in ms.";

/// Renders the table of generators in at most `width` columns; nothing if one process offered the
/// load.
pub(super) fn lines(view: &RunView, width: u16, detail: Detail) -> Vec<String> {
    let rows = view.treatments.iter().flat_map(|t| labelled_rows(&t.label, &t.generators, row));
    let names = ["treatment", "generator"].map(Cell::new);
    let figures = ["clients", "threads", "tps", "mean", "p50", "p99", "CPU", "start"].map(right);
    let header = names.into_iter().chain(figures).collect();
    let title = "Generators";
    let table = TitledTable { title, header, rows: rows.collect(), most: ROWS, legend: LEGEND };
    table.lines(width, detail)
}

fn row(label: &str, generator: &GeneratorView) -> Vec<Cell> {
    let texts = [
        generator.clients.to_string(),
        generator.threads.to_string(),
        generator.tps.map_or_else(|| NONE.to_owned(), format::rate),
        milliseconds(generator.latency_us_mean),
        range(generator.latency_us_p50),
        range(generator.latency_us_p99),
        generator.cpus.map_or_else(|| NONE.to_owned(), |c| format!("{}%", format::percent(c))),
        format!(
            "{:+.3} ±{:.3}",
            generator.start_skew_us / 1e3,
            generator.clock_uncertainty_us / 1e3
        ),
    ];
    let names = [Cell::new(label), Cell::new(plain(&generator.name))];
    names.into_iter().chain(texts.into_iter().map(right)).collect()
}

/// `4.28`, or `4.28–5.01` where trials differ.
fn range(us: Option<[f64; 2]>) -> String {
    let Some(ends) = us else { return NONE.to_owned() };
    let [low, high] = ends.map(format::milliseconds);
    if low == high { low } else { format!("{low}–{high}") }
}
