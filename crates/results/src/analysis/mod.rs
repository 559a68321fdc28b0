//! Analysis: from a run in the store to what can be said about it.
//!
//! [`analyse`] is the entry point for one run, [`across::compare`] for two, and
//! [`stopping::wanted`] tells a run in progress which treatments to measure next.

pub mod across;
mod allowance;
mod answer;
pub mod beside;
pub(crate) mod capacity;
mod compare;
pub(crate) mod family;
pub(crate) mod floor;
pub(crate) mod growth;
pub(crate) mod label;
mod latency;
mod pairing;
mod profile;
mod promise;
pub(crate) mod rates;
mod run;
pub(crate) mod scaling;
mod server_log;
mod stages;
mod steadiness;
pub mod stopping;
mod telemetry;
mod treatment;
mod trial;
mod view;
mod waits;
mod wal_flushes;
mod why;

pub use run::analyse;
pub use view::{
    CapacityView, Cause, Change, Comparison, CurvePoint, Ended, FigureView, FsyncView, GapView,
    LatencyFloor, LatencyInterval, LatencyRatio, LatencyView, LogEvent, NoiseFloor, Note, NoteKind,
    Notes, ObserverView, Part, PartView, RateLine, RateTable, RatioView, RelationSize, RunHead,
    RunView, ScalingView, SecondView, ServerView, SessionView, SettingView, StageProbeView,
    StatementView, Steadiness, StoppingView, TpsView, TreatmentCrash, TreatmentView, TrialState,
    TrialView, WaitView, WhyView,
};
