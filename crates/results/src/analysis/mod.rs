//! Analysis: from a run in the store to what can be said about it.
//!
//! [`analyse`] is the entry point for one run, [`across::compare`] for two, and
//! [`stopping::wanted`] tells a run in progress which treatments to measure next.

pub mod across;
mod allowance;
mod answer;
pub mod beside;
mod capacity;
mod compare;
mod family;
mod floor;
mod growth;
mod label;
mod latency;
mod notes;
mod pairing;
mod profile;
mod promise;
mod rates;
mod run;
mod scaling;
mod server_log;
mod stages;
mod steadiness;
pub mod stopping;
mod telemetry;
mod treatment;
mod trial;
mod unsteady;
mod view;
mod waits;
mod wal_flushes;
mod why;
mod words;

pub use run::analyse;
pub use view::{
    CapacityView, Change, Comparison, CurvePoint, Ended, FigureView, FsyncView, GapView,
    LatencyFloor, LatencyInterval, LatencyRatio, LatencyView, LogEvent, NoiseFloor, ObserverView,
    Part, PartView, RateLine, RateTable, RatioView, RelationSize, RunHead, RunView, ScalingView,
    SecondView, ServerView, SessionView, SettingView, StageProbeView, StatementView, Steadiness,
    StoppingView, TpsView, TreatmentCrash, TreatmentView, TrialState, TrialView, WaitView, WhyView,
};
