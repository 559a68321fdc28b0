//! Shows a run's progress: a live line on a terminal, plain lines elsewhere. All of it on standard
//! error.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pgdyno_model::printable::escape_line;
use pgdyno_model::progress::{Event, Progress};
use pgdyno_results::report::progress as text;

use crate::output::{hint, is_quiet, print_stderr};

/// Between two plain lines about the same trial.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Renders events.
pub(crate) struct Display {
    bar: Option<ProgressBar>,
    state: Mutex<State>,
}

struct State {
    trial: String,
    done: usize,
    working: String,
    last_line: Instant,
}

impl Display {
    pub(crate) fn new() -> Self {
        let bar = (std::io::stderr().is_terminal() && !is_quiet()).then(|| {
            let bar = ProgressBar::new(1);
            let style = ProgressStyle::with_template("{spinner} {wide_msg}\n  [{bar:30}] {prefix}");
            bar.set_style(
                style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "),
            );
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let state = State {
            trial: String::new(),
            done: 0,
            working: String::new(),
            last_line: Instant::now(),
        };
        Self { bar, state: Mutex::new(state) }
    }

    /// Takes the live line away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| hint(text)),
            None => hint(text),
        }
    }

    /// A line that `--quiet` does not leave out.
    fn failure(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| print_stderr(text)),
            None => print_stderr(text),
        }
    }

    /// Shows that `rows` of so many rows of `data` are sent, at `rate`.
    fn loading(
        &self,
        state: &mut State,
        data: &str,
        (rows, of): (u64, u64),
        rate: &str,
        left: Option<Duration>,
    ) {
        let what = format!("loading {data}");
        let text = if rows < of {
            format!("{what}: {rows} of {of} rows, {rate}")
        } else {
            format!("{what}: all {of} rows sent; building keys, vacuuming")
        };
        let begins = state.working != what;
        if self.bar.is_none() && (begins || state.last_line.elapsed() >= PLAIN_EVERY) {
            state.last_line = Instant::now();
            let left = left.filter(|_| rows < of);
            hint(&left.map_or_else(|| text.clone(), |l| format!("{text}, {} left", clock(l))));
        }
        state.working = what;
        self.live(&text, left);
    }

    fn live(&self, message: &str, left: Option<Duration>) {
        if let Some(bar) = &self.bar {
            bar.set_message(escape_line(message).into_owned());
            if let Some(left) = left {
                bar.set_prefix(format!("{} left", clock(left)));
            }
        }
    }
}

impl Progress for Display {
    fn event(&self, event: &Event<'_>) {
        let mut state = match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        };
        match event {
            Event::Note(notice) => self.line(&format!("note: {}", text::notice(notice))),
            Event::Warning(warning) => {
                self.failure(&format!("warning: {}", text::warning(warning)));
            }
            Event::Working { activity, share } => {
                let what = text::activity(activity);
                let shown = match share {
                    Some(share) => format!("{what}: {:.0}%", share * 100.0),
                    None => what.clone(),
                };
                self.live(&shown, None);
                if self.bar.is_none() && state.working != what {
                    hint(&what);
                }
                state.working = what;
            }
            Event::Loading { data, rows, of, rows_per_s, bytes_per_s, left } => {
                let rate = format!("{rows_per_s:.0} rows/s, {:.1} MB/s", bytes_per_s / 1e6);
                self.loading(&mut state, data, (*rows, *of), &rate, *left);
            }
            Event::Begun { run, trials, store } => {
                self.line(&escape_line(&format!(
                    "run {}: {trials} trials, kept in {}",
                    run.run,
                    store.display()
                )));
                if let Some(bar) = &self.bar {
                    bar.set_length(*trials as u64);
                }
            }
            Event::Trial { number, of, levels, planned, left } => {
                state.trial = format!("trial {number}/{of} {levels} repeat {}", planned.repeat);
                state.last_line = Instant::now();
                self.live(&format!("{}: settling", state.trial), Some(*left));
            }
            Event::Load(second) => {
                let left = Duration::try_from_secs_f64(second.left_s).unwrap_or_default();
                let latency = format!(
                    "p50 {}, p99 {}",
                    millis(second.latency_us_p50),
                    millis(second.latency_us_p99)
                );
                let phase = if second.measuring { "" } else { " (warm-up)" };
                let text = format!("{}: {:.0} tps, {latency}{phase}", state.trial, second.tps);
                if self.bar.is_none() && state.last_line.elapsed() >= PLAIN_EVERY {
                    state.last_line = Instant::now();
                    hint(&format!("{text}, {} left", clock(left)));
                }
                self.live(&text, Some(left));
            }
            Event::TrialDone { tps, latency_us_p99, failure, left, .. } => {
                state.done += 1;
                if let Some(bar) = &self.bar {
                    bar.set_position(state.done as u64);
                }
                let result = trial_result(*failure, *tps, *latency_us_p99);
                let left = match self.bar {
                    Some(_) => String::new(),
                    None => format!(", {} left", clock(*left)),
                };
                let line = format!("{}: {result}{left}", state.trial);
                if failure.is_some() { self.failure(&line) } else { self.line(&line) }
            }
            Event::TakingDown => self.live("taking down what was made", None),
            _ => {}
        }
    }
}

/// Renders the result of a trial.
fn trial_result(failure: Option<&str>, tps: Option<f64>, latency_us_p99: Option<f64>) -> String {
    match (failure, tps) {
        (Some(failure), _) => format!("FAILED: {failure}"),
        (None, Some(tps)) => format!("{tps:.1} tps, p99 {}", millis(latency_us_p99)),
        (None, None) => "no transaction".to_owned(),
    }
}

fn millis(microseconds: Option<f64>) -> String {
    microseconds.map_or_else(|| "–".into(), |us| format!("{:.2} ms", us / 1000.0))
}

/// `1:05`, `2:03:04`.
fn clock(left: Duration) -> String {
    let seconds = left.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_left_read_like_a_clock() {
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
        assert_eq!(clock(Duration::from_secs(7384)), "2:03:04");
        assert_eq!(millis(Some(1234.0)), "1.23 ms");
    }
}
