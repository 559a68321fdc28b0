//! The sum of the threads' counts, second by second while the load runs and at its end.
//!
//! Call [`Aggregate::add`] for every second of every thread and [`Aggregate::ended`] for every end.
//! [`Aggregate::next_interval`] returns each second that all threads have ended, and
//! [`Aggregate::measurement`] the whole. Whether the seconds come from threads of this process or
//! from other processes makes no difference: addition is exact.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pgdyno_model::measurement::{
    CommandMeasurement, EventLoopLag, PINNED, ScriptMeasurement, Second, StatementMeasurement, Sums,
};
use pgdyno_model::{Latencies, Measurement, SecondLatencies};

use crate::observer::LiveSecond;
use crate::outcome::ThreadOutcome;
use crate::reactor::choice::ReactorKind;
use crate::recorder::Interval;
use crate::schedule::{Moment, Phase, Schedule};
use crate::script::{Command, WeightedScript};
use crate::spec::LoadSpec;
use crate::tally::{CommandTally, ScriptTally, StatementTally, Tally, merge};

/// Phase and second.
type Key = (Phase, u32);

/// Counts of all threads.
pub struct Aggregate {
    schedule: Schedule,
    /// Time at which the last client was connected.
    connected: Moment,
    /// Last second that each thread has ended; none before its first.
    progress: Vec<Option<Key>>,
    running: Vec<bool>,
    pending: BTreeMap<Key, Interval>,
    /// Seconds of the window in which a transaction ended.
    series: BTreeMap<u32, Second>,
    tally: Option<Tally>,
    /// First thread that ended with an aborted client.
    aborted_thread: Option<usize>,
    /// CPU time of each thread within the window (seconds).
    thread_cpu: Vec<f64>,
    /// First second of the window in which each thread had hardly any time left.
    pinned_since: Vec<Option<u32>>,
    last_end: Moment,
    /// Names of the threads' reactors.
    reactors: BTreeSet<&'static str>,
    /// Reasons why another reactor than the requested one served.
    reactor_reasons: BTreeSet<String>,
}

fn joined(words: &BTreeSet<impl AsRef<str>>, between: &str) -> String {
    words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(between)
}

impl Aggregate {
    /// Creates the counts of `threads` threads, the last of which was connected at `connected`.
    pub fn new(schedule: Schedule, connected: Moment, threads: usize) -> Self {
        Self {
            schedule,
            connected,
            progress: vec![None; threads],
            running: vec![true; threads],
            pending: BTreeMap::new(),
            series: BTreeMap::new(),
            tally: None,
            aborted_thread: None,
            thread_cpu: vec![0.0; threads],
            pinned_since: vec![None; threads],
            last_end: Moment(0),
            reactors: BTreeSet::new(),
            reactor_reasons: BTreeSet::new(),
        }
    }

    /// Returns the number of threads that have not ended.
    pub fn running(&self) -> usize {
        self.running.iter().filter(|r| **r).count()
    }

    /// Returns when the last thread ended.
    pub fn last_end(&self) -> Moment {
        self.last_end
    }

    /// Returns the counts of the threads that have ended, and of seconds that carry their own.
    pub fn tally(&self) -> Tally {
        self.tally.clone().unwrap_or_default()
    }

    /// Returns the counts without copying them.
    pub(crate) fn into_tally(self) -> Tally {
        self.tally.unwrap_or_default()
    }

    /// Adds a second of one thread.
    pub fn add(&mut self, thread: usize, interval: Interval) {
        let key = (interval.phase, interval.second);
        if interval.tally.as_ref().is_some_and(|tally| tally.counters.aborted_clients > 0) {
            self.aborted_thread.get_or_insert(thread);
        }
        self.progress[thread] = self.progress[thread].max(Some(key));
        match self.pending.entry(key) {
            Entry::Vacant(entry) => drop(entry.insert(interval)),
            Entry::Occupied(mut entry) => entry.get_mut().merge(&interval),
        }
    }

    /// Adds the CPU time (seconds) that a thread used in `interval`.
    pub(crate) fn add_cpu(&mut self, thread: usize, interval: &Interval, seconds: f64) {
        if interval.phase != Phase::Measuring {
            return;
        }
        self.thread_cpu[thread] += seconds;
        let begin = self.schedule.opening.after(Duration::from_secs(interval.second.into()));
        let length_s = interval.end.since(begin).as_secs_f64();
        if length_s > 0.0 && seconds >= PINNED * length_s {
            self.pinned_since[thread].get_or_insert(interval.second);
        }
    }

    /// Returns the first second of the window in which the thread that was busiest in the whole
    /// window had hardly any time left; none if there is no such second.
    pub(crate) fn busiest_pinned_since(&self) -> Option<u32> {
        let threads = self.thread_cpu.iter().zip(&self.pinned_since);
        threads.max_by(|(a, _), (b, _)| a.total_cmp(b)).and_then(|(_, since)| *since)
    }

