//! The view of a run: what it does, drawn from its state alone.

use std::time::Duration;

use pgdyno_model::live::{LiveRun, LoadSecond};
use pgdyno_report::live::{LiveState, LiveTrial, LiveTrialState};
use pgdyno_report::progress as words;
use pgdyno_text::format::{milliseconds, rate};

use super::chart::{gauge, histogram, ribbon, sparkline};
use super::line::{Line, Look, Paint, Rendered};
use super::log::trial_name;

/// Column of the figures, behind the labels.
const FIGURES: usize = 9;
/// Column of the charts, behind the figures.
const CHARTS: usize = 37;
/// Columns that a chart beside its figures has at least; else it gets a line of its own.
const CHART_ROOM: usize = 24;
/// Seconds whose latencies the histogram adds up (count).
const HISTOGRAM_SECONDS: usize = 60;
/// Columns of the bar of work (count).
const GAUGE: usize = 10;
/// Work of which nothing was heard for so long shows for how long.
const SILENCE: Duration = Duration::from_secs(3);

/// Returns the lines of the view. `age` is the time since the newest record of `state`.
pub(super) fn view(state: &LiveState, age: Duration, look: Look) -> Vec<Rendered> {
    let mut view = View { lines: Vec::new(), look };
    if state.ended.is_some() {
        return Vec::new();
    }
    let Some(run) = &state.run else {
        view.now(state, None, age);
        return view.lines();
    };
    view.title(run, state);
    view.plan(run, state);
    view.now(state, Some(run), age);
    if let Some(trial) = &state.current {
        view.load(trial);
    }
    if let Some(outlook) = &state.outlook {
        view.row("outlook", &words::outlook(outlook));
    }
    view.lines()
}

struct View {
    lines: Vec<Line>,
    look: Look,
}

impl View {
    fn lines(self) -> Vec<Rendered> {
        self.lines.iter().map(|line| line.render(self.look)).collect()
    }

    /// Appends a line with a label and text.
    fn row(&mut self, label: &str, text: &str) {
        self.lines.push(label_line(label, text));
    }

    /// Appends a line with a label, figures and a chart, which `draw` appends in so many columns.
    fn chart(&mut self, label: &str, figures: &str, draw: impl FnOnce(&mut Line, usize)) {
        let mut line = label_line(label, figures);
        let mut column = CHARTS.max(line.columns() + 2);
        if self.look.width < column + CHART_ROOM {
            self.lines.push(std::mem::take(&mut line));
            column = FIGURES;
        }
        line.pad(column);
        draw(&mut line, self.look.width.saturating_sub(column));
        // A line of its own without a chart would be blank.
        if line.columns() > column || column != FIGURES {
            self.lines.push(line);
        }
    }

    /// Appends the title: the trial in progress, else the run.
    fn title(&mut self, run: &LiveRun, state: &LiveState) {
        let mut line = Line::default();
        match &state.current {
            Some(trial) => line.push(Paint::Bold, &trial_name(run, trial.planned)),
            None => line.push(Paint::Bold, &format!("run {}", run.run)),
        }
        self.lines.push(line);
    }

    /// Appends the plan: trials done, failed and left.
    fn plan(&mut self, run: &LiveRun, state: &LiveState) {
        let count = |is: fn(&LiveTrialState) -> bool| state.trials.iter().filter(|t| is(t)).count();
        let failed = count(|trial| matches!(trial, LiveTrialState::Failed { .. }));
        let left = count(|trial| matches!(trial, LiveTrialState::Left | LiveTrialState::Running));
        let done = state.trials.len() - failed - left;
        let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        // A run that ends by itself plans as many trials as it may come to.
        let at_most = if run.is_open_ended { "at most " } else { "" };
        let figures = format!("{done} done{failures}, {at_most}{left} left");
        self.chart("plan", &figures, |line, room| {
            ribbon(line, &run.trials, &state.trials, room);
        });
    }

    /// Appends the current step, and the time that the run still takes.
    fn now(&mut self, state: &LiveState, run: Option<&LiveRun>, age: Duration) {
        let mut text = match (&state.working, &state.current, run) {
            (Some((what, share)), ..) => {
                let percent = |share: &f64| {
                    format!("{} {:.0}%  ", gauge(*share, GAUGE), share.clamp(0.0, 1.0) * 100.0)
                };
                share.as_ref().map_or_else(String::new, percent) + what
            }
            (None, Some(trial), Some(run)) => phase(trial, run),
            (None, None, Some(_)) => "between trials".to_owned(),
            (None, _, None) => "beginning".to_owned(),
        };
        if age >= SILENCE {
            text.push_str(&format!(", for {}", words::clock(age)));
        }
        let left = state.left_s.and_then(|left| Duration::try_from_secs_f64(left).ok());
        let left = left.unwrap_or_default().saturating_sub(age);
        // Nothing is known about the time that the end takes.
        let left =
            (left >= Duration::from_secs(1)).then(|| format!("about {} left", words::clock(left)));
        match left {
            Some(left) if FIGURES + text.chars().count() + 2 + left.len() <= self.look.width => {
                self.row("now", &format!("{text}; {left}"));
            }
            left => {
                self.row("now", &text);
                left.iter().for_each(|left| self.row("", left));
            }
        }
        if state.is_stopping {
            self.row("", "asked to stop: the run ends after this trial");
        }
    }

