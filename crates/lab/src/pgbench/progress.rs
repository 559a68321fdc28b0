//! `-P`: progress lines, in pgbench's shape.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pgdyno_engine::{Live, Phase};

use super::options::Run;

/// Adds up seconds to the interval that was asked for.
#[derive(Debug)]
pub(super) struct Progress {
    every: Duration,
    timestamp: bool,
    rate: bool,
    skips: bool,
    retries: bool,
    /// When the interval ends, from the load's beginning.
    next: Duration,
    sum: Interval,
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    transactions: u64,
    latency: f64,
    squares: f64,
    lag: f64,
    failed: u64,
    skipped: u64,
    retried: u64,
    retries: u64,
}

impl Progress {
    pub(super) fn new(every: Duration, run: &Run) -> Self {
        Self {
            every,
            timestamp: run.progress_timestamp,
            rate: run.rate.is_some(),
            skips: run.rate.is_some() && run.latency_limit_ms.is_some(),
            retries: run.max_tries != 1,
            next: every,
            sum: Interval::default(),
        }
    }

    /// Takes a second; the lines that are due, ends of line included.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn second(&mut self, live: &Live) -> String {
        let mut lines = String::new();
        if live.phase != Phase::Measuring {
            return lines;
        }
        // Seconds in which nothing ended are not told of.
        while live.elapsed >= self.next + Duration::from_secs(1) {
            self.line(&mut lines);
        }
        let n = live.transactions as f64;
        let (mean, stddev) = (live.latency_us_mean.unwrap_or(0.0), live.latency_us_stddev.unwrap_or(0.0));
        self.sum.transactions += live.transactions;
        self.sum.latency += mean * n;
        self.sum.squares += (stddev * stddev + mean * mean) * n;
        self.sum.lag += live.lag_us_mean.unwrap_or(0.0) * n;
        self.sum.failed += live.failed;
        self.sum.skipped += live.skipped;
        self.sum.retried += live.retried;
        self.sum.retries += live.retries;
        if live.elapsed >= self.next {
            self.line(&mut lines);
        }
        lines
    }

    /// The lines that are due when the load has ended after `measured`: its last second may hold nothing to tell of.
    pub(super) fn finish(&mut self, measured: Duration) -> String {
        let mut lines = String::new();
        while self.next <= measured {
            self.line(&mut lines);
        }
        lines
    }

    #[allow(clippy::cast_precision_loss)]
    fn line(&mut self, to: &mut String) {
        let sum = std::mem::take(&mut self.sum);
        let n = sum.transactions as f64;
        let (mean, stddev, lag) = if n > 0.0 {
            let mean = sum.latency / n;
            (mean, (sum.squares / n - mean * mean).max(0.0).sqrt(), sum.lag / n)
        } else {
            (0.0, 0.0, 0.0)
        };
        let tps = n / self.every.as_secs_f64();
        let at = if self.timestamp {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("{:.3}", now.as_secs_f64())
        } else {
            format!("{:.1}", self.next.as_secs_f64())
        };
        let _ = write!(
            to,
            "progress: {at} s, {tps:.1} tps, lat {:.3} ms stddev {:.3}, {} failed",
            mean / 1000.0,
            stddev / 1000.0,
            sum.failed
        );
        if self.rate {
            let _ = write!(to, ", lag {:.3} ms", lag / 1000.0);
        }
        if self.skips {
            let _ = write!(to, ", {} skipped", sum.skipped);
        }
        if self.retries {
            let _ = write!(to, ", {} retried, {} retries", sum.retried, sum.retries);
        }
        to.push('\n');
        self.next += self.every;
    }
}
