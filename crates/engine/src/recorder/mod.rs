//! Counting what one thread's clients do.
//!
//! A [`Recorder`] belongs to one event loop. Call its `record_…` methods as things happen and
//! [`Recorder::tick`] when [`Recorder::next_tick`] has come: each second that ends is handed on as
//! an [`Interval`]. [`Recorder::finish`] returns the counts of the whole load.
//!
//! Nothing here takes a lock. Memory is allocated when a second ends and when something fails.

mod interval;
mod latency_buffer;

use std::time::{Duration, SystemTime};

pub use interval::Interval;
use latency_buffer::LatencyBuffer;
use pgdyno_model::experiment::LoadOptions;
use pgdyno_model::measurement::CommandSums;
use pgdyno_model::{FlushAccounting, Latencies, LatencyCounts};

use crate::failure::FailureKind;
use crate::program::Program;
use crate::schedule::{Exchange, Moment, Phase, Schedule, Timeline};
use crate::tally::Tally;
use crate::transaction_log::{LoggedOutcome, LoggedTransaction, TransactionSink};

/// A transaction that has ended, well or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedTransaction {
    /// Client's number, from 0.
    pub client: u32,
    /// Transaction's number among the client's, from 0.
    pub number: u64,
    /// Script's index in the program.
    pub script: usize,
    /// When the transaction was due, sent and done.
    pub times: Timeline,
    /// Tries after the first (count).
    pub retries: u32,
}

/// Tasks of a recorder besides counting.
#[derive(Default)]
pub struct RecorderOptions {
    /// Log of transactions, and the wall clock's time of moment 0.
    pub log: Option<(Box<dyn TransactionSink>, SystemTime)>,
    /// Latency beyond which a transaction counts as late.
    pub latency_limit: Option<Duration>,
    /// Whether service time has a distribution of its own: with a rate it differs from latency.
    pub service: bool,
    /// Whether each second carries what it adds to the counts of the whole load. What
    /// [`Recorder::finish`] returns then counts nothing.
    pub tallies_seconds: bool,
    /// Whether commits are judged by the disk's flushes.
    pub accounts_flushes: bool,
}

impl RecorderOptions {
    /// Takes what `options` ask for; without a log.
    pub fn from_load(options: &LoadOptions) -> Self {
        Self {
            log: None,
            latency_limit: options.latency_limit.map(|limit| limit.0),
            service: options.rate.is_some(),
            tallies_seconds: false,
            accounts_flushes: false,
        }
    }
}

/// Counts one thread's transactions and hands on each second as it ends.
pub struct Recorder {
    schedule: Schedule,
    tally: Tally,
    latencies: LatencyBuffer,
    /// Event-loop lag of the current interval, where there was some.
    lag: LatencyCounts,
    /// Events of the current interval handled without event-loop lag (count).
    without_lag: u64,
    current: Interval,
    /// Executions of each command before the current interval, by script and step.
    commands_before: Vec<CommandSums>,
    on_interval: Box<dyn FnMut(Interval) + Send>,
    options: RecorderOptions,
    /// Clients that gave up so far (count).
    aborted: usize,
}

impl Recorder {
    /// Creates a recorder of `program`'s transactions; `on_interval` takes every second as it ends.
    pub fn new(
        program: &Program,
        schedule: Schedule,
        on_interval: Box<dyn FnMut(Interval) + Send>,
    ) -> Self {
        Self::with_options(program, schedule, on_interval, RecorderOptions::default())
    }

    /// Creates a recorder that does what `options` ask for, too.
    pub fn with_options(
        program: &Program,
        schedule: Schedule,
        on_interval: Box<dyn FnMut(Interval) + Send>,
        options: RecorderOptions,
    ) -> Self {
        let mut tally = Tally::new(program);
        if options.service {
            tally.scripts.iter_mut().for_each(|script| script.service = Some(Latencies::new()));
        }
        if options.accounts_flushes {
            tally.counters.flush_accounting = Some(FlushAccounting::with_room());
        }
        Self {
            schedule,
            tally,
            latencies: LatencyBuffer::new(program),
            lag: LatencyCounts::new(),
            without_lag: 0,
            current: Interval::new(&schedule, schedule.start),
            commands_before: Vec::new(),
            on_interval,
            options,
            aborted: 0,
        }
    }

    /// Replaces the schedule. Called before anything is counted.
    pub(crate) fn start(&mut self, schedule: Schedule) {
        self.schedule = schedule;
        self.current = Interval::new(&schedule, schedule.start);
    }

    /// Returns the load's schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the end of the current second, when [`Recorder::tick`] is due.
    pub fn next_tick(&self) -> Moment {
        self.current.end
    }

    /// Hands on the current second if it has ended by `now`.
    #[inline]
    pub fn tick(&mut self, now: Moment) {
        if now >= self.current.end {
            self.hand_on(self.current.end, now);
        }
    }

