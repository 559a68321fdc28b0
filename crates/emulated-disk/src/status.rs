//! What a disk tells of itself: counts, flushes, its last power cut.

use std::time::Duration;

use pgdyno_exec::monotonic::MonotonicTime;
use serde::{Deserialize, Serialize};

/// What a disk has done since it was made (counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskCounters {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes; their number is that of the newest one in the write log.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Discards, which count as writes too.
    pub discards: u64,
    /// Flushes that were done.
    pub flushes: u64,
    /// Flushes that were acknowledged: those that were done, and those that were lies.
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
    /// Returns what happened after `earlier` was taken of the same disk.
    #[must_use]
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
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.completed.since(self.began)
    }
}

/// The flushes that tell what a disk promised and what it kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushFacts {
    /// The newest that was acknowledged, whether or not it was done.
    pub acknowledged: Option<FlushSpan>,
    /// The newest that was done.
    pub done: Option<FlushSpan>,
    /// The longest that was acknowledged since the baseline (nanoseconds); 0: there was none.
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

/// A power cut that happened. It tells the same until the next cut, also once there is power again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutFacts {
    /// When: no request succeeded after it. [`MonotonicTime::to_instant`] puts it among the
    /// instants of the process that asks.
    #[serde(default)]
    pub at: MonotonicTime,
    /// The flushes before it.
    #[serde(default)]
    pub flushes: FlushFacts,
    /// What the disk had done since the baseline, the losses of this cut included.
    #[serde(default)]
    pub since_baseline: DiskCounters,
    /// The newest write at that time.
    pub at_write: u64,
    /// Flushes that had been done by then.
    pub after_flushes: u64,
    /// The rule that made it; none: it was asked for.
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

/// How far a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleState {
    /// Its number, from [`super::Control::arm`].
    pub id: u64,
    /// Requests that its selector took.
    pub selected: u64,
    /// Of them, those that it hit.
    pub hit: u64,
}

/// What a disk tells of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskStatus {
    /// Whether it has power.
    pub powered: bool,
    /// Whether it acknowledges flushes that it does not do.
    pub lying: bool,
    /// What it has done since it was made.
    pub counters: DiskCounters,
    /// What it has done since [`super::Control::begin_baseline`], or since it was made.
    #[serde(default)]
    pub since_baseline: DiskCounters,
    /// Its flushes up to now; those up to the last cut are in [`CutFacts::flushes`].
    #[serde(default)]
    pub flushes: FlushFacts,
    /// Writes in the volatile cache.
    pub cached_writes: u64,
    /// What they take (bytes).
    pub cached_bytes: u64,
    /// The last cut.
    pub cut: Option<CutFacts>,
    /// The armed rules.
    pub rules: Vec<RuleState>,
}
