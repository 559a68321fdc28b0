//! The vocabulary that all of pgdyno's crates share. It does no I/O and judges nothing.
//!
//! - An [`Experiment`] is a parsed experiment file. Resolving its names gives a [`Plan`]: every
//!   [`Treatment`], and every [`PlannedTrial`] in the order in which trials run.
//! - A trial yields a [`TrialRecord`] with a [`Measurement`]; a crash test yields a
//!   [`CrashRecord`]; a probe of a storage yields a [`ProbeRecord`]. The store keeps these records
//!   whole.
//! - [`units`] reads and prints quantities as files have them.
//!
//! A *factor* takes *levels*. A *treatment* is one combination of levels, and a *trial* is one
//! execution of a treatment. *Repeat* numbers the trials of a treatment; a *block* is one round
//! over all treatments; a *run* is one execution of a whole plan. `GLOSSARY.md` has pgdyno's own
//! terms.
//!
//! ```
//! use pgdyno_model::units::{Bytes, Span};
//! use pgdyno_model::{Fault, Slo};
//!
//! assert_eq!("2m 30s".parse::<Span>()?, Span::from_secs(150));
//! assert_eq!(Bytes(15_300_000_000).to_string(), "15.3 GB");
//! assert_eq!(Fault::parse("torn-write"), Some(Fault::TornWrite));
//!
//! let objective: Slo = "p99 < 20ms, failed < 0.1%".parse().unwrap();
//! assert_eq!(objective.0.len(), 2);
//! # Ok::<(), pgdyno_model::units::UnitError>(())
//! ```

pub mod advice;
pub mod answer;
mod client_group;
pub mod counters;
pub mod crash;
pub mod experiment;
pub mod facts;
pub mod flush_accounting;
mod generator_choice;
pub mod json;
pub mod lab_host;
pub mod latency;
pub mod ledger;
pub mod level;
pub mod live;
pub mod load_rate;
pub mod load_strategy;
pub mod measurement;
mod names;
#[cfg(feature = "schema")]
pub mod page_schema;
mod pauses;
pub mod plan;
pub mod probe;
pub mod progress;
pub mod raid;
pub mod record;
pub mod require_auth;
#[cfg(feature = "schema")]
pub mod schema;
pub mod search;
pub mod second_latencies;
pub mod setting_value;
pub mod stopping;
pub mod storage;
mod sums;
pub mod target;
pub mod telemetry;
pub mod units;

pub use advice::{Advice, Failure, FailureKind};
pub use answer::{Answer, AnswerKind};
pub use client_group::ClientGroup;
pub use crash::{CrashRecord, Fault, Verdict};
pub use experiment::Experiment;
pub use flush_accounting::{FlushAccounting, NotJudged};
pub use generator_choice::GeneratorChoice;
pub use latency::{Latencies, LatencyCounts};
pub use level::{Level, LevelValue, Levels};
pub use measurement::Measurement;
pub use pauses::Pauses;
pub use plan::{Conditioning, NoisePrior, Plan, PlannedTrial, Treatment};
pub use probe::ProbeRecord;
pub use record::{RunRecord, TrialRecord};
pub use search::{Find, Search, Slo};
pub use second_latencies::SecondLatencies;
pub use stopping::Stopping;
pub use storage::Storage;