    /// Notes that a thread whose seconds carry their counts has ended at `at`.
    pub fn ended(&mut self, thread: usize, at: Moment) {
        self.running[thread] = false;
        self.last_end = self.last_end.max(at);
    }

    fn add_tally(&mut self, more: &Tally) {
        match &mut self.tally {
            Some(tally) => tally.merge(more),
            none => *none = Some(more.clone()),
        }
    }

    /// Notes the outcome of a thread of this process.
    pub(crate) fn thread_ended(&mut self, thread: usize, outcome: &ThreadOutcome) {
        self.ended(thread, outcome.ended);
        if outcome.tally.counters.aborted_clients > 0 {
            self.aborted_thread.get_or_insert(thread);
        }
        self.add_tally(&outcome.tally);
        self.reactors.extend(outcome.reactor.iter().map(<&str>::from));
        if let Some(ReactorKind::Epoll { instead: Some(why) }) = &outcome.reactor {
            self.reactor_reasons.insert(why.clone());
        }
    }

    /// Returns the next second that all threads have ended, and adds it to the whole.
    pub fn next_interval(&mut self) -> Option<Interval> {
        let working = self.progress.iter().zip(&self.running).filter(|(_, running)| **running);
        let done = working.map(|(progress, _)| *progress).min();
        let (&key, _) = self.pending.first_key_value()?;
        // With no thread left, all is done.
        if done.is_some_and(|done| done < Some(key)) {
            return None;
        }
        let (_, pending) = self.pending.pop_first()?;
        if let Some(tally) = &pending.tally {
            self.add_tally(tally);
        }
        self.add_second(&pending);
        Some(pending)
    }

    /// Adds a complete second to the series, if it lies in the window.
    fn add_second(&mut self, pending: &Interval) {
        let quantile = |q| pending.latency.as_ref().and_then(|l| l.quantile_us(q));
        let (phase, second) = (pending.phase, pending.second);
        if phase == Phase::Measuring {
            let settled = Second {
                t_s: second,
                length_s: 1.0,
                transactions: pending.transactions,
                failed: pending.failed,
                latency_us_p50: quantile(0.5),
                latency_us_p95: quantile(0.95),
                latency_us_p99: quantile(0.99),
                latency_us_max: pending.latency.as_ref().and_then(Latencies::max_us),
                latencies: pending.latency.as_ref().map(SecondLatencies::from),
                commands: pending.commands.clone(),
            };
            self.series.insert(second, settled);
        }
    }

    /// Returns `interval` as observers see it.
    pub fn live(&self, interval: &Interval) -> LiveSecond {
        let Interval { phase, second, .. } = *interval;
        let quantile = |q| interval.latency.as_ref().and_then(|l| l.quantile_us(q));
        let elapsed = interval.end.since(self.schedule.begin_of(phase));
        let length = elapsed.saturating_sub(Duration::from_secs(second.into())).as_secs_f64();
        LiveSecond {
            phase,
            elapsed,
            tps: if length > 0.0 { interval.transactions as f64 / length } else { 0.0 },
            latency_us_p50: quantile(0.5),
            latency_us_p99: quantile(0.99),
            failed: interval.failed,
            transactions: interval.transactions,
            event_loop_lag_us_p99: interval
                .event_loop_lag
                .as_ref()
                .and_then(|lag| lag.quantile_us(0.99)),
            latency: interval.latency.clone(),
            sums: interval.sums,
        }
    }

    /// Returns the measurement, once every thread has ended.
    ///
    /// `stopped_at` is set if the load was stopped early; `cpu` is the process's CPU time in the
    /// window (seconds).
    pub fn measurement(
        &mut self,
        spec: &LoadSpec,
        stopped_at: Option<Moment>,
        cpu: f64,
    ) -> Measurement {
        while self.next_interval().is_some() {}
        let tally = self.tally();
        let schedule = self.schedule;
        let closing = self.closing(&tally, stopped_at);
        let measured_s = closing.since(schedule.opening).as_secs_f64();
        let mut latency = Latencies::new();
        let mut service = None;
        let mut sums = Sums::default();
        let mut scripts = Vec::new();
        let groups = spec.groups_of_scripts();
        for ((weighted, script), group) in spec.scripts.iter().zip(&tally.scripts).zip(groups) {
            latency.merge(&script.latency);
            merge(&mut service, script.service.as_ref());
            sums.merge(&script.sums);
            scripts.push(script_measurement(weighted, script, group));
        }
        Measurement {
            connect_s: self.connected.since(Moment(0)).as_secs_f64(),
            warm_up_s: schedule.opening.since(schedule.start).as_secs_f64(),
            measured_s,
            transactions: scripts.iter().map(|s| s.transactions).sum(),
            failed: scripts.iter().map(|s| s.failed).sum(),
            aborted_thread: self.aborted_thread.and_then(|thread| u32::try_from(thread).ok()),
            latency,
            service,
            scripts,
            series: self.whole_series(measured_s),
            reactor: joined(&self.reactors, ", "),
            reactor_reason: Some(joined(&self.reactor_reasons, "; ")).filter(|why| !why.is_empty()),
            generator_cpu_s: cpu,
            total_s: self.last_end.since(schedule.start).as_secs_f64(),
            sums,
            event_loop_lag: EventLoopLag::from_latencies(&tally.event_loop_lag),
            busiest_thread: self.busiest_thread(measured_s),
            counters: tally.counters,
            ..Measurement::default()
        }
    }

