//! A picture of a report's figures beside ours.

use std::fmt::Write as _;

const LABELS: f64 = 190.0;
const PLOT: f64 = 440.0;
const FIGURES: f64 = 130.0;
const ROW: f64 = 46.0;
const BAR: f64 = 16.0;
const TOP: f64 = 34.0;

/// A figure of a report, of ours, or both.
pub struct Row {
    /// Label beside the bars.
    pub label: String,
    /// The report's value.
    pub report: Option<f64>,
    /// Our value, with its 95% confidence interval.
    pub ours: Option<(f64, Option<[f64; 2]>)>,
}

/// Returns an SVG of horizontal bars that begin at zero: of each row the report's and ours, with a
/// line for the interval. `figure` writes a value.
pub fn svg(rows: &[Row], figure: impl Fn(f64) -> String) -> String {
    let ends = rows.iter().flat_map(|row| {
        let ours = row.ours.map(|(value, ends)| ends.map_or(value, |[_, to]| to.max(value)));
        row.report.into_iter().chain(ours)
    });
    let scale = PLOT / ends.fold(f64::MIN_POSITIVE, f64::max);
    let (width, height) = (LABELS + PLOT + FIGURES, TOP + ROW * rows.len() as f64 + 6.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let mut bar = |x: f64, y: f64, width: f64, fill: &str| {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" \
             fill=\"{fill}\"/>"
        );
    };
    bar(LABELS, 10.0, 16.0, REPORT);
    bar(LABELS + 110.0, 10.0, 16.0, OURS);
    for (at, row) in (0..).map(|n| TOP + ROW * f64::from(n)).zip(rows) {
        row.report.into_iter().for_each(|value| bar(LABELS, at + 4.0, value * scale, REPORT));
        row.ours.iter().for_each(|(value, _)| bar(LABELS, at + 22.0, value * scale, OURS));
    }
    let mut text = |x: f64, y: f64, anchor: &str, text: &str| {
        let _ =
            writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
    };
    text(LABELS + 22.0, 23.0, "start", "the report");
    text(LABELS + 132.0, 23.0, "start", "pgdyno's run, 95% interval");
    let mut intervals = String::new();
    for (at, row) in (0..).map(|n| TOP + ROW * f64::from(n)).zip(rows) {
        text(LABELS - 10.0, at + 26.0, "end", &row.label);
        if let Some(value) = row.report {
            text(LABELS + value * scale + 6.0, at + 17.0, "start", &figure(value));
        }
        if let Some((value, ends)) = row.ours {
            let right = ends.map_or(value, |[_, to]| to.max(value)) * scale;
            text(LABELS + right + 6.0, at + 35.0, "start", &figure(value));
            let Some([from, to]) = ends else { continue };
            let (from, to, y) = (LABELS + from * scale, LABELS + to * scale, at + 30.0);
            let _ = writeln!(
                intervals,
                "<path d=\"M{from:.1} {y:.1}H{to:.1}M{from:.1} {:.1}v8M{to:.1} {:.1}v8\" \
                 stroke=\"#222\" fill=\"none\"/>",
                y - 4.0,
                y - 4.0
            );
        }
    }
    out + &intervals + "</svg>\n"
}

const REPORT: &str = "#9aa1a9";
const OURS: &str = "#2a78d6";
