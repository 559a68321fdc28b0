//! Where an HTML report is written.

use std::path::{Path, PathBuf};

use pgdyno_report::{Page, is_report};

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
    /// Returns the destination that `output` names; by default `reports/NAME.html` beside `store`.
    /// Creates the folder `reports` if it is missing.
    ///
    /// # Errors
    /// The folder cannot be created, or the default file exists and is not a report.
    pub(crate) fn new(
        output: Option<&Path>,
        store: &Path,
        name: &str,
    ) -> Result<Self, CommandError> {
        match output {
            _ if is_standard_output(output) => Ok(Self::StandardOutput),
            Some(path) => Ok(Self::File(path.to_owned())),
            None => default_file(store, name).map(Self::File),
        }
    }

    /// Writes `page` and returns its file, if it has one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, page: &Page) -> Result<Option<&Path>, CommandError> {
        match self {
            Self::StandardOutput => {
                print(&page.to_html());
                Ok(None)
            }
            Self::File(file) => {
                page.write(file)?;
                Ok(Some(file))
            }
        }
    }
}

fn default_file(store: &Path, name: &str) -> Result<PathBuf, CommandError> {
    let folder = store.with_file_name("reports");
    if let Err(source) = std::fs::create_dir_all(&folder) {
        return Err(CommandError::ReportFolder { folder, source });
    }
    // A store from elsewhere may give its results any id.
    if name.contains(['/', '\0']) || name.starts_with('.') {
        return Err(CommandError::NotAFileName { name: name.to_owned() });
    }
    let file = folder.join(format!("{name}.html"));
    match is_report(&file) {
        Ok(true) => Ok(file),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(file),
        Ok(false) => Err(CommandError::NotAReport { file }),
        Err(source) => Err(CommandError::ReportUnreadable { file, source }),
    }
}
