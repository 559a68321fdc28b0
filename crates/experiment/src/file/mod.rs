//! Experiment files: TOML in, [`Experiment`] out; what is wrong is answered with its place and the
//! nearest words.

mod answer;
mod apply;
mod crash;
mod error;
mod experiment;
mod factors;
mod generators;
mod groups;
mod hosts;
mod levels;
mod load;
mod overrides;
mod postgres;
mod probe;
mod rate;
mod raw;
#[cfg(test)]
mod schema;
mod servers;
mod size;
mod source;
mod storage;
pub(crate) mod toml_text;
mod workload;

use std::path::Path;

pub use error::FileError;
pub(crate) use factors::key_name;
pub use hosts::host_overrides;
pub(crate) use levels::{set_of_group, set_option};
pub use overrides::Override;
use pgdyno_model::Experiment;
pub use size::{Size, size, sizes};
pub use source::Source;

impl Source {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path).map_err(|e| FileError::Refused {
            what: format!("cannot read the experiment file {}: {e}", path.display()),
            help: None,
        })?;
        Ok(Self::new(path, text))
    }

    /// Creates the source of a file at `path` that holds `text`.
    pub fn new(path: &Path, text: String) -> Self {
        let name = path
            .file_stem()
            .map_or_else(|| "experiment".into(), |s| s.to_string_lossy().into_owned());
        let base = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Programs are run elsewhere, and a dry run shows what they are given.
        let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
        Self { name, shown: path.display().to_string(), text, base }
    }
}

/// The JSON Schema of experiment files (draft 7), by which editors complete and check them.
pub const SCHEMA: &str = include_str!("../../schema/experiment.json");

/// The experiment that `source` describes, with `overrides` applied in order.
///
/// # Errors
/// Anything that the file or an override says that pgdyno does not understand, with its place.
pub fn parse(source: &Source, overrides: &[Override]) -> Result<Experiment, FileError> {
    let raw: raw::File =
        toml::from_str(&source.text).map_err(|e| FileError::in_file(source, &e))?;
    apply::apply(source, raw, overrides)
}

#[cfg(test)]
mod tests;
