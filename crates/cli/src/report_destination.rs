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
        let message = format!("cannot make the folder for reports, {}", folder.display());
        return Err(CommandError::with_source(message, source));
    }
    // A store from elsewhere may give its results any id.
    if name.contains(['/', '\0']) || name.starts_with('.') {
        let message = format!("cannot write the report of {name}: that is no file's name");
        return Err(CommandError::new(message).with_help("name a file with `-o FILE.html`"));
    }
    let file = folder.join(format!("{name}.html"));
    let (message, help) = (
        format!("cannot write the report to {}: the file there ", file.display()),
        "name a file with `-o FILE.html`; one that is named is replaced",
    );
    match is_report(&file) {
        Ok(true) => Ok(file),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(file),
        Ok(false) => Err(CommandError::new(message + "is not a report of pgdyno").with_help(help)),
        Err(source) => {
            Err(CommandError::with_source(message + "cannot be read", source).with_help(help))
        }
    }
}
