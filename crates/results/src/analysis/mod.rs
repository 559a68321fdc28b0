//! Analysis: from a run in the store to what can be said about it.
//!
//! [`analyse`] is the entry point for one run, [`compare_runs::compare`] for two,
//! [`host_noise::noise`] for a host, and [`stopping::wanted`] tells a run in progress which treatments to measure next.

pub(crate) mod badge;
mod burst_credit;
mod capacity;
mod charts;
mod compare;
pub mod compare_runs;
mod devices;
pub(crate) mod effect;
mod factors;
pub(crate) mod family;
mod generators;
mod growth;
pub mod host_noise;
pub(crate) mod noise_floor;
mod pairing;
mod pairs;
mod profile;
mod promise;
pub(crate) mod question;
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
    Badge, CapacityView, Cause, Caution, Change, Comparison, CoursePoint, CourseView, CurvePoint,
    Decision, EffectView, Ended, FigureView, FsyncView, GapView, GeneratorView, Headline,
    InteractionView, KeyFigure, LatencyFloor, LatencyInterval, LatencyRatio, LatencyView, LogEvent,
    NoiseFloor, NoisePriorView, NotJudged, NotRanked, Note, NoteKind, Notes, ObjectiveView,
    ObserverView, PairRow, PairsView, Panel, Part, PartView, Proof, ProofKind, RateLine, RateTable,
    RatioView, RelationSize, RunHead, RunView, ScalingView, SecondView, ServerView, SessionView,
    SettingView, StageProbeView, StatementView, Steadiness, StoppingView, Tier, TpsView,
    TreatmentCrash, TreatmentView, TrialState, TrialView, WaitView, WhyView, Withheld,
};
