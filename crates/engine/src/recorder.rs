//! What one thread counts. No locks; memory is allocated when a second ends and when something
//! fails.

use std::time::{Duration, SystemTime};

use pgdyno_model::experiment::LoadOptions;
use pgdyno_model::measurement::Sums;
use pgdyno_model::{Latencies, LatencyCounts};

use crate::failure::FailureKind;
use crate::program::Program;
use crate::schedule::{Exchange, Moment, Phase, Schedule, Timeline};
use crate::tally::{MAX_REASONS, Tally};
use crate::transaction_log::{LoggedOutcome, LoggedTransaction, TransactionSink};

const SECOND: Duration = Duration::from_secs(1);

/// What one thread counted in one second, or the part of it that a phase ended.
#[derive(Clone, Debug)]
pub struct Interval {
    /// The phase it lies in.
    pub phase: Phase,
    /// Whole seconds from the phase's beginning to its own.
    pub second: u32,
    /// When it ended.
    pub end: Moment,
    /// Transactions that ended well in it.
    pub transactions: u64,
    /// Transactions that failed in it.
    pub failed: u64,
    /// Latency of `transactions`; none when there were none.
    pub latency: Option<Latencies>,
    /// The same added up, and the rest.
    pub sums: Sums,
}

/// The interval that is being filled.
struct CurrentInterval {
    phase: Phase,
    second: u32,
    end: Moment,
    transactions: u64,
    failed: u64,
    sums: Sums,
}

/// A transaction that has ended, well or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedTransaction {
    /// The client's number.
    pub client: u32,
    /// The transaction's number among the client's.
    pub number: u64,
    /// Its script.
    pub script: usize,
    /// Its times.
    pub times: Timeline,
    /// Tries after the first.
    pub retries: u32,
}

/// What a thread's recorder does besides latencies.
#[derive(Default)]
pub struct RecorderOptions {
    /// Where transactions are logged, and the wall clock's time of moment 0.
    pub log: Option<(Box<dyn TransactionSink>, SystemTime)>,
    /// Beyond which latency a transaction is late.
    pub latency_limit: Option<Duration>,
    /// Whether service time is recorded too: with a rate it is not the latency.
    pub service: bool,
}

impl RecorderOptions {
    /// What `options` ask for; no log.
    #[must_use]
    pub fn from_load(options: &LoadOptions) -> Self {
        Self {
            log: None,
            latency_limit: options.latency_limit.map(|limit| limit.0),
            service: options.rate.is_some(),
        }
    }
}

/// Latencies that are pending before they are counted.
const CAPACITY: usize = 512;

/// Distributions that are being filled.
///
/// What is to be counted is pending first, and counted with others: by the time that a server process
/// has run, nothing of the counts is in the caches, and each would be waited for; of many one after
/// the other the processor fetches several at once.
struct LatencyBuffer {
    counts: Vec<LatencyCounts>,
    /// By script: where its first statement's are, and how many statements have any.
    statements: Vec<(u32, usize)>,
    /// Of which distribution, and the latency (nanoseconds).
    pending: Vec<(u32, u64)>,
}

impl LatencyBuffer {
    /// The present second's transactions.
    const SECOND: u32 = 0;

    fn new(program: &Program) -> Self {
        let mut next = Self::SECOND + 1;
        let mut statements = Vec::new();
        for script in &program.scripts {
            statements.push((next, script.distributions));
            next += script.distributions as u32;
        }
        let counts = (0..next).map(|_| LatencyCounts::new()).collect();
        Self { counts, statements, pending: Vec::with_capacity(CAPACITY) }
    }

    #[inline]
    fn push(&mut self, place: u32, latency: u64) {
        if self.pending.len() == CAPACITY {
            self.flush();
        }
        self.pending.push((place, latency));
    }

    #[inline]
    fn push_statement(&mut self, script: usize, statement: usize, latency: u64) {
        let (first, kept) = self.statements[script];
        if statement < kept {
            self.push(first + statement as u32, latency);
        }
    }

