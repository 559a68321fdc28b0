//! `pgdyno export`: a stored run as tables for other programs.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pgdyno_report::export::{self, Export, ExportError};

use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print, print_line};
use crate::report_destination::is_standard_output;
use crate::shared_options::StoreOption;
use crate::suggestions::RUNS;

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The run to export
    #[arg(
        value_name = "RUN",
        default_value = "latest",
        value_parser = RUNS,
        hide_possible_values = true
    )]
    pub(crate) run: String,
    /// Format of the export
    #[arg(long, value_enum)]
    pub(crate) format: Format,
    /// Write to PATH: a file, or for csv and parquet a new or empty folder; `-` is standard output
    /// [default: standard output, but for csv and parquet]
    #[arg(short = 'o', long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Leave out host names, addresses, paths, serial numbers, user names and logs, to publish the
    /// export
    #[arg(long)]
    pub(crate) redact: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The analysed run and all tables as one document
    Json,
    /// Each table as a file
    Csv,
    /// Each table as a file
    Parquet,
    /// Latencies by trial and treatment, for the tools of HdrHistogram
    Hdr,
    /// Answer and table of treatments
    Markdown,
    /// Charts: earlier versions wrote one
    #[value(hide = true)]
    Svg,
}

/// Exports a run.
pub(crate) fn run(options: &ExportArgs) -> Result<ExitStatus, CommandError> {
    let output = options.output.as_deref().filter(|path| !is_standard_output(Some(path)));
    if options.format == Format::Svg {
        let message = "an export has no charts: the page of a report does";
        return Err(CommandError::new(message).with_help(
            "`pgdyno report RUN -o FILE.html`: *SVG* below each chart of the page saves it",
        ));
    }
    let of_tables = matches!(options.format, Format::Csv | Format::Parquet);
    if of_tables && output.is_none() {
        let message = "cannot write tables to standard output: each is a file";
        let help = "name a new folder with `-o FOLDER`, or use `--format json`";
        return Err(CommandError::new(message).with_help(help));
    }
    let store = options.store.open()?;
    let run = store.resolve(&options.run)?;
    let export = Export::new(&store, &run, options.redact)?;
    let document = match (options.format, output) {
        (Format::Csv, Some(folder)) => return tables(&run, folder, export.csv(folder)),
        (Format::Parquet, Some(folder)) => return tables(&run, folder, export.parquet(folder)),
        (Format::Hdr, _) => export.hdr()?,
        (Format::Markdown, _) => export.markdown(),
        (Format::Json | Format::Csv | Format::Parquet | Format::Svg, _) => export.json()?,
    };
    match output {
        None => print(&document),
        Some(file) => {
            export::write(&document, file)?;
            say(&run, file);
        }
    }
    Ok(ExitStatus::Success)
}

fn tables(
    run: &str,
    folder: &Path,
    written: Result<(), ExportError>,
) -> Result<ExitStatus, CommandError> {
    written?;
    say(run, folder);
    Ok(ExitStatus::Success)
}

fn say(run: &str, path: &Path) {
    print_line(&format!("export of {run}: {}", path.display()));
}
