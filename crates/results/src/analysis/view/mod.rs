//! Views: the data of `pgdyno show RUN --json`, from which all reports are drawn.
//!
//! Keys are only ever added: scripts rely on them. [`RunView`] holds all others.

mod capacity;
mod cause;
mod comparison;
mod growth;
mod latency;
mod noise_floor;
mod note;
mod run;
mod scaling;
mod stage_probe;
mod stopping;
mod treatment;
mod trial;
mod why;

pub use capacity::{CapacityView, CurvePoint};
pub use cause::Cause;
pub use comparison::{Comparison, RatioView};
pub use growth::RelationSize;
pub(crate) use latency::PERCENTILES;
pub use latency::{LatencyInterval, LatencyRatio, LatencyView};
pub use noise_floor::{LatencyFloor, NoiseFloor};
pub use note::{Note, NoteKind, Notes};
pub use run::{FsyncView, RunHead, RunView, ServerView, SessionView, SettingView};
pub use scaling::ScalingView;
pub use stage_probe::StageProbeView;
pub use stopping::{Ended, StoppingView};
pub use treatment::{TpsView, TreatmentCrash, TreatmentView, WaitView};
pub use trial::{
    Change, LogEvent, ObserverView, RateLine, RateTable, SecondView, StatementView, Steadiness,
    TrialState, TrialView,
};
pub use why::{FigureView, GapView, Part, PartView, WhyView};
