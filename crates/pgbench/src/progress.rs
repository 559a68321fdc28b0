//! `-P`: progress lines, in pgbench's shape.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pgdyno_engine::{LiveSecond, Phase};
use pgdyno_model::measurement::Sums;

use crate::request::Run;

/// Adds seconds up to intervals as long as `--progress` says.
#[derive(Debug)]
pub(crate) struct Progress<'a> {
    every: Duration,
    run: &'a Run,
    /// When the interval ends, from the load's beginning.
    next: Duration,
    failed: u64,
    sum: Sums,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(every: Duration, run: &'a Run) -> Self {
        Self { every, run, next: every, failed: 0, sum: Sums::default() }
    }

    /// Adds a second of the load; returns the lines that are due, with their newlines.
    pub(crate) fn second(&mut self, live: &LiveSecond) -> String {
        let mut lines = String::new();
        if live.phase != Phase::Measuring {
            return lines;
        }
        // The engine reports no seconds in which nothing ended.
        while live.elapsed >= self.next + Duration::from_secs(1) {
            self.line(&mut lines);
        }
        self.failed += live.failed;
        self.sum.merge(&live.sums);
        if live.elapsed >= self.next {
            self.line(&mut lines);
        }
        lines
    }

    /// Returns the lines that are due when the load has ended after `measured`.
    pub(crate) fn finish(&mut self, measured: Duration) -> String {
        let mut lines = String::new();
        while self.next <= measured {
            self.line(&mut lines);
        }
        lines
    }

    fn line(&mut self, to: &mut String) {
        let (failed, sum) = (std::mem::take(&mut self.failed), std::mem::take(&mut self.sum));
        let tps = sum.latency_count as f64 / self.every.as_secs_f64();
        let at = if self.run.progress_timestamp {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("{:.3}", now.as_secs_f64())
        } else {
            format!("{:.1}", self.next.as_secs_f64())
        };
        let _ = write!(
            to,
            "progress: {at} s, {tps:.1} tps, lat {:.3} ms stddev {:.3}, {} failed",
            sum.mean_us().unwrap_or(0.0) / 1000.0,
            sum.stddev_us().unwrap_or(0.0) / 1000.0,
            failed
        );
        if self.run.rate.is_some() {
            let _ = write!(to, ", lag {:.3} ms", sum.mean_lag_us().unwrap_or(0.0) / 1000.0);
        }
        if self.run.skips_late() {
            let _ = write!(to, ", {} skipped", sum.skipped);
        }
        if self.run.max_tries != 1 {
            let _ = write!(to, ", {} retried, {} retries", sum.retried, sum.retries);
        }
        to.push('\n');
        self.next += self.every;
    }
}
