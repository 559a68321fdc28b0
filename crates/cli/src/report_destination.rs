//! Where a run's HTML report is written.

use std::path::{Path, PathBuf};

use pgdyno_results::{RunView, report};

use crate::error::CommandError;
use crate::output::print;

/// Returns whether the value of `-o` is `-`, standard output.
pub(crate) fn is_standard_output(output: Option<&Path>) -> bool {
    output == Some(Path::new("-"))
}

/// Where an HTML report is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReportDestination {
    StandardOutput,
    File(PathBuf),
}

impl ReportDestination {
    /// Returns the destination that `output` names; by default `reports/RUN.html` beside `store`.
    /// Creates the folder `reports` if it is missing.
    ///
    /// # Errors
    /// The folder cannot be created, or the default file exists and is not a report.
    pub(crate) fn new(
        output: Option<&Path>,
        store: &Path,
        run: &str,
    ) -> Result<Self, CommandError> {
        match output {
            _ if is_standard_output(output) => Ok(Self::StandardOutput),
            Some(path) => Ok(Self::File(path.to_owned())),
            None => default_file(store, run).map(Self::File),
        }
    }

    /// Writes the report of `view` and returns its file, if it has one.
    ///
    /// # Errors
    /// The report cannot be rendered, or the file cannot be written.
    pub(crate) fn write(&self, view: &RunView) -> Result<Option<&Path>, CommandError> {
        match self {
            Self::StandardOutput => {
                print(&report::html(view)?);
                Ok(None)
            }
            Self::File(file) => {
                report::write_html(view, file)?;
                Ok(Some(file))
            }
        }
    }
}

fn default_file(store: &Path, run: &str) -> Result<PathBuf, CommandError> {
    let folder = store.with_file_name("reports");
    if let Err(source) = std::fs::create_dir_all(&folder) {
        return Err(CommandError::ReportFolder { folder, source });
    }
    // A store from elsewhere may give its runs any id.
    if run.contains(['/', '\0']) || run.starts_with('.') {
        return Err(CommandError::RunNotAFileName { run: run.to_owned() });
    }
    let file = folder.join(format!("{run}.html"));
    match report::is_report(&file) {
        Ok(true) => Ok(file),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(file),
        Ok(false) => Err(CommandError::NotAReport { file }),
        Err(source) => Err(CommandError::ReportUnreadable { file, source }),
    }
}
