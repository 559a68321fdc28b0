//! pgdyno's vocabulary, spoken by every crate. No I/O happens here.
//!
//! A *factor* takes *levels*; a *treatment* is one combination of levels; a *trial* is one
//! execution of a treatment; *repeat* numbers its trials; a *block* is one round over all
//! treatments; a *run* is one execution of a whole plan. `GLOSSARY.md` holds every term.

pub mod crash;
pub mod experiment;
pub mod facts;
pub mod json;
pub mod latency;
pub mod ledger;
pub mod level;
pub mod load_strategy;
pub mod measurement;
pub mod nearest;
pub mod plan;
pub mod printable;
pub mod probe;
pub mod progress;
pub mod record;
pub mod require_auth;
pub mod search;
pub mod storage;
pub mod target;
pub mod telemetry;
pub mod units;

pub use crash::{CrashRecord, Fault, Verdict};
pub use experiment::Experiment;
pub use latency::{Latencies, LatencyCounts};
pub use level::{Level, LevelValue, Levels};
pub use measurement::Measurement;
pub use plan::{Answer, AnswerKind, Plan, PlannedTrial, Stopping, Treatment};
pub use probe::ProbeRecord;
pub use record::{RunRecord, TrialRecord};
pub use search::{Find, Search, Slo};
pub use storage::Storage;
