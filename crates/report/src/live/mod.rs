//! Live records: events of a run in words, as `--progress json`, the view and web pages have them.
//!
//! Each [`Event`] becomes one [`LiveRecord`]. Whoever watches adds them, from the first on, to a
//! [`LiveState`]: the plan with done and left, the trial in progress second by second, the outlook.
//! The records say what a store says only after each trial.
//!
//! ```
//! use pgdyno_model::progress::Event;
//! use pgdyno_report::live::{LiveRecord, LiveState};
//!
//! let mut state = LiveState::default();
//! state.add(LiveRecord::new(&Event::Stopping));
//! assert!(state.is_stopping);
//! ```

mod state;

use pgdyno_model::PlannedTrial;
use pgdyno_model::live::{LiveRun, LoadSecond, Outlook};
use pgdyno_model::progress::Event;
use pgdyno_model::units::Epoch;
use serde::{Deserialize, Serialize};

pub use self::state::{LiveState, LiveTrial, LiveTrialState};
use crate::progress::{activity, clock, notice, warning};

/// One thing that happened in a run. In JSON, `event` names its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LiveRecord {
    /// The run has its place in the store. Always the first record.
    Begun(LiveRun),
    /// Work without transactions is under way.
    Working {
        /// The work, in words.
        what: String,
        /// How much of the work is done (0 to 1), where that is known.
        share: Option<f64>,
        /// Figures of the work that change all the time, in words.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// Something worth keeping, in words.
    Note {
        /// The note.
        text: String,
    },
    /// Something that must not be missed, in words.
    Warning {
        /// The warning.
        text: String,
    },
    /// A trial begins.
    Trial {
        /// The trial's place in the plan.
        #[serde(flatten)]
        planned: PlannedTrial,
        /// When it began.
        at: Epoch,
        /// Expected time until the run ends (seconds).
        left_s: f64,
    },
    /// A second of load is over.
    Second(LoadSecond),
    /// A trial is in the store.
    TrialDone {
        /// The trial's place in the plan, from 0.
        ordinal: u32,
        /// Transactions per second; none for a trial that failed.
        tps: Option<f64>,
        /// 99th percentile of latency (microseconds).
        latency_us_p99: Option<f64>,
        /// Why the trial failed.
        failure: Option<String>,
        /// Expected time until the run ends (seconds).
        left_s: f64,
    },
    /// After a block: how the comparisons stand in a run that ends by itself.
    Outlook(Outlook),
    /// The run was asked to end after the trial in progress.
    Stopping,
    /// Servers and storages are being taken down.
    TakingDown,
    /// The run is over. The last record; a run that was killed has none.
    Ended {
        /// Final state, as `show` names it: `completed`, `failed` or `interrupted`.
        state: String,
        /// Why the run could not go on; none if it finished its work.
        error: Option<String>,
    },
}

impl LiveRecord {
    /// Finds the words for `event`.
    pub fn new(event: &Event) -> Self {
        match event {
            Event::Note(what) => Self::Note { text: notice(what) },
            Event::Warning(what) => Self::Warning { text: warning(what) },
            Event::Working { activity: what, share } => {
                Self::Working { what: activity(what), share: *share, detail: None }
            }
            Event::Loading { data, rows, of, rows_per_s, bytes_per_s, left } => {
                let left = left.map_or_else(String::new, |left| format!(", {} left", clock(left)));
                let megabytes_per_s = bytes_per_s / 1e6;
                let detail = if rows < of {
                    format!(
                        "{rows} of {of} rows, {rows_per_s:.0} rows/s, {megabytes_per_s:.1} \
                         MB/s{left}"
                    )
                } else {
                    format!("all {of} rows sent; building keys, vacuuming")
                };
                let what = format!("loading {data}");
                Self::Working { what, share: event.share(), detail: Some(detail) }
            }
            Event::Begun { run, .. } => Self::Begun(run.clone()),
            Event::Trial { planned, at, left } => {
                Self::Trial { planned: *planned, at: *at, left_s: left.as_secs_f64() }
            }
            Event::Load(second) => Self::Second(second.clone()),
            Event::TrialDone { ordinal, tps, latency_us_p99, failure, left } => Self::TrialDone {
                ordinal: *ordinal,
                tps: *tps,
                latency_us_p99: *latency_us_p99,
                failure: failure.as_ref().map(ToString::to_string),
                left_s: left.as_secs_f64(),
            },
            Event::Outlook(outlook) => Self::Outlook(outlook.clone()),
            Event::Stopping => Self::Stopping,
            Event::TakingDown => Self::TakingDown,
            Event::Ended { end, error } => Self::Ended {
                state: <&str>::from(*end).to_owned(),
                error: error.as_ref().map(ToString::to_string),
            },
        }
    }
}