    #[cold]
    fn flush(&mut self) {
        for (place, latency) in self.pending.drain(..) {
            self.counts[place as usize].record(latency);
        }
    }

    /// Adds what is counted at `place` to `sum`.
    fn drain_into(&mut self, place: u32, sum: &mut Latencies) {
        self.flush();
        self.counts[place as usize].drain_into(sum);
    }
}

/// Counts for one thread, and hands each second on as it ends.
pub struct Recorder {
    schedule: Schedule,
    tally: Tally,
    latencies: LatencyBuffer,
    /// What did not wait for the event loop at all.
    without_lag: u64,
    current: CurrentInterval,
    on_interval: Box<dyn FnMut(Interval) + Send>,
    options: RecorderOptions,
}

impl Recorder {
    /// A recorder of `program`'s transactions; `ended` takes every second as it ends.
    #[must_use]
    pub fn new(
        program: &Program,
        schedule: Schedule,
        on_interval: Box<dyn FnMut(Interval) + Send>,
    ) -> Self {
        Self::with_options(program, schedule, on_interval, RecorderOptions::default())
    }

    /// One that does `options` too.
    #[must_use]
    pub fn with_options(
        program: &Program,
        schedule: Schedule,
        on_interval: Box<dyn FnMut(Interval) + Send>,
        options: RecorderOptions,
    ) -> Self {
        let current = CurrentInterval {
            phase: Phase::WarmUp,
            second: 0,
            end: schedule.start,
            transactions: 0,
            failed: 0,
            sums: Sums::default(),
        };
        let mut tally = Tally::new(program);
        if options.service {
            tally.scripts.iter_mut().for_each(|script| script.service = Some(Latencies::new()));
        }
        let mut recorder = Self {
            schedule,
            tally,
            latencies: LatencyBuffer::new(program),
            without_lag: 0,
            current,
            on_interval,
            options,
        };
        recorder.begin_interval(schedule.start);
        recorder
    }

    /// Goes by `schedule` from now on; called before anything is counted.
    pub(crate) fn start(&mut self, schedule: Schedule) {
        self.schedule = schedule;
        self.begin_interval(schedule.start);
    }

    /// The times it goes by.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// When the present second ends: [`Recorder::tick`] is due then.
    #[must_use]
    pub fn next_tick(&self) -> Moment {
        self.current.end
    }

    /// Begins the interval that holds `at`.
    fn begin_interval(&mut self, at: Moment) {
        let phase = self.schedule.phase(at);
        let begins = self.schedule.begin_of(phase);
        let second = at.since(begins).as_secs();
        self.current.phase = phase;
        self.current.second = u32::try_from(second).unwrap_or(u32::MAX);
        let end = begins.after(SECOND * self.current.second.saturating_add(1));
        self.current.end = match phase {
            Phase::Draining => end,
            Phase::WarmUp | Phase::Measuring => end.min(self.schedule.end_of(phase)),
        };
    }

    /// Hands on the present second if it has ended by `now`.
    #[inline]
    pub fn tick(&mut self, now: Moment) {
        if now >= self.current.end {
            self.flush_interval(self.current.end);
            self.begin_interval(now);
        }
    }

    fn flush_interval(&mut self, end: Moment) {
        let current = &mut self.current;
        let latency = (current.transactions > 0).then(|| {
            let mut latency = Latencies::new();
            self.latencies.drain_into(LatencyBuffer::SECOND, &mut latency);
            latency
        });
        if let (Phase::Measuring, [script], Some(latency)) =
            (current.phase, &mut self.tally.scripts[..], &latency)
        {
            script.latency.merge(latency);
        }
        let interval = Interval {
            phase: current.phase,
            second: current.second,
            end,
            transactions: current.transactions,
            failed: current.failed,
            latency,
            sums: std::mem::take(&mut current.sums),
        };
        current.transactions = 0;
        current.failed = 0;
        (self.on_interval)(interval);
    }

    /// Counts a statement whose reply was complete.
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

