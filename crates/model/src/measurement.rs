//! Measurement of one trial by the load engine.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::counters::LoadCounters;
pub use crate::sums::Sums;
use crate::{Latencies, Search, SecondLatencies};

/// Figures of the load of one trial. The measured window starts after the warm-up; `transactions`
/// are those whose replies were complete within it.
///
/// Histograms are left out of the JSON: the store keeps them as histograms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Time from the first connection attempt until all clients were connected (seconds).
    pub connect_s: f64,
    /// Load offered before the window opened (seconds).
    pub warm_up_s: f64,
    /// The window's length (seconds).
    pub measured_s: f64,
    /// Transactions that ended well within the window (count).
    pub transactions: u64,
    /// Transactions that ended in an error within the window (count).
    pub failed: u64,
    /// Counts of transactions outside the window, of errors, aborts and connections.
    #[serde(flatten)]
    pub counters: LoadCounters,
    /// Thread (from 0) in which a client first aborted; not stored.
    #[serde(skip)]
    pub aborted_thread: Option<u32>,
    /// Latency of the window's transactions, from due to done.
    #[serde(skip)]
    pub latency: Latencies,
    /// With a rate: latency from sent to done, the time that the server took.
    #[serde(skip)]
    pub service: Option<Latencies>,
    /// Figures of each script, in the workload's order.
    pub scripts: Vec<ScriptMeasurement>,
    /// Name of the script whose transactions alone are compared; none: all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
    /// One element for each second of the window.
    pub series: Vec<Second>,
    /// Reactors that carried the load's bytes: `epoll`, `io_uring`, or both where threads differ.
    /// Earlier versions put the reason behind the name, in parentheses.
    #[serde(default)]
    pub reactor: String,
    /// Reason why another reactor than the requested one carried the bytes; none if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reactor_reason: Option<String>,
    /// CPU time that this process used from the window's opening to its closing (seconds, user +
    /// system).
    pub generator_cpu_s: f64,
    /// Time from the first load until the last client ended, warm-up and draining included
    /// (seconds). pgbench's own tps is all transactions divided by this.
    #[serde(default)]
    pub total_s: f64,
    /// Sums over transactions from the window's opening on, drained ones included.
    #[serde(flatten)]
    pub sums: Sums,
    /// Lag of the event loops; none where it was not measured.
    pub event_loop_lag: Option<EventLoopLag>,
    /// CPU time of the busiest event loop's thread within the window, divided by the window (a
    /// share of one core).
    #[serde(default)]
    pub busiest_thread: f64,
    /// CPU time of the process within the window, divided by the time that affinity and control
    /// group allow (a share: 1 is all). With several generators, the largest. None where an earlier
    /// version measured, and where the limits cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_cpu_used: Option<f64>,
    /// Every rate that was tried in the search for the highest one. All other figures are then of
    /// the step that confirmed the answer, or of the last step if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// Shares of several generators that offered the load together; empty for one process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorMeasurement>,
}

/// Share of a core from which on a thread of the generator has hardly any time left.
pub const PINNED: f64 = 0.9;

/// A window (seconds) below which the generator's CPU time and lag are mostly those of its
/// beginning, and say nothing.
pub const TELLING_WINDOW_S: f64 = 1.0;

/// Returns the share of a core that the generator's busiest thread took, if that left hardly any
/// time in a window of `window_s` seconds, and the window is not below [`TELLING_WINDOW_S`].
pub fn pinned(busiest_thread: f64, window_s: f64) -> Option<f64> {
    (window_s >= TELLING_WINDOW_S && busiest_thread >= PINNED).then_some(busiest_thread)
}

impl Measurement {
    /// Transactions per second within the window; `None` for a window of no length.
    pub fn tps(&self) -> Option<f64> {
        (self.measured_s > 0.0).then(|| self.transactions as f64 / self.measured_s)
    }

    /// Sets `allowed_cpu_used` for a process that may use `cpus` CPUs' worth of time (count).
    #[must_use]
    pub fn with_cpus_allowed(self, cpus: Option<f64>) -> Self {
        let allowed_s = cpus.map(|cpus| cpus * self.measured_s).filter(|allowed| *allowed > 0.0);
        let allowed_cpu_used = allowed_s.map(|allowed| self.generator_cpu_s / allowed);
        Self { allowed_cpu_used, ..self }
    }

    /// Returns the figure by which treatments are compared: the highest confirmed rate if one was
    /// sought, else tps, of the headline script if there is one (all 1/s).
    pub fn compared(&self) -> Option<f64> {
        match (&self.search, &self.headline) {
            (Some(search), _) => search.max_rate,
            (None, Some(headline)) => {
                let its = self.scripts.iter().filter(|script| script.name == *headline);
                let transactions: u64 = its.map(|script| script.transactions).sum();
                (self.measured_s > 0.0).then(|| transactions as f64 / self.measured_s)
            }
            (None, None) => self.tps(),
        }
    }

