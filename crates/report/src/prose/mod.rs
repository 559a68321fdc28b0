//! Prose: the sentences of reports.
//!
//! Terminal, Markdown, HTML and JSON share these sentences. Analysis decides what is said and hands
//! over kinds and figures; the words are chosen here. Nothing reads a sentence back.

mod answer;
mod capacity;
mod cause;
mod comparison;
mod factors;
pub(crate) mod finding;
mod flush_accounting;
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
pub(crate) use capacity::capacities;
pub(crate) use cause::cause;
pub(crate) use comparison::gate::gate;
pub(crate) use comparison::runs::{compare_note, pair, pair_verdict, pairs, side_by_side_notes};
pub(crate) use comparison::{
    HOPELESS, comparison, comparison_verdict, minimum_detectable, ratio_to_best, reason, withheld,
};
pub(crate) use flush_accounting::flush_accounting;
pub(crate) use headline::{
    cautions, comparison_headline, crash_headline, import_headline, joined_by_fault,
    plain_cautions, probe_headline, round_command, run_headline, side_by_side_headline, suspicion,
};
pub use host_noise::on_a_busy_host;
pub(crate) use host_noise::{allowance, forecast};
pub(crate) use noise_prior::conditioning;
pub(crate) use notes::notes;
pub(crate) use phrases::{degrees_of_freedom, tps_of};
pub(crate) use promise::reason_not_ranked;
pub(crate) use scaling::scaling;
pub(crate) use stopping::{open_comparisons, stopping};
pub(crate) use unsteady::not_judged;
pub(crate) use why::{part_name, why};
