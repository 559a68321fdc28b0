//! One worker as the coordinator sees it: its stage, its clock and its counts.

use std::net::IpAddr;
use std::ops::Range;

use pgdyno_engine::recorder::Interval;
use pgdyno_engine::share::clients_of;
use pgdyno_engine::tally::Tally;
use pgdyno_engine::{LoadSpec, Phase};
use pgdyno_model::Latencies;
use pgdyno_model::measurement::{GeneratorMeasurement, Sums};

use crate::clock::{ClockEstimate, Nanos};
use crate::error::Fault;
use crate::protocol::{Done, IntervalCounts, LoadDescription};

/// How far a worker has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Started, not heard from.
    Launched,
    /// Said hello; its clock is being read.
    Greeted,
    /// Connects its clients.
    Connecting,
    /// Waits for the start.
    Ready,
    /// Offers load.
    Running,
    /// Ended; no more reports are expected.
    Gone,
}

/// One worker.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) description: Box<LoadDescription>,
    pub(super) stage: Stage,
    pub(super) clock: ClockEstimate,
    /// Address from which its clients will come, where the server has to know.
    pub(super) address: Option<IpAddr>,
    pub(super) last_heard: Nanos,
    pub(super) next_exchange: Nanos,
    /// Start minus the agreed instant, and the uncertainty of that (nanoseconds).
    pub(super) start: Option<(i64, u64)>,
    clients: u32,
    /// Reports of seconds that came (count).
    seconds: u64,
    /// Transactions in the window that ended well, as reported so far (count).
    transactions: u64,
    failed: u64,
    latency: Latencies,
    sums: Sums,
    /// Totals from the worker's last report; none before its end.
    pub(super) done: Option<Done>,
}

impl Member {
    pub(super) fn new(name: String, spec: &LoadSpec, share: Range<u32>) -> Self {
        Self {
            name,
            clients: clients_of(spec, &share),
            description: Box::new(LoadDescription::new(spec, share)),
            stage: Stage::Launched,
            clock: ClockEstimate::default(),
            address: None,
            last_heard: 0,
            next_exchange: 0,
            start: None,
            seconds: 0,
            transactions: 0,
            failed: 0,
            latency: Latencies::new(),
            sums: Sums::default(),
            done: None,
        }
    }

    /// Goes on from one stage to the next.
    pub(super) fn advance(&mut self, from: Stage, to: Stage) -> Result<(), Fault> {
        if self.stage != from {
            return Err(Fault::Protocol(format!("a report out of turn ({:?})", self.stage)));
        }
        self.stage = to;
        Ok(())
    }

    /// Takes the report of a second.
    pub(super) fn take_second(
        &mut self,
        number: u64,
        counts: &IntervalCounts,
    ) -> Result<Interval, Fault> {
        if number != self.seconds {
            return Err(Fault::LostSecond { expected: self.seconds, found: number });
        }
        self.seconds += 1;
        let interval = counts.read().map_err(Fault::Counts)?;
        if interval.phase == Phase::Measuring {
            self.transactions += interval.transactions;
            self.failed += interval.failed;
            self.sums.merge(&interval.sums);
            if let Some(latency) = &interval.latency {
                self.latency.merge(latency);
            }
        }
        Ok(interval)
    }

    /// Takes the totals, if its seconds add up to them.
    pub(super) fn end(&mut self, done: &Done) -> Result<Tally, Fault> {
        if done.seconds != self.seconds {
            return Err(Fault::LostSecond { expected: self.seconds, found: done.seconds });
        }
        let totals = done.totals.read().map_err(Fault::Counts)?;
        let total: u64 = totals.scripts.iter().map(|script| script.transactions).sum();
        let failed: u64 = totals.scripts.iter().map(|script| script.failed).sum();
        if (total, failed) != (self.transactions, self.failed) {
            return Err(Fault::Sum { seconds: self.transactions, total });
        }
        self.advance(Stage::Running, Stage::Gone)?;
        self.done = Some(done.clone());
        Ok(totals)
    }

    /// Returns its share of the measurement.
    pub(super) fn measurement(&self) -> GeneratorMeasurement {
        let done = self.done.as_ref();
        let (skew, uncertainty) = self.start.unwrap_or_default();
        GeneratorMeasurement {
            name: self.name.clone(),
            clients: self.clients,
            threads: self.description.share.len() as u32,
            transactions: self.transactions,
            failed: self.failed,
            latency_us_mean: self.sums.mean_us(),
            latency_us_p50: self.latency.quantile_us(0.5),
            latency_us_p99: self.latency.quantile_us(0.99),
            cpu_s: done.map_or(0.0, |done| done.cpu_s),
            busiest_thread: done.map_or(0.0, |done| done.busiest_thread),
            start_skew_us: skew as f64 / 1e3,
            clock_uncertainty_us: uncertainty as f64 / 1e3,
        }
    }
}
