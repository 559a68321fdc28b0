//! Views: the data of `pgdyno show RUN --json`, from which all reports are drawn.
//!
//! Keys are only ever added: scripts rely on them. [`RunView`] holds all others.

mod comparison;
mod crash;
mod factors;
mod generator;
mod group;
mod latency;
mod pairs;
mod run;
mod stage;
mod treatment;
mod trial;
mod why;

pub use comparison::{Comparison, Effect, RatioView, Withheld};
pub use crash::GravestFault;
pub use factors::{CoursePoint, CourseView, EffectView, InteractionView};
pub use generator::GeneratorView;
pub use group::GroupView;
pub use latency::{LatencyInterval, LatencyRatio, LatencyView, PERCENTILES};
pub use pairs::{PairRow, PairsView};
pub use run::{
    CapacityView, Compared, CurvePoint, Decision, Ended, FsyncView, LatencyFloor, NoiseFloor,
    NoisePriorView, ObjectiveView, RunHead, RunView, ScalingView, ServerView, SessionView,
    SettingView, StageProbeView, StoppingView,
};
pub use stage::StageView;
pub use treatment::{NotRanked, TpsView, TreatmentCrash, TreatmentView, WaitView};
pub use trial::{
    Cause, Change, LogEvent, NotJudged, ObserverView, RateLine, RateTable, RelationSize,
    SecondView, StatementView, Steadiness, TrialState, TrialView,
};
pub use why::{FigureView, GapPart, GapView, Part, PartView, WhyView};