    /// Returns the limit by which the generator may have set the [`compared`](Self::compared)
    /// figure; none if it did not.
    pub fn limited_by_generator(&self) -> Option<GeneratorLimit> {
        let is_sought = self.search.as_ref().is_some_and(Search::generator_limited);
        self.generator_limit().or(is_sought.then_some(GeneratorLimit::WhileSearching))
    }

    /// Returns the limit that the generator may have set; none if it kept up.
    ///
    /// It may have set one if a thread was busy nine tenths of the time, or if all threads used
    /// nine tenths of the time that they may. So it may if event-loop lag made up a tenth of the
    /// median latency or half of the 99th percentile. A window of less than a second is mostly its
    /// beginning, and says nothing.
    pub fn generator_limit(&self) -> Option<GeneratorLimit> {
        if let Some(share) = pinned(self.busiest_thread, self.measured_s) {
            return Some(GeneratorLimit::Pinned(share));
        }
        if let Some(share) = self.allowed_cpu_used.and_then(|used| pinned(used, self.measured_s)) {
            return Some(GeneratorLimit::HeldBack(share));
        }
        if self.measured_s < TELLING_WINDOW_S {
            return None;
        }
        let lag = self.event_loop_lag?;
        let (p50, p99) = (self.latency.quantile_us(0.5)?, self.latency.quantile_us(0.99)?);
        (lag.p50_us >= p50 / 10.0 || lag.p99_us >= p99 / 2.0).then_some(GeneratorLimit::Lag(lag))
    }

    /// Returns the reactors, with the reason why the requested one did not serve.
    pub fn carried_by(&self) -> String {
        let reason = self.reactor_reason.as_ref();
        reason.map_or_else(|| self.reactor.clone(), |why| format!("{} ({why})", self.reactor))
    }

    /// All transactions that the server acknowledged, in and around the window (count).
    pub fn acknowledged(&self) -> u64 {
        self.counters.warm_up_transactions + self.transactions + self.counters.drained_transactions
    }
}

/// Time that replies and due transactions waited for the event loop of their thread.
///
/// Of the replies that one turn of the loop finds, only the longest wait counts: from the turn of
/// the first reply to that of the last. A due transaction waits from its due time. The figures are
/// lower bounds: waits in the kernel while the loop is busy are not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventLoopLag {
    /// The median (microseconds).
    pub p50_us: f64,
    /// The 99th percentile (microseconds).
    pub p99_us: f64,
    /// The longest wait (microseconds).
    pub max_us: f64,
}

impl EventLoopLag {
    /// Summarises `waits`; none if there are none.
    pub fn from_latencies(waits: &Latencies) -> Option<Self> {
        Some(Self {
            p50_us: waits.quantile_us(0.5)?,
            p99_us: waits.quantile_us(0.99)?,
            max_us: waits.max_us()?,
        })
    }
}

/// Reason why the load generator, and not the server, may have been the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GeneratorLimit {
    /// A thread had hardly any time left (its share of a core, 0 to 1).
    Pinned(f64),
    /// All threads together used almost all CPU time that they may (a share, 0 to 1).
    HeldBack(f64),
    /// Much of the latency was waiting for the event loop.
    Lag(EventLoopLag),
    /// One of the above at a rate that a search found too high.
    WhileSearching,
}

impl fmt::Display for GeneratorLimit {
    /// `a thread of the generator was busy 98% of the time`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned(share) => {
                write!(f, "a thread of the generator was busy {:.0}% of the time", share * 100.0)
            }
            Self::HeldBack(share) => write!(
                f,
                "the generator used {:.0}% of the CPU time that it may (CPU affinity or control \
                 group)",
                share.min(1.0) * 100.0
            ),
            Self::Lag(lag) => write!(
                f,
                "what the server sent waited for the generator's event loop (p50 {:.3} ms, p99 \
                 {:.3} ms)",
                lag.p50_us / 1e3,
                lag.p99_us / 1e3
            ),
            Self::WhileSearching => {
                f.write_str("the generator may have been the limit where the rate was too high")
            }
        }
    }
}

