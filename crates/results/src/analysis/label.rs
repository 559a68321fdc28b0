//! Labels of treatments.

use pgdyno_model::Levels;

/// A treatment in one line.
pub(crate) fn label(levels: &Levels) -> String {
    if levels.0.is_empty() { "the only treatment".to_owned() } else { levels.to_string() }
}