    /// Appends the load of the trial in progress.
    fn load(&mut self, trial: &LiveTrial) {
        let last = trial.seconds.last();
        let opened = trial.seconds.iter().position(|second| second.measuring);
        let tps: Vec<f64> = trial.seconds.iter().map(|second| second.tps).collect();
        let (warm_up, measured) = tps.split_at(opened.unwrap_or(tps.len()));
        self.chart(
            "tps",
            &last.map_or_else(none, |last| tps_figures(last, measured)),
            |line, room| {
                let highest = tps.iter().copied().fold(0.0, f64::max);
                let each = tps.len().div_ceil(room.saturating_sub(1).max(1)).max(1);
                line.push(Paint::Dim, &sparkline(warm_up, highest, warm_up.len().div_ceil(each)));
                if !warm_up.is_empty() && !measured.is_empty() {
                    line.push(Paint::Dim, "│");
                }
                let room = room.saturating_sub(warm_up.len().div_ceil(each) + 1);
                line.push(Paint::Plain, &sparkline(measured, highest, room));
            },
        );
        let percentiles = |last: &LoadSecond| {
            format!("p50 {}, p99 {}", ms(last.latency_us_p50), ms(last.latency_us_p99))
        };
        let measured = &trial.seconds[opened.unwrap_or(0)..];
        let newest = &measured[measured.len().saturating_sub(HISTOGRAM_SECONDS)..];
        self.chart("latency", &last.map_or_else(none, percentiles), |line, room| {
            // Both ends are labelled: `0.125 ms`, `1,234 ms`.
            if let Some(histogram) = histogram(newest, room.saturating_sub(2 * 9)) {
                line.push(Paint::Dim, &format!("{} ", ms(Some(histogram.low_us))));
                line.push(Paint::Plain, &histogram.columns);
                line.push(Paint::Dim, &format!(" {}", ms(Some(histogram.high_us))));
            }
        });
        self.row("waits", &last.map_or_else(none, waits));
        let lag = last.and_then(|last| last.event_loop_lag_us_p99);
        let lag = lag.map_or_else(none, |us| match us {
            us if us < 1.0 => "of the event loop: p99 below 0.001 ms".to_owned(),
            us => format!("of the event loop: p99 {}", ms(Some(us))),
        });
        self.row("lag", &lag);
    }
}

fn label_line(label: &str, text: &str) -> Line {
    let mut line = Line::default();
    line.push(Paint::Dim, label);
    line.pad(FIGURES);
    line.push(Paint::Plain, text);
    line
}

/// Stands for a figure that there is none of.
fn none() -> String {
    "–".to_owned()
}

fn ms(us: Option<f64>) -> String {
    us.map_or_else(none, |us| format!("{} ms", milliseconds(us)))
}

/// Returns how far the load of a trial is.
fn phase(trial: &LiveTrial, run: &LiveRun) -> String {
    let Some(last) = trial.seconds.last() else { return "settling before the load".to_owned() };
    let (what, length) = match last.measuring {
        true => ("measuring", run.window_s),
        false => ("warming up", Some(run.warm_up_s)),
    };
    let of = length.map_or_else(String::new, |length| format!(" of {length:.0}"));
    format!("{what}, {:.0}{of} s", last.elapsed_s)
}

/// Returns the last second's tps, and the mean and the failures of the window.
fn tps_figures(last: &LoadSecond, measured: &[f64]) -> String {
    let mut text = rate(last.tps);
    if measured.len() > 1 {
        let mean = measured.iter().sum::<f64>() / measured.len() as f64;
        text.push_str(&format!(", mean {}", rate(mean)));
    }
    if last.failed > 0 {
        text.push_str(&format!(", {} failed", last.failed));
    }
    text
}

/// Returns the wait events, most frequent first, with the backends that wait.
fn waits(second: &LoadSecond) -> String {
    if second.waits.is_empty() {
        return none();
    }
    let each = |(event, backends): &(String, f64)| format!("{event} {backends:.1}");
    let events: Vec<String> = second.waits.iter().map(each).collect();
    format!("{} (backends, mean)", events.join(", "))
}

#[cfg(test)]
mod tests;