/// One generator's share of a [`Measurement`], where several offered the load together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorMeasurement {
    /// Host, or `local-1`.
    pub name: String,
    /// Clients (count).
    pub clients: u32,
    /// Event loops (count).
    pub threads: u32,
    /// Transactions that ended well within the window (count).
    pub transactions: u64,
    /// Transactions that ended in an error within the window (count).
    pub failed: u64,
    /// Mean latency from due to done (microseconds); none without any.
    pub latency_us_mean: Option<f64>,
    /// Median latency (microseconds).
    pub latency_us_p50: Option<f64>,
    /// 99th percentile of latency (microseconds).
    pub latency_us_p99: Option<f64>,
    /// CPU time that it used in the window (seconds, user + system).
    pub cpu_s: f64,
    /// CPU time of its busiest event loop's thread, as a share of one core.
    pub busiest_thread: f64,
    /// Time from the agreed instant to the actual start (microseconds; negative if it was early).
    pub start_skew_us: f64,
    /// Uncertainty of the generator's clock at the start (microseconds, in both directions).
    pub clock_uncertainty_us: f64,
}

/// One script's share of a [`Measurement`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptMeasurement {
    /// The script's name: a built-in one, or its file.
    pub name: String,
    /// Name of the group of clients that runs it; none where clients have no groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Weight among the workload's scripts.
    pub weight: u32,
    /// Transactions that ended well within the window (count).
    pub transactions: u64,
    /// Transactions that ended in an error within the window (count).
    pub failed: u64,
    /// Latency of the script's transactions, from due to done.
    #[serde(skip)]
    pub latency: Latencies,
    /// With a rate: latency from sent to done.
    #[serde(skip)]
    pub service: Option<Latencies>,
    /// SQL commands, in order.
    pub statements: Vec<StatementMeasurement>,
    /// All commands, meta commands too, in order.
    #[serde(default)]
    pub commands: Vec<CommandMeasurement>,
    /// Share of [`Measurement::sums`].
    #[serde(flatten)]
    pub sums: Sums,
}

/// One command's share of a [`ScriptMeasurement`], SQL or meta, from the window's opening to the
/// end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandMeasurement {
    /// The command as the script has it, white space folded.
    pub text: String,
    /// The line of the script it begins on (1-based).
    pub line: u32,
    /// `sql`, or the meta command's name.
    pub kind: String,
    /// Successful executions (count).
    pub count: u64,
    /// Time of these executions together (microseconds). Meta commands that neither wait nor run a
    /// program take none.
    pub latency_sum_us: f64,
    /// Errors that ended a transaction (count).
    pub failures: u64,
    /// Errors after which the transaction was tried again (count).
    pub retries: u64,
}

/// One SQL command's share of a [`ScriptMeasurement`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementMeasurement {
    /// The command as the script has it, white space folded.
    pub text: String,
    /// The line of the script it begins on (1-based).
    pub line: u32,
    /// Errors within the window (count).
    pub failed: u64,
    /// Latency from sent to done.
    #[serde(skip)]
    pub latency: Latencies,
    /// Part of the latency until the reply's first byte arrived.
    #[serde(skip)]
    pub first_byte: Latencies,
}

/// One second of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Second {
    /// Whole seconds from the window's opening to this second's beginning.
    pub t_s: u32,
    /// How much of the second lies within the window (seconds; less than 1 only in the last one).
    pub length_s: f64,
    /// Transactions that ended well in it (count).
    pub transactions: u64,
    /// Transactions that ended in an error in it (count).
    pub failed: u64,
    /// Median latency (microseconds); none when nothing ended in it.
    pub latency_us_p50: Option<f64>,
    /// 95th percentile of latency (microseconds).
    pub latency_us_p95: Option<f64>,
    /// 99th percentile of latency (microseconds).
    pub latency_us_p99: Option<f64>,
    /// Longest latency (microseconds).
    pub latency_us_max: Option<f64>,
    /// Distribution of latencies; none when nothing ended in it, and in trials that earlier
    /// versions stored.
    #[serde(skip)]
    pub latencies: Option<SecondLatencies>,
    /// Executions of each command in this second, in the order of [`Measurement::scripts`] and
    /// their commands; empty in trials that earlier versions stored.
    #[serde(skip)]
    pub commands: Vec<CommandSums>,
}

/// Executions of one command that ended well. In JSON: `[count, nanoseconds]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct CommandSums {
    /// Executions (count).
    pub count: u64,
    /// Time of all executions together (nanoseconds).
    pub nanoseconds: u64,
}

impl CommandSums {
    /// Adds `other`.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.nanoseconds += other.nanoseconds;
    }

    /// Returns the mean time of one execution (microseconds); none without any.
    pub fn mean_us(self) -> Option<f64> {
        (self.count > 0).then(|| self.nanoseconds as f64 / 1e3 / self.count as f64)
    }

    /// Returns the difference to `before`, an earlier state of these sums.
    pub fn since(self, before: Self) -> Self {
        Self {
            count: self.count - before.count,
            nanoseconds: self.nanoseconds - before.nanoseconds,
        }
    }

    /// Adds `other` to `sums`, element by element.
    pub fn merge_all(sums: &mut Vec<Self>, other: &[Self]) {
        sums.resize(sums.len().max(other.len()), Self::default());
        for (ours, theirs) in sums.iter_mut().zip(other) {
            ours.merge(*theirs);
        }
    }
}