    /// Returns the busiest thread's share of a core.
    fn busiest_thread(&self, measured_s: f64) -> f64 {
        let most = self.thread_cpu.iter().copied().fold(0.0, f64::max);
        if measured_s > 0.0 { most / measured_s } else { 0.0 }
    }

    /// Returns when the window closed: after every transaction that counts in it.
    fn closing(&self, tally: &Tally, stopped_at: Option<Moment>) -> Moment {
        let after_last = tally.last_done.map_or(self.schedule.opening, |done| Moment(done.0 + 1));
        let ended = match stopped_at {
            Some(at) => at,
            None if self.schedule.last_begin == Moment::NEVER => after_last,
            // Before the schedule says so, if all clients gave up or had nothing more to do.
            None => self.last_end,
        };
        ended.max(after_last).min(self.schedule.closing).max(self.schedule.opening)
    }

    /// Returns one element for each second of the window, also for seconds without transactions.
    fn whole_series(&mut self, measured_s: f64) -> Vec<Second> {
        let mut series = Vec::new();
        let mut second = 0_u32;
        while f64::from(second) < measured_s {
            let length_s = (measured_s - f64::from(second)).min(1.0);
            let settled = self.series.remove(&second).unwrap_or_default();
            series.push(Second { t_s: second, length_s, ..settled });
            second += 1;
        }
        debug_assert!(self.series.values().all(|s| s.transactions == 0 && s.failed == 0));
        series
    }
}

fn script_measurement(
    weighted: &WeightedScript,
    tally: &ScriptTally,
    group: Option<&str>,
) -> ScriptMeasurement {
    let commands = &weighted.script.commands;
    let sql = commands.iter().filter(|c| c.op.is_statement());
    let statement = |(command, tally): (&Command, &StatementTally)| StatementMeasurement {
        text: command.text.clone(),
        line: command.line,
        failed: tally.failed,
        latency: tally.latency.clone(),
        first_byte: tally.first_byte(),
    };
    let command = |(command, tally): (&Command, &CommandTally)| CommandMeasurement {
        text: command.text.clone(),
        line: command.line,
        kind: command.op.kind().to_owned(),
        count: tally.done.count,
        latency_sum_us: tally.done.nanoseconds as f64 / 1e3,
        failures: tally.failures,
        retries: tally.retries,
    };
    ScriptMeasurement {
        name: weighted.script.name.clone(),
        group: group.map(str::to_owned),
        weight: weighted.weight,
        transactions: tally.transactions,
        failed: tally.failed,
        latency: tally.latency.clone(),
        service: tally.service.clone(),
        statements: sql.zip(&tally.statements).map(statement).collect(),
        commands: commands.iter().zip(&tally.commands).map(command).collect(),
        sums: tally.sums,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_first_second_in_which_the_busiest_thread_had_no_time_left_is_known() {
        let schedule = Schedule {
            start: Moment(0),
            opening: Moment(SECOND),
            last_begin: Moment(3 * SECOND + SECOND / 2),
            closing: Moment(3 * SECOND + SECOND / 2),
            transactions: None,
            grace: Duration::ZERO,
        };
        // Warm-up, two seconds and a half one.
        let since = |threads: &[[f64; 4]]| {
            let mut sum = Aggregate::new(schedule, Moment(0), threads.len());
            for (thread, seconds) in threads.iter().enumerate() {
                for (at, cpu) in (0..).zip(seconds) {
                    sum.add_cpu(thread, &Interval::new(&schedule, Moment(at * SECOND)), *cpu);
                }
            }
            sum.busiest_pinned_since()
        };
        assert_eq!(since(&[[1.0, 0.5, 0.95, 0.1]]), Some(1));
        assert_eq!(since(&[[0.1, 0.95, 0.2, 0.0], [0.1, 0.8, 0.8, 0.45]]), Some(2));
        assert_eq!(since(&[[1.0, 0.8, 0.8, 0.4]]), None);
    }
}
