//! Texts of the HTML report on why treatments differ.

use pgdyno_model::format;
use serde::Serialize;

use crate::analysis::{FigureView, GapView, Part, PartView, RunView, WhyView};

const NONE: &str = "–";

/// Parts shown before the rest is added up.
const PARTS: usize = 12;

/// Difference of two treatments.
#[derive(Serialize)]
pub(super) struct Pair {
    a: String,
    b: String,
    words: Vec<String>,
    /// Latency by statement, then active time by wait event.
    gaps: Vec<Table>,
    figures: Vec<FigureRow>,
    missing: Vec<String>,
}

#[derive(Serialize)]
struct Table {
    title: &'static str,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    what: String,
    /// Whether `what` is a statement or an event's name, rather than words.
    code: bool,
    /// Milliseconds per transaction of A, of B and of the gap; then the share.
    cells: [String; 4],
}

#[derive(Serialize)]
struct FigureRow {
    name: String,
    a: String,
    b: String,
    ratio: String,
}

pub(super) fn pairs(view: &RunView) -> Vec<Pair> {
    let label =
        |index: usize| view.treatments.get(index).map(|t| t.label.clone()).unwrap_or_default();
    let pair = |why: &WhyView| Pair {
        a: label(why.to),
        b: label(why.treatment),
        words: why.words.iter().map(|words| format!("{words}.")).collect(),
        gaps: [("Latency by statement", &why.latency), ("Active time by wait event", &why.active)]
            .into_iter()
            .filter_map(|(title, gap)| Some(Table { title, rows: rows(gap.as_ref()?) }))
            .collect(),
        figures: why.figures.iter().map(figure).collect(),
        missing: why.missing.clone(),
    };
    view.why.iter().map(pair).collect()
}

fn rows(gap: &GapView) -> Vec<Row> {
    let shown = gap.parts.len().min(if gap.parts.len() > PARTS { PARTS - 1 } else { PARTS });
    let mut rows: Vec<Row> = gap.parts[..shown].iter().map(row).collect();
    let rest = &gap.parts[shown..];
    if !rest.is_empty() {
        let sum = |of: fn(&PartView) -> f64| rest.iter().map(of).sum::<f64>();
        let share = rest.iter().map(|p| p.share).sum::<Option<f64>>();
        rows.push(Row {
            what: format!("{} others", rest.len()),
            code: false,
            cells: cells(
                sum(|p| p.a_us),
                sum(|p| p.b_us),
                sum(|p| p.gap_us.value),
                share_of(share, None),
            ),
        });
    }
    let whole = gap.gap_us.value;
    rows.push(Row {
        what: "all".into(),
        code: false,
        cells: cells(
            gap.a_us,
            gap.b_us,
            whole,
            if gap.parts.iter().any(|p| p.share.is_some()) { "100%".into() } else { NONE.into() },
        ),
    });
    rows
}

fn row(part: &PartView) -> Row {
    Row {
        what: part.what.clone(),
        code: matches!(part.part, None | Some(Part::Statement { .. })),
        cells: cells(part.a_us, part.b_us, part.gap_us.value, share_of(part.share, part.ci95)),
    }
}

fn cells(a: f64, b: f64, gap: f64, share: String) -> [String; 4] {
    let sign = if gap > 0.0 { "+" } else { "" };
    [
        format::milliseconds(a),
        format::milliseconds(b),
        format!("{sign}{}", format::milliseconds(gap)),
        share,
    ]
}

fn share_of(share: Option<f64>, ci95: Option<[f64; 2]>) -> String {
    let percent = format::whole_percent;
    match (share, ci95) {
        (Some(share), Some([lo, hi])) => {
            format!("{}% ({}–{})", percent(share), percent(lo), percent(hi))
        }
        (Some(share), None) => format!("{}%", percent(share)),
        (None, _) => NONE.to_owned(),
    }
}

fn figure(f: &FigureView) -> FigureRow {
    let value = |v: Option<f64>| v.map_or_else(|| NONE.to_owned(), format::rate);
    FigureRow {
        name: if f.unit == "count" {
            f.name.to_owned()
        } else {
            format!("{} ({})", f.name, f.unit)
        },
        a: value(f.a),
        b: value(f.b),
        ratio: super::verdicts::with_interval(f.ratio, f.ci95),
    }
}
