//! Positions of charts' marks, in percent of the plot, so that HTML draws them without a script.

use pgdyno_model::format;
use serde::Serialize;

use crate::analysis::RunView;

/// Number of colours. Lines beyond it repeat a colour with other dashes.
const COLOURS: usize = 7;

/// Labelled position on an axis.
#[derive(Debug, Serialize)]
pub(super) struct Tick {
    /// Position (percent of the axis).
    at: f64,
    label: String,
}

/// Mean, interval and trials of every treatment over one axis from 0.
#[derive(Debug, Serialize)]
pub(super) struct Intervals {
    ticks: Vec<Tick>,
    rows: Vec<IntervalRow>,
    /// Whether a row has a ceiling: the flush rate of its storage.
    ceilings: bool,
    /// Flush rates that lie beyond the axis.
    beyond: Vec<String>,
}

#[derive(Debug, Serialize)]
struct IntervalRow {
    label: String,
    colour: usize,
    text: String,
    mean: Option<f64>,
    interval: Option<[f64; 2]>,
    dots: Vec<f64>,
    ceiling: Option<f64>,
}

pub(super) fn intervals(view: &RunView) -> Option<Intervals> {
    let highest = view
        .treatments
        .iter()
        .filter_map(|t| t.tps.as_ref())
        .map(|tps| tps.ci95.map_or(tps.max, |[_, hi]| hi.max(tps.max)).min(tps.max * 2.0))
        .fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    // A ceiling within reach is shown; a far one would only press the marks together.
    let near =
        view.treatments.iter().filter_map(|t| t.fsync_per_second).filter(|f| *f <= 1.5 * highest);
    let (step, end) = axis(near.fold(highest, f64::max) * 1.02);
    let place = |value: f64| round((100.0 * value / end).clamp(0.0, 100.0));
    let mut beyond: Vec<String> = view
        .treatments
        .iter()
        .filter_map(|t| t.fsync_per_second)
        .filter(|f| *f > end)
        .map(format::rate)
        .collect();
    beyond.dedup();
    let rows = view
        .treatments
        .iter()
        .map(|t| {
            let tps = t.tps.as_ref();
            let dots = view.trials.iter().filter(|trial| {
                trial.treatment == t.index && trial.state == crate::analysis::TrialState::Completed
            });
            let text = match tps {
                None => t.reason.clone().unwrap_or_default(),
                Some(tps) => match tps.ci95.and_then(|ci| format::plus_minus(tps.mean, ci)) {
                    Some(half) => format!("{} ± {half}%", format::rate(tps.mean)),
                    None => format::rate(tps.mean),
                },
            };
            IntervalRow {
                label: t.label.clone(),
                colour: t.index % COLOURS,
                text,
                mean: tps.map(|tps| place(tps.mean)),
                interval: tps.and_then(|tps| tps.ci95).map(|ci| ci.map(place)),
                dots: dots
                    .filter_map(|trial| trial.search.as_ref().map_or(trial.tps, |s| s.max_rate))
                    .map(place)
                    .collect(),
                ceiling: t.fsync_per_second.filter(|f| *f <= end).map(place),
            }
        })
        .collect::<Vec<_>>();
    let label = |value: f64| match step < 1.0 {
        true => format::rate(place(value) * end / 100.0),
        false => format::count(whole(value)),
    };
    let ticks = ticks(step, end, label);
    let ceilings = rows.iter().any(|row| row.ceiling.is_some());
    Some(Intervals { ticks, rows, ceilings, beyond })
}

