//! The status of a disk: counts, flushes, the last power cut.

use std::time::Duration;

use pgdyno_exec::monotonic::MonotonicTime;
use serde::{Deserialize, Serialize};

/// Requests since the disk was made, by kind and result (counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskCounters {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes and discards.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Discards, which count as writes too.
    pub discards: u64,
    /// Flushes that were done.
    pub flushes: u64,
    /// Acknowledged flushes, done or not.
    #[serde(default)]
    pub acknowledged_flushes: u64,
    /// Flushes and writes that were acknowledged and not done.
    pub lies: u64,
    /// Writes that went to the medium since the cache was full.
    pub destaged: u64,
    /// Cached writes that a cut lost.
    pub dropped: u64,
    /// Cached writes that had reached the medium at a cut without a flush.
    pub survived: u64,
    /// Writes that reached the disk in part.
    pub torn: u64,
    /// Requests that failed because a rule said so.
    pub failed: u64,
}

impl DiskCounters {
    /// Returns the counts since `earlier`, which are counters of the disk too.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            read_bytes: self.read_bytes - earlier.read_bytes,
            writes: self.writes - earlier.writes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            discards: self.discards - earlier.discards,
            flushes: self.flushes - earlier.flushes,
            acknowledged_flushes: self.acknowledged_flushes - earlier.acknowledged_flushes,
            lies: self.lies - earlier.lies,
            destaged: self.destaged - earlier.destaged,
            dropped: self.dropped - earlier.dropped,
            survived: self.survived - earlier.survived,
            torn: self.torn - earlier.torn,
            failed: self.failed - earlier.failed,
        }
    }
}

/// One flush, from the request's arrival in the disk's process to its answer. Injected latency is
/// part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushSpan {
    /// When the request arrived. Every write that was acknowledged before is covered by the flush.
    pub began: MonotonicTime,
    /// When its answer was about to be sent. A cut comes before or after, never in between.
    pub completed: MonotonicTime,
}

impl FlushSpan {
    /// How long it took.
    pub fn duration(&self) -> Duration {
        self.completed.since(self.began)
    }
}

/// The newest acknowledged flush and the newest flush that was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushFacts {
    /// The newest acknowledged flush, done or not.
    pub acknowledged: Option<FlushSpan>,
    /// The newest flush that was done.
    pub done: Option<FlushSpan>,
    /// The longest acknowledged flush since the baseline (nanoseconds); 0 without flushes.
    pub longest_ns: u64,
}

impl FlushFacts {
    pub(super) fn record(&mut self, span: FlushSpan, is_done: bool) {
        self.acknowledged = Some(span);
        if is_done {
            self.done = Some(span);
        }
        let took = u64::try_from(span.duration().as_nanos()).unwrap_or(u64::MAX);
        self.longest_ns = self.longest_ns.max(took);
    }
}

/// The last power cut. It stays until the next cut, also when the power is back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutFacts {
    /// When: no request succeeded after it. [`MonotonicTime::to_instant`] puts it among the
    /// instants of the process that asks.
    #[serde(default)]
    pub at: MonotonicTime,
    /// The flushes before it.
    #[serde(default)]
    pub flushes: FlushFacts,
    /// The counters since the baseline, with the losses of this cut.
    #[serde(default)]
    pub since_baseline: DiskCounters,
    /// Writes by then, discards among them (count).
    pub at_write: u64,
    /// Flushes that had been done by then.
    pub after_flushes: u64,
    /// The rule that cut the power; none if it was cut by request.
    pub rule: Option<u64>,
    /// The share of the cached writes that was to survive it: see [`super::Cut::survives`].
    #[serde(default)]
    pub survives: f64,
    /// Cached writes that it lost.
    pub dropped: u64,
    /// Cached writes that had reached the medium.
    pub survived: u64,
    /// Whether a write reached the medium in part.
    pub torn: bool,
}

/// The progress of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleState {
    /// Number of the rule, from [`super::Control::arm`].
    pub id: u64,
    /// Selected requests (count).
    pub selected: u64,
    /// Requests that the rule hit (count).
    pub hit: u64,
}

/// The status of a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskStatus {
    /// Whether the disk has power.
    pub powered: bool,
    /// Whether the disk acknowledges flushes that it does not do.
    pub lying: bool,
    /// The counters since the disk was made.
    pub counters: DiskCounters,
    /// The number of the newest event, as the disk log counts them.
    #[serde(default)]
    pub events: u64,
    /// The counters since [`super::Control::begin_baseline`], or since the disk was made.
    #[serde(default)]
    pub since_baseline: DiskCounters,
    /// Flushes up to now; those up to the last cut are in [`CutFacts::flushes`].
    #[serde(default)]
    pub flushes: FlushFacts,
    /// Writes in the volatile cache (count).
    pub cached_writes: u64,
    /// The size of the cached writes (bytes).
    pub cached_bytes: u64,
    /// The last cut.
    pub cut: Option<CutFacts>,
    /// The armed rules.
    pub rules: Vec<RuleState>,
}
