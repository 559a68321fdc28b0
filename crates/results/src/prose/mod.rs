//! Prose: the sentences of reports.
//!
//! Terminal, Markdown, HTML and JSON share these sentences. Analysis decides what is said and hands
//! over kinds and figures; the words are chosen here. Nothing reads a sentence back.

mod cause;
mod comparison;
mod notes;
mod unsteady;

pub(crate) use cause::cause;
pub(crate) use comparison::{
    HOPELESS, comparison, minimum_detectable, ratio_to_best, reason, verdict, view,
};
pub(crate) use notes::{Watched, notes};
