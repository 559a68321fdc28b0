//! Prose: the sentences of reports.
//!
//! Terminal, Markdown, HTML and JSON share these sentences. Analysis decides what is said and hands
//! over kinds and figures; the words are chosen here. Nothing reads a sentence back.

mod answer;
mod capacity;
mod cause;
mod compare_runs;
mod comparison;
mod factors;
pub(crate) mod finding;
mod flush_accounting;
mod gate;
mod growth;
mod headline;
mod host_noise;
mod idle_device;
mod noise_floor;
mod noise_prior;
mod notes;
mod phrases;
mod promise;
mod record;
mod scaling;
mod shell;
mod stopping;
mod storage;
mod unsteady;
mod why;

pub(crate) use answer::answer;
pub(crate) use capacity::capacity;
pub(crate) use cause::cause;
pub(crate) use compare_runs::{compare_notes, pairs, side_by_side_notes};
pub(crate) use comparison::{
    HOPELESS, comparison, minimum_detectable, ratio_to_best, reason, verdict, view,
};
pub(crate) use flush_accounting::flush_accounting;
pub(crate) use gate::{Unknown, gate};
pub(crate) use headline::{
    cautions, comparison_headline, crash_headline, import_headline, joined_by_fault,
    plain_cautions, probe_headline, round_command, run_headline, side_by_side_headline,
};
pub use host_noise::on_a_busy_host;
pub(crate) use host_noise::{allowance, forecast};
pub(crate) use noise_prior::conditioning;
pub(crate) use notes::{Watched, notes};
pub(crate) use phrases::degrees_of_freedom;
pub(crate) use scaling::scaling;
pub(crate) use stopping::stopping;
pub(crate) use unsteady::not_judged;
pub(crate) use why::{active_gap, latency_gap, no_common_statement, part_name};

use serde::{Serialize, Serializer};

use crate::analysis::{Cause, NotJudged, NotRanked, Withheld};

/// Serializes kinds as the text that a function renders: JSON has had text where these are.
macro_rules! serialize_as_text {
    ($($kind:ty: $render:path),+) => {
        $(impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&$render(self))
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        })+
    };
}

serialize_as_text!(
    Cause: cause,
    NotJudged: not_judged,
    NotRanked: promise::reason_not_ranked,
    Withheld: comparison::withheld
);
