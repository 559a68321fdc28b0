//! Treatments with their intervals as one SVG: a point and a 95% interval for each, on one axis.

use std::fmt::Write as _;

use pgdyno_model::format;

use super::Export;
use crate::analysis::TreatmentView;

const WIDTH: f64 = 860.0;
/// Where the axis begins and ends.
const PLOT: [f64; 2] = [320.0, 760.0];
const TOP: f64 = 64.0;
const ROW: f64 = 28.0;
/// Characters of a label that find room left of the axis.
const LABEL: usize = 46;
const TICKS: usize = 5;

impl Export<'_> {
    /// Renders the chart as a standalone SVG.
    pub fn svg(&self) -> String {
        let measure = if self.view.plan.find.is_some() { "maximum rate (1/s)" } else { "tps" };
        let all: Vec<&TreatmentView> = self.view.treatments.iter().collect();
        let upper = |t: &&TreatmentView| {
            t.tps.as_ref().map(|tps| tps.ci95.map_or(tps.mean, |[_, high]| high).max(tps.mean))
        };
        let most = all.iter().filter_map(upper).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let step = tick(most);
        let end = (most / step).ceil().max(1.0) * step;
        #[allow(clippy::cast_precision_loss)]
        let bottom = TOP + ROW * all.len() as f64;
        let height = bottom + 48.0;
        let title = escaped(&self.text(&self.view.run.id));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<title>{title}: {measure} by treatment</title>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"16\" y=\"26\" font-size=\"16\" fill=\"#1a1a1a\">{title}</text>\n\
             <text x=\"16\" y=\"46\" fill=\"#555555\">{measure}, mean of trials; bars: 95% confidence \
             interval</text>\n"
        );
        let x = |value: f64| PLOT[0] + (PLOT[1] - PLOT[0]) * value / end;
        let mut at = 0.0;
        while at <= end * 1.000_001 {
            let (x, label) = (x(at), format::rate(at));
            let _ = write!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#dddddd\"/>\n\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555555\">{label}</text>\n",
                bottom + 18.0
            );
            at += step;
        }
        let mut y = TOP + ROW / 2.0;
        for treatment in all {
            out.push_str(&self.svg_row(treatment, y, x));
            y += ROW;
        }
        out.push_str("</svg>\n");
        out
    }

    fn svg_row(&self, treatment: &TreatmentView, y: f64, x: impl Fn(f64) -> f64) -> String {
        let whole = self.text(&treatment.label);
        let mut label: String = whole.chars().take(LABEL).collect();
        if label.len() < whole.len() {
            label.push('…');
        }
        let text_y = y + 4.5;
        let mut out = format!(
            "<text x=\"{:.1}\" y=\"{text_y}\" text-anchor=\"end\" fill=\"#1a1a1a\">{}<title>{}</title></text>\n",
            PLOT[0] - 10.0,
            escaped(&label),
            escaped(&whole)
        );
        let Some(tps) = treatment.tps.as_ref().filter(|tps| tps.mean.is_finite()) else {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{text_y}\" fill=\"#555555\">no completed trial</text>",
                PLOT[0] + 8.0
            );
            return out;
        };
        if let Some([low, high]) = tps.ci95.filter(|ends| ends.iter().all(|end| end.is_finite())) {
            let _ = writeln!(
                out,
                "<path d=\"M{0:.1} {y}H{1:.1}M{0:.1} {2}v10M{1:.1} {2}v10\" stroke=\"#0b62a4\" \
                 stroke-width=\"2\" fill=\"none\"/>",
                x(low),
                x(high),
                y - 5.0
            );
        }
        let _ = write!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{y}\" r=\"4.5\" fill=\"#0b62a4\"/>\n\
             <text x=\"{WIDTH}\" dx=\"-16\" y=\"{text_y}\" text-anchor=\"end\" fill=\"#1a1a1a\">{}</text>\n",
            x(tps.mean),
            format::rate(tps.mean)
        );
        out
    }
}

/// Distance of ticks for an axis up to `most`: 1, 2 or 5 times a power of ten.
fn tick(most: f64) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let raw = if most > 0.0 { most / TICKS as f64 } else { 1.0 };
    let power = 10_f64.powf(raw.log10().floor());
    let round = [1.0, 2.0, 5.0].into_iter().find(|m| raw <= m * power * 1.000_001);
    round.unwrap_or(10.0) * power
}

/// Text of an XML document: markup is escaped, and control characters, which XML forbids, are
/// replaced.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_one_two_or_five_times_a_power_of_ten() {
        assert_eq!(
            [0.0, 4.0, 5.0, 9_000.0, 30_000.0].map(tick),
            [1.0, 1.0, 1.0, 2_000.0, 10_000.0]
        );
    }

    #[test]
    fn markup_and_control_characters_are_inert() {
        assert_eq!(escaped("<b a=\"1\">&\u{7}"), "&lt;b a=&quot;1&quot;&gt;&amp;\u{fffd}");
    }
}
