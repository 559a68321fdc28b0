//! Renders the stages of rates over time: what each offered, and how long its transactions took.

use comfy_table::Cell;
use pgdyno_analysis::{RunView, StageView};
use pgdyno_model::units::Span;
use pgdyno_text::format;

use super::table::{NONE, TitledTable, labelled_rows, milliseconds, right};
use super::text::Detail;

/// Rows of a brief report.
const ROWS: usize = 24;

const LEGEND: &str = "Of each stage of the rate: transactions due and done per second, and latency \
                      in ms from when they were due. A transaction belongs to the stage in which \
                      it ended.";

/// Renders the table of stages in at most `width` columns; nothing where no rate has any.
pub(super) fn lines(view: &RunView, width: u16, detail: Detail) -> Vec<String> {
    let rows = view.treatments.iter().flat_map(|t| labelled_rows(&t.label, &t.stages, row));
    let names = ["treatment", "stage"].map(Cell::new);
    let figures = ["due", "tps", "p50", "p95", "p99", "max", "failed"].map(right);
    let header = names.into_iter().chain(figures).collect();
    let table =
        TitledTable { title: "Stages", header, rows: rows.collect(), most: ROWS, legend: LEGEND };
    table.lines(width, detail)
}

fn row(label: &str, stage: &StageView) -> Vec<Cell> {
    let texts = [
        format::rate(stage.due),
        stage.tps.map_or_else(|| NONE.to_owned(), format::rate),
        milliseconds(stage.latency_us_p50),
        milliseconds(stage.latency_us_p95),
        milliseconds(stage.latency_us_p99),
        milliseconds(stage.latency_us_max),
        format::count(stage.failed),
    ];
    let names = [label.to_owned(), name(stage)];
    names.into_iter().map(Cell::new).chain(texts.into_iter().map(right)).collect()
}

/// `500 for 1m`, or `500 to 2000 for 30s`; `12 stages for 1h` where it stands for several.
fn name(stage: &StageView) -> String {
    let length = Span::from_secs(stage.seconds);
    match stage.stages {
        0 | 1 if stage.from.total_cmp(&stage.to).is_eq() => format!("{} for {length}", stage.from),
        0 | 1 => format!("{} to {} for {length}", stage.from, stage.to),
        several => format!("{several} stages for {length}"),
    }
}