/// Returns the step and the end of an axis that shows `highest`.
///
/// The step is 1, 2 or 5 times a power of ten and divides the axis in four to six.
fn axis(highest: f64) -> (f64, f64) {
    let power = 10f64.powf((highest / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| highest / s <= 5.5)
        .unwrap_or(power * 10.0);
    (step, step * (highest / step).ceil())
}

/// Returns the ticks at every `step` of an axis from 0 to `end`.
fn ticks(step: f64, end: f64, label: impl Fn(f64) -> String) -> Vec<Tick> {
    (0..=10)
        .map(|i| step * f64::from(i))
        .take_while(|value| *value <= end * 1.000_001)
        .map(|value| Tick { at: round((100.0 * value / end).min(100.0)), label: label(value) })
        .collect()
}

/// Latency by quantile, on logarithmic axes: rarer transactions are farther right.
#[derive(Debug, Serialize)]
pub(super) struct Quantiles {
    x: Vec<Tick>,
    y: Vec<Tick>,
    lines: Vec<QuantileLine>,
}

#[derive(Debug, Serialize)]
struct QuantileLine {
    label: String,
    colour: usize,
    dashes: usize,
    /// SVG path in a box of 1000 × 1000.
    path: String,
}

pub(super) fn quantiles(view: &RunView) -> Option<Quantiles> {
    let points = || view.treatments.iter().flat_map(|t| &t.quantiles);
    let nines = |q: f64| -(1.0 - q).log10();
    let right = points().map(|(q, _)| nines(*q)).fold(0.0, f64::max);
    let (low, high) = points()
        .map(|(_, us)| us.max(0.1))
        .fold((f64::INFINITY, 0.0_f64), |(lo, hi), us| (lo.min(us), hi.max(us)));
    if right < 1.0 || low >= high {
        return None;
    }
    let (bottom, top) = (low.log10() - 0.05, high.log10() + 0.05);
    let across = |q: f64| 100.0 * nines(q) / right;
    let up = |us: f64| 100.0 * (us.max(0.1).log10() - bottom) / (top - bottom);
    let lines = view
        .treatments
        .iter()
        .filter(|t| t.quantiles.len() > 1)
        .map(|t| {
            let point = |(q, us): &(f64, f64)| {
                format!("{:.1} {:.1}", 10.0 * across(*q), 1000.0 - 10.0 * up(*us))
            };
            let points: Vec<String> = t.quantiles.iter().map(point).collect();
            QuantileLine {
                label: t.label.clone(),
                colour: t.index % COLOURS,
                dashes: (t.index / COLOURS) % 4,
                path: format!("M{}", points.join("L")),
            }
        })
        .collect();
    let x = [
        (0.5, "50%"),
        (0.9, "90%"),
        (0.99, "99%"),
        (0.999, "99.9%"),
        (0.9999, "99.99%"),
        (0.99999, "99.999%"),
    ]
    .into_iter()
    .map(|(q, label)| Tick { at: round(across(q)), label: label.to_owned() })
    .filter(|tick| tick.at <= 100.5)
    .collect();
    let y = decades(up);
    Some(Quantiles { x, y, lines })
}

/// Returns ticks at round numbers of milliseconds on a logarithmic axis; at powers of ten only
/// where these are many. `up` maps microseconds to the position (percent).
fn decades(up: impl Fn(f64) -> f64) -> Vec<Tick> {
    let y = (-1..=10)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(power)))
        .map(|us| Tick { at: round(up(us)), label: format::seconds(us / 1000.0) })
        .filter(|tick| (0.0..=100.0).contains(&tick.at))
        .collect::<Vec<_>>();
    if y.len() > 9 { y.into_iter().filter(|tick| tick.label.contains('1')).collect() } else { y }
}

/// p99 by offered rate, one dot for each step, on a logarithmic axis of latency.
#[derive(Debug, Serialize)]
pub(super) struct Capacity {
    x: Vec<Tick>,
    y: Vec<Tick>,
    dots: Vec<Dot>,
    /// Name and colour of each treatment.
    legend: Vec<(String, usize)>,
}

#[derive(Debug, Serialize)]
struct Dot {
    left: f64,
    bottom: f64,
    colour: usize,
    kept: bool,
}