    /// Hands on the current interval as of `end`, and begins the one that holds `now`.
    fn hand_on(&mut self, end: Moment, now: Moment) {
        let next = Interval::new(&self.schedule, now);
        let mut interval = std::mem::replace(&mut self.current, next);
        interval.end = end;
        if interval.transactions > 0 {
            let latency = self.latencies.take_second();
            if let (Phase::Measuring, [script]) = (interval.phase, &mut self.tally.scripts[..]) {
                script.latency.merge(&latency);
            }
            interval.latency = Some(latency);
        }
        interval.event_loop_lag = self.take_lag(interval.phase);
        if interval.phase == Phase::Measuring {
            interval.commands = self.take_commands();
        }
        if self.options.tallies_seconds {
            interval.tally = Some(Box::new(self.take_tally()));
        }
        (self.on_interval)(interval);
    }

    /// Returns each command's executions since the last call.
    fn take_commands(&mut self) -> Vec<CommandSums> {
        let commands = self.tally.scripts.iter().flat_map(|script| &script.commands);
        let now: Vec<CommandSums> = commands.map(|command| command.done).collect();
        let before = std::mem::replace(&mut self.commands_before, now.clone());
        let before = before.into_iter().chain(std::iter::repeat(CommandSums::default()));
        now.into_iter().zip(before).map(|(now, before)| now.since(before)).collect()
    }

    /// Moves the counts of the whole load out.
    fn take_tally(&mut self) -> Tally {
        self.drain_statements();
        self.commands_before.clear();
        self.tally.take()
    }

    /// Moves the statements' distributions into the counts of the whole load.
    fn drain_statements(&mut self) {
        for (script, tally) in self.tally.scripts.iter_mut().enumerate() {
            let sums = tally.statements.iter_mut().map(|statement| &mut statement.latency);
            self.latencies.drain_statements(script, sums);
        }
    }

    /// Moves the current interval's lag out; none if no event was handled.
    fn take_lag(&mut self, phase: Phase) -> Option<Latencies> {
        let mut lag = Latencies::new();
        self.lag.drain_into(&mut lag);
        lag.record_many(0, std::mem::take(&mut self.without_lag));
        if phase == Phase::Measuring {
            self.tally.event_loop_lag.merge(&lag);
        }
        (lag.count() > 0).then_some(lag)
    }

    /// Counts a statement whose reply is complete.
    #[inline]
    pub fn record_statement(&mut self, script: usize, statement: usize, times: &Exchange) {
        if self.schedule.phase(times.done) == Phase::Measuring {
            self.latencies.push_statement(script, statement, times.latency());
            if times.first_byte < times.done
                && let Some(tally) = self.tally.scripts[script].statements.get_mut(statement)
            {
                tally.partial.get_or_insert_default().record(times);
            }
        }
    }

    /// Counts a command, SQL or meta, that took `nanoseconds` and ended well at `done`.
    #[inline]
    pub fn record_command(&mut self, script: usize, step: usize, nanoseconds: u64, done: Moment) {
        if done >= self.schedule.opening {
            let tally = &mut self.tally.scripts[script].commands[step];
            tally.done.count += 1;
            tally.done.nanoseconds += nanoseconds;
        }
    }

    /// Counts an error of a command after which its transaction is retried.
    pub fn record_retry(&mut self, script: usize, step: usize, now: Moment) {
        if now >= self.schedule.opening {
            self.tally.scripts[script].commands[step].retries += 1;
        }
    }

    /// Counts an event that waited `nanoseconds` until the event loop handled it.
    #[inline]
    pub fn record_lag(&mut self, nanoseconds: u64) {
        match nanoseconds {
            0 => self.without_lag += 1,
            waited => self.lag.record(waited),
        }
    }

    /// Counts a connection that was lost and will be made anew.
    pub fn record_lost_connection(&mut self) {
        self.tally.counters.lost_connections += 1;
    }

    /// Counts a connection that was made while the load runs, and the time it `took`.
    pub fn record_reconnection(&mut self, took: Duration) {
        self.tally.counters.reconnections += 1;
        self.tally.counters.reconnect_s += took.as_secs_f64();
    }

    fn log(&mut self, ended: &FinishedTransaction, outcome: LoggedOutcome) {
        let Some((sink, base)) = &mut self.options.log else { return };
        let at = |moment: Moment| *base + Duration::from_nanos(moment.0);
        sink.transaction(&LoggedTransaction {
            client: ended.client,
            number: ended.number,
            script: ended.script,
            due: at(ended.times.due),
            sent: at(ended.times.sent),
            done: at(ended.times.done),
            latency_ns: ended.times.latency(),
            lag_ns: ended.times.sent.nanoseconds_since(ended.times.due),
            outcome,
            retries: ended.retries,
        });
    }

