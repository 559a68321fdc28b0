//! Analysis: from a run in the store to what can be said about it.
//!
//! [`analyse`] is the entry point for one run, [`compare_runs::compare`] for two, and
//! [`stopping::wanted`] tells a run in progress which treatments to measure next.

mod burst_credit;
mod capacity;
mod charts;
mod compare;
pub mod compare_runs;
pub(crate) mod effect;
pub(crate) mod family;
mod growth;
pub(crate) mod noise_floor;
mod pairing;
mod profile;
mod promise;
pub(crate) mod rates;
mod run;
mod scaling;
mod server_log;
pub mod side_by_side;
mod stages;
mod steadiness;
pub mod stopping;
mod telemetry;
pub(crate) mod treatment;
mod trial;
mod view;
mod waits;
mod why;

pub use run::analyse;
pub use view::{
    CapacityView, Cause, Change, Comparison, CurvePoint, Decision, Ended, FigureView, FsyncView,
    GapView, LatencyFloor, LatencyInterval, LatencyRatio, LatencyView, LogEvent, NoiseFloor,
    NotJudged, NotRanked, Note, NoteKind, Notes, ObjectiveView, ObserverView, Part, PartView,
    RateLine, RateTable, RatioView, RelationSize, RunHead, RunView, ScalingView, SecondView,
    ServerView, SessionView, SettingView, StageProbeView, StatementView, Steadiness, StoppingView,
    TpsView, TreatmentCrash, TreatmentView, TrialState, TrialView, WaitView, WhyView, Withheld,
};