/// Returns the chart of rates; none for a plan that searches no rate.
pub(super) fn capacity(view: &RunView) -> Option<Capacity> {
    let points =
        || view.capacity.iter().flat_map(|c| c.curve.iter().map(move |p| (c.treatment, p)));
    let latencies = || points().filter_map(|(_, p)| p.latency_us_p99).map(|us| us.max(0.1));
    let right = points().map(|(_, p)| p.rate).fold(0.0, f64::max);
    let (low, high) =
        latencies().fold((f64::INFINITY, 0.0_f64), |(lo, hi), us| (lo.min(us), hi.max(us)));
    if right <= 0.0 || low > high {
        return None;
    }
    let (step, end) = axis(right);
    let (bottom, top) = (low.log10() - 0.05, high.log10() + 0.05);
    let up = |us: f64| 100.0 * (us.log10() - bottom) / (top - bottom);
    let dot = |(treatment, p): (usize, &crate::analysis::CurvePoint)| {
        Some(Dot {
            left: round(100.0 * p.rate / end),
            bottom: round(up(p.latency_us_p99?.max(0.1))),
            colour: treatment % COLOURS,
            kept: p.broken.is_none(),
        })
    };
    let label = |t: usize| view.treatments.get(t).map(|t| t.label.clone()).unwrap_or_default();
    Some(Capacity {
        x: ticks(step, end, format::rate),
        y: decades(up),
        dots: points().filter_map(dot).collect(),
        legend: view.capacity.iter().map(|c| (label(c.treatment), c.treatment % COLOURS)).collect(),
    })
}

/// States and wait events of each treatment's backends, as parts of a bar.
#[derive(Debug, Serialize)]
pub(super) struct Waits {
    rows: Vec<WaitRow>,
}

#[derive(Debug, Serialize)]
struct WaitRow {
    label: String,
    parts: Vec<WaitPart>,
}

#[derive(Debug, Serialize)]
struct WaitPart {
    event: String,
    colour: usize,
    percent: f64,
    text: String,
}

/// Returns the bars of wait events; none if no trial was sampled.
///
/// An event has one colour in all rows. The last colour stands for all rare events together.
pub(super) fn waits(view: &RunView) -> Option<Waits> {
    const OTHERS: &str = "others";
    let mut totals: Vec<(&str, f64)> = Vec::new();
    for wait in view.treatments.iter().flat_map(|t| &t.waits) {
        match totals.iter_mut().find(|(event, _)| *event == wait.event) {
            Some((_, share)) => *share += wait.share,
            None => totals.push((&wait.event, wait.share)),
        }
    }
    totals.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown: Vec<&str> = totals.iter().take(COLOURS - 1).map(|(event, _)| *event).collect();
    let row = |t: &crate::analysis::TreatmentView| {
        let share =
            |event: &str| t.waits.iter().filter(|w| w.event == event).map(|w| w.share).sum::<f64>();
        let others = t
            .waits
            .iter()
            .filter(|w| !shown.contains(&w.event.as_str()))
            .map(|w| w.share)
            .sum::<f64>();
        let named = shown.iter().map(|event| (*event, share(event))).chain([(OTHERS, others)]);
        let part = |(colour, (event, share)): (usize, (&str, f64))| WaitPart {
            event: event.to_owned(),
            colour,
            percent: round(100.0 * share),
            text: format!("{}%", format::percent(share)),
        };
        let parts = named.enumerate().filter(|(_, (_, share))| *share > 0.0).map(part).collect();
        WaitRow { label: t.label.clone(), parts }
    };
    let rows: Vec<WaitRow> =
        view.treatments.iter().filter(|t| !t.waits.is_empty()).map(row).collect();
    (!rows.is_empty()).then_some(Waits { rows })
}

fn round(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_steps_and_hold_their_data() {
        for highest in [0.013, 0.9, 1.0, 7.3, 99.0, 100.0, 8632.0, 1e6] {
            let (step, end) = axis(highest);
            assert!(end >= highest && end <= highest + step, "{highest}: {step} {end}");
            assert!((2.0..=7.0).contains(&(end / step)), "{highest}: {step} {end}");
            let digit = step / 10f64.powf(step.log10().floor() + 1e-9);
            assert!(
                [1.0, 2.0, 5.0, 10.0].iter().any(|d| (d - digit).abs() < 0.01),
                "{highest}: {step}"
            );
        }
    }
}