    /// Counts a transaction that ended well.
    #[inline]
    pub fn record_transaction(&mut self, ended: &FinishedTransaction) {
        let FinishedTransaction { times, script, .. } = *ended;
        let times = self.schedule.counted_times(times);
        self.tick(times.done);
        if self.options.log.is_some() {
            self.log(ended, LoggedOutcome::Done);
        }
        if self.current.phase == Phase::Measuring && self.schedule.began_in_warm_up(times.sent) {
            self.tally.counters.warm_up_transactions += 1;
            return;
        }
        let latency = times.latency();
        let lag = times.sent.nanoseconds_since(times.due);
        self.current.transactions += 1;
        self.latencies.push_transaction(latency);
        self.current.sums.add(latency, lag);
        self.current.sums.tried(ended.retries);
        if self.current.phase == Phase::WarmUp {
            self.tally.counters.warm_up_transactions += 1;
            return;
        }
        let several = self.tally.scripts.len() > 1;
        let tally = &mut self.tally.scripts[script];
        tally.sums.add(latency, lag);
        tally.sums.tried(ended.retries);
        if self.options.latency_limit.is_some_and(|limit| u128::from(latency) > limit.as_nanos()) {
            tally.sums.late += 1;
            self.current.sums.late += 1;
        }
        if self.current.phase == Phase::Measuring {
            tally.transactions += 1;
            // With one script, the seconds' distributions add up to the script's: see `hand_on`.
            if several {
                tally.latency.record(latency);
            }
            if let Some(service) = &mut tally.service {
                service.record(times.service());
            }
            self.tally.last_done = Some(times.done);
        } else {
            self.tally.counters.drained_transactions += 1;
        }
    }

    /// Counts a commit that was acknowledged at `now`: whether that was before a flush of its own
    /// was done; none if that is not known.
    #[inline]
    pub fn record_commit(&mut self, is_early: Option<bool>, now: Moment) {
        let opening = self.schedule.opening;
        let Some(account) = &mut self.tally.counters.flush_accounting else { return };
        match is_early {
            Some(is_early) => account.add(is_early, || {
                now.since(opening).as_secs_f64() - opening.since(now).as_secs_f64()
            }),
            None => account.unjudged += 1,
        }
    }

    /// Counts a transaction that was skipped: it was due too long ago, and never sent.
    pub fn record_skipped(&mut self, ended: &FinishedTransaction) {
        self.tick(ended.times.done);
        self.log(ended, LoggedOutcome::Skipped);
        self.current.sums.skipped += 1;
        if self.current.phase != Phase::WarmUp {
            self.tally.scripts[ended.script].sums.skipped += 1;
        }
    }

    /// Counts a transaction that ended in an error with SQLSTATE `code`.
    ///
    /// `step` is the command that met the error, if one did; `statement` is set if that command is
    /// SQL.
    pub fn record_failure(
        &mut self,
        ended: &FinishedTransaction,
        step: Option<usize>,
        statement: Option<usize>,
        code: &str,
    ) {
        let FinishedTransaction { times, script, .. } = *ended;
        let kind = FailureKind::from_sqlstate(code);
        self.tick(times.done);
        self.log(ended, LoggedOutcome::Failed(kind));
        self.current.failed += 1;
        self.current.sums.tried(ended.retries);
        *kind.counter_of(&mut self.current.sums) += 1;
        if self.current.phase != Phase::WarmUp {
            let tally = &mut self.tally.scripts[script];
            tally.sums.tried(ended.retries);
            *kind.counter_of(&mut tally.sums) += 1;
            if let Some(step) = step {
                tally.commands[step].failures += 1;
            }
        }
        if self.current.phase != Phase::Measuring {
            self.tally.counters.failed_outside += 1;
            return;
        }
        self.tally.last_done = Some(times.done);
        self.tally.scripts[script].failed += 1;
        if let Some(tally) =
            statement.and_then(|n| self.tally.scripts[script].statements.get_mut(n))
        {
            tally.failed += 1;
        }
        match self.tally.counters.failures.get_mut(code) {
            Some(count) => *count += 1,
            None => {
                self.tally.counters.failures.insert(code.to_owned(), 1);
            }
        }
    }

    /// Counts a transaction whose outcome is unknown because the load ended first.
    pub fn record_abandoned(&mut self) {
        self.tally.counters.failed_outside += 1;
    }

    /// Counts a client that gave up; the first reasons are kept.
    pub fn record_abort(&mut self, reason: String) {
        self.aborted += 1;
        self.tally.counters.record_abort(reason);
    }

    /// Returns how many clients have given up so far.
    pub(crate) fn aborted_clients(&self) -> usize {
        self.aborted
    }

    /// Hands on the last second and returns the counts of the whole load.
    pub fn finish(mut self, now: Moment) -> Tally {
        self.tick(now);
        self.hand_on(now, now);
        self.drain_statements();
        if let Some((sink, _)) = &mut self.options.log {
            sink.finish();
        }
        self.tally
    }
}
