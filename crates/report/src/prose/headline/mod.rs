//! Words of verdict cards: one file for each kind of page.

mod cautions;
mod comparison;
mod crash;
mod probe;
mod round;
mod run;

pub(crate) use cautions::{cautions, joined_by_fault, plain_cautions};
pub(crate) use comparison::{comparison_headline, import_headline, side_by_side_headline};
pub(crate) use crash::crash_headline;
pub(crate) use probe::{probe_headline, suspicion};
pub(crate) use round::round_command;
pub(crate) use run::run_headline;

use pgdyno_text::format;

use super::HOPELESS;
use crate::headline::KeyFigure;

/// Most sentences of an answer on a card.
const SENTENCES: usize = 2;

fn figure(name: &str, value: String, detail: Option<String>) -> KeyFigure {
    KeyFigure { name: name.to_owned(), value, detail: detail.filter(|detail| !detail.is_empty()) }
}

/// Renders an interval of a ratio: `95% CI 1.41–1.52`.
fn range([low, high]: [f64; 2]) -> String {
    if (high / low).sqrt() > 1.0 + HOPELESS {
        return "repeats differ more than tenfold".to_owned();
    }
    format!("95% CI {}–{}", format::times(low), format::times(high))
}

/// Joins what is known of a figure's circumstances.
fn joined(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