    /// Counts a command that took `nanoseconds` and ended well at `done`.
    #[inline]
    pub fn record_command(&mut self, script: usize, step: usize, nanoseconds: u64, done: Moment) {
        if done >= self.schedule.opening {
            let tally = &mut self.tally.scripts[script].commands[step];
            tally.count += 1;
            tally.nanoseconds += nanoseconds;
        }
    }

    /// Counts an error in a command after which its transaction is tried again.
    pub fn record_retry(&mut self, script: usize, step: usize, now: Moment) {
        if now >= self.schedule.opening {
            self.tally.scripts[script].commands[step].retries += 1;
        }
    }

    /// Counts that something waited `nanoseconds` for the event loop to come to it.
    #[inline]
    pub fn record_lag(&mut self, nanoseconds: u64) {
        if self.current.phase == Phase::Measuring {
            match nanoseconds {
                0 => self.without_lag += 1,
                waited => self.tally.event_loop_lag.record(waited),
            }
        }
    }

    /// Counts a connection that was lost and is to be made anew.
    pub fn record_lost_connection(&mut self) {
        self.tally.lost_connections += 1;
    }

    /// Counts `count` connections that were made one by one, and together `took` so long.
    pub fn record_reconnections(&mut self, count: u64, took: Duration) {
        self.tally.reconnections.0 += count;
        self.tally.reconnections.1 += took;
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
            self.tally.warm_up_transactions += 1;
            return;
        }
        let latency = times.latency();
        let lag = times.sent.nanoseconds_since(times.due);
        self.current.transactions += 1;
        self.latencies.push(LatencyBuffer::SECOND, latency);
        self.current.sums.add(latency, lag);
        self.current.sums.tried(ended.retries);
        if self.current.phase == Phase::WarmUp {
            self.tally.warm_up_transactions += 1;
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
            // That of an only script is the seconds' together.
            if several {
                tally.latency.record(latency);
            }
            if let Some(service) = &mut tally.service {
                service.record(times.service());
            }
            self.tally.last_done = Some(times.done);
        } else {
            self.tally.drained_transactions += 1;
        }
    }

    /// Counts a transaction that was never sent.
    pub fn record_skipped(&mut self, ended: &FinishedTransaction) {
        self.tick(ended.times.done);
        self.log(ended, LoggedOutcome::Skipped);
        self.current.sums.skipped += 1;
        if self.current.phase != Phase::WarmUp {
            self.tally.scripts[ended.script].sums.skipped += 1;
        }
    }

    /// Counts a transaction that ended in an error of class `code`, in `step` unless it met none;
    /// that is `statement` if it is an SQL command.
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
            self.tally.failed_outside += 1;
            return;
        }
        self.tally.last_done = Some(times.done);
        self.tally.scripts[script].failed += 1;
        if let Some(tally) =
            statement.and_then(|n| self.tally.scripts[script].statements.get_mut(n))
        {
            tally.failed += 1;
        }
        match self.tally.failures.get_mut(code) {
            Some(count) => *count += 1,
            None => {
                self.tally.failures.insert(code.to_owned(), 1);
            }
        }
    }

    /// Counts a transaction that the end of the load left without an outcome.
    pub fn record_abandoned(&mut self) {
        self.tally.failed_outside += 1;
    }

    /// Counts a client that gave up.
    pub fn record_abort(&mut self, reason: String) {
        self.tally.aborted_clients += 1;
        if self.tally.abort_reasons.len() < MAX_REASONS {
            self.tally.abort_reasons.push(reason);
        }
    }

    /// Hands on what the last second holds, and gives up the whole.
    #[must_use]
    pub fn finish(mut self, now: Moment) -> Tally {
        self.tick(now);
        self.flush_interval(now);
        for (script, tally) in self.tally.scripts.iter_mut().enumerate() {
            for (place, statement) in
                (self.latencies.statements[script].0..).zip(&mut tally.statements)
            {
                self.latencies.drain_into(place, &mut statement.latency);
            }
        }
        self.tally.event_loop_lag.record_many(0, self.without_lag);
        if let Some((sink, _)) = &mut self.options.log {
            sink.finish();
        }
        self.tally
    }
}
