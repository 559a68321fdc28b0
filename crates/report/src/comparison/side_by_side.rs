//! Renders a run beside imported figures as text.

use std::fmt::Write as _;

use pgdyno_text::format;

use super::text::escaped;
use crate::prose;
use crate::text::plain;
use pgdyno_analysis::comparison::imported::{SideBySideRow, SideBySideView};

/// Renders both sides, one table each; as Markdown if `markdown`.
pub fn side_by_side(view: &SideBySideView, markdown: bool) -> String {
    let mut out = String::new();
    let source = plain(&view.source);
    let heading = |text: String| if markdown { format!("**{text}**\n") } else { text };
    let _ = writeln!(
        out,
        "{}",
        heading(format!(
            "A: {}, imported from {source}: not measured by pgdyno",
            plain(&view.imported)
        ))
    );
    let _ = writeln!(out, "{}\n", table(&view.theirs, markdown));
    let _ = writeln!(out, "{}", heading(format!("B: {}, measured", plain(&view.run))));
    let _ = writeln!(out, "{}", table(&view.ours, markdown));
    for note in prose::side_by_side_notes(view) {
        let _ = write!(out, "\n- {}.", plain(&note));
    }
    out
}

pub(crate) const HEADER: [&str; 7] =
    ["", "repeats", "clients", "tps", "95% CI", "ratio to best", "mean latency ms"];

fn table(rows: &[SideBySideRow], markdown: bool) -> String {
    let rows = rows.iter().map(cells);
    if markdown {
        let line =
            |cells: [String; 7]| format!("| {} |\n", cells.map(|cell| escaped(&cell)).join(" | "));
        let head = line(HEADER.map(str::to_owned));
        return rows
            .fold(format!("{head}|---|{}\n", "--:|".repeat(6)), |all, row| all + &line(row));
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::TableStyle::default()).set_header(HEADER).add_rows(rows);
    table.trim_fmt()
}

/// Returns the cells of a row: its label, then figures.
pub(crate) fn cells(row: &SideBySideRow) -> [String; 7] {
    let unknown = || "–".to_owned();
    [
        if row.label.is_empty() { "the one treatment".to_owned() } else { plain(&row.label) },
        row.repeats.map_or_else(unknown, |n| n.to_string()),
        row.clients.map_or_else(unknown, |n| n.to_string()),
        format::rate(row.tps),
        row.tps_ci95.map_or_else(unknown, |[low, high]| {
            format!("{} to {}", format::rate(low), format::rate(high))
        }),
        format::times(row.ratio_to_best),
        row.latency_ms.map_or_else(unknown, |ms| format::milliseconds(ms * 1000.0)),
    ]
}
