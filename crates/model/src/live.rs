//! Facts of a run while it works: the run at its beginning, its seconds of load, its outlook.
//!
//! A run writes its [`Event`](crate::progress::Event)s, which carry these, to its live file.

use serde::{Deserialize, Serialize};

use crate::PlannedTrial;
use crate::facts::Owner;
use crate::units::Epoch;

/// A run at its beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveRun {
    /// Schema of the records in words, [`LiveRun::SCHEMA`].
    pub schema: String,
    /// The run's id in the store.
    pub run: String,
    /// The recipe's or the file's name.
    pub recipe: String,
    /// Question of the experiment.
    pub question: Option<String>,
    /// When this session began.
    pub started_at: Epoch,
    /// The process that works on it.
    pub owner: Owner,
    /// Name of each treatment, by index.
    pub treatments: Vec<String>,
    /// All planned trials in order.
    pub trials: Vec<PlannedTrial>,
    /// Ordinals of the trials that earlier sessions completed.
    pub done: Vec<u32>,
    /// Load before each measured window (seconds).
    pub warm_up_s: f64,
    /// The measured window (seconds); none if a trial ends by count.
    pub window_s: Option<f64>,
    /// Whether the run ends by itself once everything is decided.
    pub is_open_ended: bool,
}

impl LiveRun {
    /// Schema of the records in words, as `--progress json` prints them.
    pub const SCHEMA: &'static str = "pgdyno.live/1";
}

/// One second of load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadSecond {
    /// Time from the beginning of the phase to the end of this second (seconds).
    pub elapsed_s: f64,
    /// Whether the measured window is open; else it is warm-up.
    pub measuring: bool,
    /// Transactions per second.
    pub tps: f64,
    /// Transactions that failed (count).
    pub failed: u64,
    /// Median latency (microseconds); none if no transaction ended.
    pub latency_us_p50: Option<f64>,
    /// 99th percentile of latency (microseconds).
    pub latency_us_p99: Option<f64>,
    /// Latencies: bucket and count, 4 buckets an octave from 1 µs on, as
    /// [`SecondLatencies::rebinned`](crate::SecondLatencies::rebinned) has them.
    pub latencies: Vec<(u16, u64)>,
    /// 99th percentile of the event loops' lag (microseconds); none where it was not measured.
    pub event_loop_lag_us_p99: Option<f64>,
    /// Wait events of the loaded backends, most frequent first, at most [`LoadSecond::WAITS`], with
    /// the mean number of backends that waited (count). `CPU` stands for those that did not wait.
    /// Idle ones (`Client:ClientRead`) are left out.
    pub waits: Vec<(String, f64)>,
    /// Expected time until the run ends (seconds).
    pub left_s: f64,
}

impl LoadSecond {
    /// Buckets of an octave in [`LoadSecond::latencies`] (count).
    pub const BUCKETS_PER_OCTAVE: u16 = 4;
    /// Most wait events in [`LoadSecond::waits`] (count).
    pub const WAITS: usize = 5;
}

/// How the comparisons of a run stand after a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outlook {
    /// Blocks that are complete (count).
    pub blocks: u32,
    /// Comparisons that are decided (count).
    pub decided: u32,
    /// Comparisons in all (count).
    pub comparisons: u32,
    /// Further blocks until all comparisons are decided, estimated from the intervals so far
    /// (count). None if there is no estimate yet, or if some comparisons would stay open after
    /// `ceiling` blocks.
    pub blocks_left: Option<u32>,
    /// Most blocks that the run measures (count).
    pub ceiling: u32,
}