impl From<(u64, u64)> for CommandSums {
    fn from((count, nanoseconds): (u64, u64)) -> Self {
        Self { count, nanoseconds }
    }
}

impl From<CommandSums> for (u64, u64) {
    fn from(sums: CommandSums) -> Self {
        (sums.count, sums.nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_stored_before_the_sums_had_a_type_opens_with_all_of_them() {
        let text = include_str!("../tests/data/measurement-0.1.json");
        let m: Measurement = serde_json::from_str(text).unwrap();
        let expected = Sums {
            // The whole had no such key.
            latency_count: 0,
            latency_sum_ns: 1_000_500,
            latency_sum_squares_ns2: 50_000_250_000,
            lag_sum_ns: 12_500,
            lag_max_ns: 7_500,
            skipped: 4,
            late: 5,
            retried: 2,
            retries: 3,
            serialization_failures: 1,
            deadlock_failures: 0,
            other_failures: 0,
        };
        assert_eq!(m.sums, expected);
        let of_script = Sums { latency_count: 22, lag_sum_ns: 0, lag_max_ns: 0, ..expected };
        assert_eq!(m.scripts[0].sums, of_script);
        assert_eq!((m.counters.reconnections, m.total_s), (6, 3.5));

        // What is written has every key of old in its place, so that whoever reads the JSON finds
        // it there.
        let old: serde_json::Value = serde_json::from_str(text).unwrap();
        let new = serde_json::to_value(&m).unwrap();
        for (old, new) in [(&old, &new), (&old["scripts"][0], &new["scripts"][0])] {
            for (key, value) in old.as_object().unwrap().iter().filter(|(key, _)| *key != "scripts")
            {
                assert_eq!(new.get(key), Some(value), "{key}");
            }
        }
    }

    #[test]
    fn a_measurement_from_before_there_were_sums_opens() {
        let text = r#"{"connect_s":0.1,"warm_up_s":1.0,"measured_s":2.0,"transactions":4,"failed":0,
            "warm_up_transactions":0,"drained_transactions":0,"failed_outside":0,"failures":{},
            "aborted_clients":0,"abort_reasons":[],"scripts":[],"series":[],
            "generator_cpu_s":0.5}"#;
        let m: Measurement = serde_json::from_str(text).unwrap();
        assert_eq!((m.transactions, m.sums), (4, Sums::default()));
    }

    #[test]
    fn a_headline_script_alone_is_compared() {
        let script = |name: &str, transactions| ScriptMeasurement {
            name: name.to_owned(),
            transactions,
            ..ScriptMeasurement::default()
        };
        let scripts = vec![script("order", 30), script("read", 500), script("order", 10)];
        let m = Measurement { measured_s: 4.0, transactions: 540, scripts, ..Default::default() };
        assert_eq!((m.tps(), m.compared()), (Some(135.0), Some(135.0)));
        let m = Measurement { headline: Some("order".to_owned()), ..m };
        assert_eq!((m.tps(), m.compared()), (Some(135.0), Some(10.0)));
    }

    #[test]
    fn a_pinned_thread_or_a_late_event_loop_makes_the_generator_suspect() {
        let mut m = Measurement { measured_s: 5.0, ..Measurement::default() };
        for us in 1..=1000 {
            m.latency.record(us * 1000);
        }
        assert_eq!(m.generator_limit(), None);
        let lag = |p50_us, p99_us| Some(EventLoopLag { p50_us, p99_us, max_us: 1e6 });
        m.event_loop_lag = lag(10.0, 100.0);
        assert_eq!(m.generator_limit(), None, "the longest wait alone is no limit");
        m.event_loop_lag = lag(60.0, 100.0);
        assert_eq!(m.generator_limit(), m.event_loop_lag.map(GeneratorLimit::Lag));
        m.event_loop_lag = lag(10.0, 600.0);
        assert!(m.generator_limit().unwrap().to_string().contains("p99 0.600 ms"));
        m.generator_cpu_s = 0.93;
        m = m.with_cpus_allowed(Some(0.2));
        assert_eq!(m.generator_limit(), Some(GeneratorLimit::HeldBack(0.93)));
        m.busiest_thread = 0.97;
        assert_eq!(m.generator_limit(), Some(GeneratorLimit::Pinned(0.97)));
        m.measured_s = 0.5;
        assert_eq!(m.generator_limit(), None);
    }
}
