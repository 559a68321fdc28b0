//! The lines that pass by: notes, warnings, results of trials, and where no view is drawn also
//! what is being done.

use std::time::{Duration, Instant};

use pgdyno_model::PlannedTrial;
use pgdyno_model::live::LiveRun;
use pgdyno_report::live::{LiveRecord, LiveState};
use pgdyno_report::progress as words;

/// Between two lines about the same work.
const EVERY: Duration = Duration::from_secs(10);

/// Which records are worth a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    /// All, since nothing else shows what is being done.
    Everything,
    /// Notes, warnings and results: a view shows the rest.
    Results,
    /// Warnings and failures.
    Failures,
}

/// Chooses and words the lines.
#[derive(Debug)]
pub(super) struct Log {
    amount: Amount,
    working: String,
    newest: Instant,
}

impl Log {
    pub(super) fn new(amount: Amount) -> Self {
        Self { amount, working: String::new(), newest: Instant::now() }
    }

    /// Returns the line that `record` is worth, which comes after those that `state` has.
    pub(super) fn line(&mut self, record: &LiveRecord, state: &LiveState) -> Option<String> {
        let has_view = self.amount != Amount::Everything;
        match record {
            LiveRecord::Warning { text } => Some(format!("warning: {text}")),
            LiveRecord::TrialDone { ordinal, tps, latency_us_p99, failure, left_s } => {
                if self.amount == Amount::Failures && failure.is_none() {
                    return None;
                }
                let result = match (failure, tps) {
                    (Some(failure), _) => format!("FAILED: {failure}"),
                    (None, Some(tps)) => format!("{tps:.1} tps, p99 {}", ms(*latency_us_p99)),
                    (None, None) => "no transaction".to_owned(),
                };
                let left = if has_view { String::new() } else { left(*left_s) };
                Some(format!("{}: {result}{left}", self.trial(*ordinal, state)?))
            }
            _ if self.amount == Amount::Failures => None,
            LiveRecord::Note { text } => Some(format!("note: {text}")),
            _ if has_view => None,
            LiveRecord::Working { what, detail, .. } => self.working(what, detail.as_deref()),
            LiveRecord::Trial { .. } => {
                self.newest = Instant::now();
                None
            }
            LiveRecord::Second(second) if self.is_due() => {
                let trial = self.trial(state.current.as_ref()?.planned.ordinal, state)?;
                let phase = if second.measuring { "" } else { " (warm-up)" };
                Some(format!(
                    "{trial}: {:.0} tps, p50 {}, p99 {}{phase}{}",
                    second.tps,
                    ms(second.latency_us_p50),
                    ms(second.latency_us_p99),
                    left(second.left_s)
                ))
            }
            LiveRecord::Outlook(outlook) => Some(words::outlook(outlook)),
            LiveRecord::Stopping => Some("asked to stop: the run ends after this trial".to_owned()),
            _ => None,
        }
    }

    /// Returns whether the last line about this work is old enough; if so, the next one is not.
    fn is_due(&mut self) -> bool {
        let is_due = self.newest.elapsed() >= EVERY;
        if is_due {
            self.newest = Instant::now();
        }
        is_due
    }

    /// Work is told when it begins, and its figures now and then.
    fn working(&mut self, what: &str, detail: Option<&str>) -> Option<String> {
        let begins = self.working != what;
        if begins {
            what.clone_into(&mut self.working);
            self.newest = Instant::now();
        } else if detail.is_none() || !self.is_due() {
            return None;
        }
        Some(detail.map_or_else(|| what.to_owned(), |detail| format!("{what}: {detail}")))
    }

    fn trial(&self, ordinal: u32, state: &LiveState) -> Option<String> {
        let run = state.run.as_ref()?;
        let planned = run.trials.iter().find(|planned| planned.ordinal == ordinal)?;
        Some(trial_name(run, *planned))
    }
}

/// Returns a trial's place in the plan, its treatment and its repeat.
pub(super) fn trial_name(run: &LiveRun, planned: PlannedTrial) -> String {
    let (number, of) = (planned.ordinal.saturating_add(1), run.trials.len());
    let treatment = run.treatments.get(planned.treatment).map_or("", String::as_str);
    let blank = if treatment.is_empty() { "" } else { " " };
    format!("trial {number}/{of}{blank}{treatment} repeat {}", planned.repeat)
}

fn ms(us: Option<f64>) -> String {
    us.map_or_else(|| "–".into(), |us| format!("{:.2} ms", us / 1000.0))
}

fn left(seconds: f64) -> String {
    let left = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    format!(", {} left", words::clock(left))
}
