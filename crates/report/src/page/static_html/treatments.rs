//! The table of a run's treatments, with the columns that the front end draws.

use pgdyno_text::format;

use super::{badge, escape, text_of};
use crate::prose::{reason_not_ranked, tps_of};
use crate::table::NONE;
use crate::{FilesystemsView, RunReport};
use pgdyno_analysis::{PairRow, RunView, TreatmentView};

/// Treatments that the front end draws at first (count).
const DRAWN: usize = 8;

/// Treatments from which the front end lists only those that it draws (count).
const MANY: usize = 13;

/// Ratio of a treatment's tps to the baseline's: value, interval, whether it is significant.
type Ratio = (f64, [Option<f64>; 2], Option<bool>);

/// Renders the section of the treatments, the run's best one as baseline.
pub(in super::super) fn treatments(report: &RunReport) -> String {
    let table = Table::new(report);
    let view = &report.view;
    let ratios = if table.has_ratios {
        "<th scope=\"col\">Ratio of tps to the baseline<span class=\"scale-room\"></span></th>\
         <th scope=\"col\">Baseline</th>"
    } else {
        ""
    };
    let mounts = if table.has_mounts {
        "<th scope=\"col\" class=\"n\">mount (ms)</th><th scope=\"col\" class=\"n\">fsck (ms)</th>"
    } else {
        ""
    };
    let crash = if table.has_crash { "<th scope=\"col\">Crash tests</th>" } else { "" };
    let figures = [table.measure.as_str(), "p50 (ms)", "p95 (ms)", "p99 (ms)"];
    let figures: String =
        figures.iter().map(|name| format!("<th scope=\"col\" class=\"n\">{name}</th>")).collect();
    let rows: String = view.treatments.iter().map(|t| table.row(t)).collect();
    let room = if table.is_many() { "<div class=\"controls-room\"></div>\n" } else { "" };
    format!(
        "<section class=\"part\">\n<h2>Treatments</h2>\n{room}<table class=\"treatments stacks\">\n\
         <thead>\n<tr><th \
         scope=\"col\">Treatment</th>{figures}{mounts}{crash}{ratios}</tr>\n</thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    )
}

struct Table<'a> {
    report: &'a RunReport,
    view: &'a RunView,
    /// The figure that is compared.
    measure: String,
    baseline: Option<usize>,
    /// Treatments that the front end lists at first.
    listed: Vec<usize>,
    has_ratios: bool,
    has_crash: bool,
    /// Whether filesystems were mounted after power cuts.
    has_mounts: bool,
}

impl<'a> Table<'a> {
    fn new(report: &'a RunReport) -> Self {
        let view = &report.view;
        let tps = |t: &TreatmentView| t.tps.as_ref().map_or(-1.0, |tps| tps.mean);
        let measured = view.treatments.iter().find(|t| t.tps.is_some());
        let baseline = view.best.or(measured.map(|t| t.index));
        let mut by_tps: Vec<&TreatmentView> = view.treatments.iter().collect();
        by_tps.sort_by(|a, b| tps(b).total_cmp(&tps(a)));
        let drawn = by_tps.iter().take(DRAWN).map(|t| t.index);
        Self {
            report,
            view,
            measure: escape(&tps_of(&view.plan)),
            baseline,
            listed: drawn.chain(baseline).collect(),
            has_ratios: !view.pairs.rows.is_empty(),
            has_crash: view.treatments.iter().any(|t| t.crash.is_some()),
            has_mounts: view.treatments.iter().any(|t| report.mounts(t).is_some()),
        }
    }

    fn is_many(&self) -> bool {
        self.view.treatments.len() >= MANY
    }

