//! Overrides applied to an experiment file.

use pgdyno_model::Experiment;

use super::error::FileError;
use super::overrides::Override;
use super::raw::File;
use super::source::Source;
use super::toml_text::render;

/// The experiment with `overrides` applied one after another, so that an error names the one at
/// fault: the first that no later one makes good, since some keys only go together.
pub(super) fn apply(
    source: &Source,
    raw: File,
    overrides: &[Override],
) -> Result<Experiment, FileError> {
    let mut outcome = raw.into_experiment(source);
    let mut table: toml::Table = match overrides {
        [] => toml::Table::new(),
        _ => toml::from_str(&source.text).map_err(|e| FileError::in_file(source, &e))?,
    };
    let mut blamed = None;
    for one in overrides {
        one.set(&mut table)?;
        // Through text, because only text has the spans that `File` asks for.
        let text =
            render(&table).map_err(|e| FileError::in_override(&one.given, &e.to_string()))?;
        let raw: File =
            toml::from_str(&text).map_err(|e| FileError::in_override(&one.given, e.message()))?;
        let next = raw.into_experiment(source);
        if let (Ok(_), Err(complaint)) = (&outcome, &next) {
            let help = complaint.help.clone();
            blamed = Some(FileError::of_override(&one.given, &complaint.what, help));
        }
        outcome = next;
    }
    if let (Err(_), Some(blamed)) = (&outcome, blamed) {
        return Err(blamed);
    }
    outcome.map_err(|mut complaint| {
        // Overrides move what stands behind a place, so then the words alone have to name it.
        complaint.span = complaint.span.filter(|_| overrides.is_empty());
        FileError::complaint(source, complaint)
    })
}
