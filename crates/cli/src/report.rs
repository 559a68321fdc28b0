//! `pgdyno report`, and where a run's HTML report goes.

use std::path::{Path, PathBuf};

use pgdyno_lab::LabError;
use pgdyno_results::RunView;
use pgdyno_results::analysis::analyse;
use pgdyno_results::report;

use crate::Done;
use crate::args;
use crate::commands::{open, store_path};
use crate::output::{Failure, print, print_line};

/// Whether `-o` says `-`.
pub(crate) fn names_standard_output(asked: Option<&Path>) -> bool {
    asked == Some(Path::new("-"))
}

/// Where an HTML report is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    StandardOutput,
    File(PathBuf),
}

impl Place {
    /// The place that `asked` names, `-` being standard output; without it a file in the folder
    /// `reports` beside `store`, which is made if it is missing.
    ///
    /// # Errors
    /// The folder cannot be made, or the file there is not pgdyno's.
    pub(crate) fn new(asked: Option<&Path>, store: &Path, run: &str) -> Result<Self, Failure> {
        match asked {
            _ if names_standard_output(asked) => Ok(Self::StandardOutput),
            Some(path) => Ok(Self::File(path.to_owned())),
            None => default_file(store, run).map(Self::File),
        }
    }

    /// Writes the report of `view`; the file that it is in now.
    ///
    /// # Errors
    /// The report cannot be rendered, or the file cannot be written.
    pub(crate) fn write(&self, view: &RunView) -> Result<Option<&Path>, Failure> {
        let failed = |e: report::ReportError| Failure::of(&e, e.help());
        match self {
            Self::StandardOutput => {
                print(&report::html(view).map_err(failed)?);
                Ok(None)
            }
            Self::File(file) => {
                report::write_html(view, file).map_err(failed)?;
                Ok(Some(file))
            }
        }
    }
}

fn default_file(store: &Path, run: &str) -> Result<PathBuf, Failure> {
    let folder = store.with_file_name("reports");
    std::fs::create_dir_all(&folder).map_err(|e| {
        Failure::new(format!("cannot make the folder for reports, {}: {e}", folder.display()))
    })?;
    // A store from elsewhere may call its runs what it likes.
    if run.contains(['/', '\0']) || run.starts_with('.') {
        return Err(Failure::helped(
            format!("cannot write the report of {run}: that is no file's name"),
            "name a file with `-o FILE.html`",
        ));
    }
    let file = folder.join(format!("{run}.html"));
    match report::is_report(&file) {
        Ok(true) => Ok(file),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(file),
        found => {
            let found = match found {
                Err(e) => format!("what is there cannot be read: {e}"),
                Ok(_) => "what is there is no report of pgdyno's".to_owned(),
            };
            Err(Failure::helped(
                format!("cannot write the report to {}: {found}", file.display()),
                "name a file with `-o FILE.html`; one that is named is replaced",
            ))
        }
    }
}

pub(crate) fn report(options: &args::Report) -> Result<Done, Failure> {
    let store = open(&options.store)?;
    let run = store.resolve(&options.run).map_err(LabError::from)?;
    let view = analyse(&store, &run).map_err(LabError::from)?;
    let place = Place::new(options.output.as_deref(), &store_path(&options.store), &run)?;
    if let Some(file) = place.write(&view)? {
        print_line(&format!("report of {run}: {}", file.display()));
    }
    Ok(Done::Whole)
}