    fn row(&self, t: &TreatmentView) -> String {
        let class = match self.is_many() && !self.listed.contains(&t.index) {
            true => " class=\"rest\"",
            false => "",
        };
        let mut out = format!("<tr{class}><th scope=\"row\">{}</th>", name(t));
        out.push_str(&figure(&self.measure, &tps(t)));
        let latency = t.latency_us.as_ref();
        let percentiles = [
            ("p50 (ms)", latency.map(|l| l.p50)),
            ("p95 (ms)", latency.map(|l| l.p95)),
            ("p99 (ms)", latency.map(|l| l.p99)),
        ];
        for (name, us) in percentiles {
            let ms = us.map(format::milliseconds);
            out.push_str(&figure(name, ms.as_deref().unwrap_or(NONE)));
        }
        if self.has_mounts {
            let mounts = self.report.mounts(t);
            let [mount, fsck] = mounts.map_or_else(<[_; 2]>::default, FilesystemsView::cells);
            out.push_str(&figure("mount (ms)", mount.as_deref().unwrap_or(NONE)));
            out.push_str(&figure("fsck (ms)", fsck.as_deref().unwrap_or(NONE)));
        }
        if self.has_crash {
            let verdict = t.crash.as_ref().map(|crash| badge(&text_of(&crash.verdict)));
            let verdict = verdict.unwrap_or_else(|| NONE.to_owned());
            out.push_str(&format!("<td data-label=\"Crash tests\">{verdict}</td>"));
        }
        if self.has_ratios {
            let is_baseline = Some(t.index) == self.baseline;
            let ratio = match self.ratio(t.index) {
                _ if is_baseline => "<span class=\"strip-room\"></span>".to_owned(),
                Some(ratio) => {
                    format!("<span class=\"strip-room\"></span><small>{}</small>", words(ratio))
                }
                None => NONE.to_owned(),
            };
            let mark = if is_baseline { "●" } else { "" };
            out.push_str(&format!(
                "<td class=\"ratio\" data-label=\"Ratio to the baseline\">{ratio}</td>\
                 <td data-label=\"Baseline\">{mark}</td>"
            ));
        }
        out + "</tr>\n"
    }

    /// Returns the ratio of treatment `of` to the baseline. Pairs hold each in one direction.
    fn ratio(&self, of: usize) -> Option<Ratio> {
        let baseline = self.baseline?;
        let inverse = |end: Option<f64>| end.filter(|end| *end > 0.0).map(|end| 1.0 / end);
        self.view.pairs.rows.iter().find_map(|PairRow(a, b, value, low, high, _, significant)| {
            if (*a, *b) == (baseline, of) {
                Some((*value, [*low, *high], *significant))
            } else if (*a, *b) == (of, baseline) && *value > 0.0 {
                Some((1.0 / value, [inverse(*high), inverse(*low)], *significant))
            } else {
                None
            }
        })
    }
}

/// Renders label and remarks.
fn name(t: &TreatmentView) -> String {
    let label = if t.label.is_empty() { "the only treatment" } else { &t.label };
    let mut out = format!("<span class=\"name\">{}</span>", escape(label));
    let limited = (t.generator_limited > 0)
        .then(|| format!("generator-limited in {} of {} trials", t.generator_limited, t.trials));
    let remarks = [
        t.reason.map(|why| why.to_string()),
        t.not_ranked.as_ref().map(|why| format!("not ranked: {}", reason_not_ranked(why))),
        t.unavailable.as_ref().map(|why| format!("not available here: {why}")),
        limited,
    ];
    for remark in remarks.iter().flatten() {
        out.push_str(&format!("<small>{}</small>", escape(remark)));
    }
    out
}

fn tps(t: &TreatmentView) -> String {
    let Some(tps) = &t.tps else { return NONE.to_owned() };
    let (mean, noun) = (format::rate(tps.mean), if t.trials == 1 { "trial" } else { "trials" });
    let interval = match tps.ci95 {
        Some([low, high]) => format!("{}–{}", format::rate(low), format::rate(high)),
        None => format!("{} {noun}, no interval", t.trials),
    };
    format!("<span class=\"value\">{mean}</span> <small>{interval}</small>")
}

fn figure(name: &str, html: &str) -> String {
    format!("<td class=\"n\" data-label=\"{name}\">{html}</td>")
}

fn words((value, [low, high], significant): Ratio) -> String {
    let bound = |end: Option<f64>| match end {
        Some(end) if end > 1000.0 => "&gt; 1,000".to_owned(),
        Some(end) if end > 0.0 && end < 0.001 => "&lt; 0.001".to_owned(),
        Some(end) => format::times(end),
        None => NONE.to_owned(),
    };
    let interval = match (low, high) {
        (None, None) => String::new(),
        _ => format!("({}–{})", bound(low), bound(high)),
    };
    let verdict = match significant {
        Some(true) => "significant",
        Some(false) => "not significant",
        None => "",
    };
    format!("{}× {interval} {verdict}", format::times(value))
}
