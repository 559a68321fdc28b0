//! `pgdyno report`: a stored result as one HTML file.

use std::path::PathBuf;

use clap::Args;
use pgdyno_report::{ComparedPage, Page};
use pgdyno_store::Store;

use crate::commands::compare::{EqualityOptions, gates};
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print_line;
use crate::report_destination::ReportDestination;
use crate::shared_options::StoreOption;
use crate::suggestions::RUNS;

#[derive(Args, Debug)]
#[command(after_help = "\
Files:
  $XDG_DATA_HOME/pgdyno/reports/  HTML reports. They lie beside the store, wherever that is

Examples:
  pgdyno report -o run.html                   Write the newest run's report to a file
  pgdyno report RUN_A RUN_B -o compared.html  Write what differs between two runs

See also: pgdyno-list(1), pgdyno-show(1)")]
pub(crate) struct ReportArgs {
    /// The id of a run, probe, crash test or import. With a second run: the baseline, a run or
    /// `RUN:TREATMENT`
    #[arg(
        value_name = "RUN|PROBE|CRASH|IMPORT",
        default_value = "latest",
        value_parser = RUNS,
        hide_possible_values = true
    )]
    pub(crate) id: String,
    /// A second run, `RUN:TREATMENT` or import: report the comparison, as `pgdyno compare` makes it
    #[arg(value_name = "RUN_B")]
    pub(crate) other: Option<String>,
    #[command(flatten)]
    pub(crate) equality: EqualityOptions,
    /// Show whether the comparison has this change, as `pgdyno compare` judges it: "tps < -3%, p99
    /// > +10%". The exit status stays 0
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true, requires = "other")]
    pub(crate) fail_if: Vec<String>,
    /// Show whether the comparison lacks this: "tps > -3%". The exit status stays 0
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true, requires = "other")]
    pub(crate) fail_unless: Vec<String>,
    /// Write the report to FILE; `-` is standard output [default: `reports/ID.html` beside the
    /// store]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Writes the report of a result, or of a comparison.
pub(crate) fn run(options: &ReportArgs) -> Result<ExitStatus, CommandError> {
    let store = options.store.open()?;
    let (name, page) = match &options.other {
        Some(other) => comparison(&store, options, other)?,
        None => single(&store, &options.id)?,
    };
    let output = options.output.as_deref();
    let destination = ReportDestination::new(output, &options.store.path(), &name)?;
    if let Some(file) = destination.write(&page)? {
        print_line(&format!("report of {name}: {}", file.display()));
    }
    Ok(ExitStatus::Success)
}

/// Makes the page of one result, and returns its name too.
fn single(store: &Store, id: &str) -> Result<(String, Page), CommandError> {
    let stored = store.resolve_any(id)?;
    let page = Page::stored(store, &stored)?;
    Ok((stored.id().to_owned(), page))
}

/// Makes the page of two results, and returns a name for it too.
fn comparison(
    store: &Store,
    options: &ReportArgs,
    other: &str,
) -> Result<(String, Page), CommandError> {
    let asked = options.equality.compare_options(gates(&options.fail_if, &options.fail_unless)?);
    let ComparedPage { page, a, b } = Page::comparison(store, &options.id, other, &asked)?;
    Ok((format!("{}-{}", side(&a, &options.id), side(&b, other)), page))
}

/// Returns a name for a side: the run, and the treatment that `given` names.
fn side(run: &str, given: &str) -> String {
    let Some((_, treatment)) = given.split_once(':') else { return run.to_owned() };
    let plain = |c: char| if c.is_alphanumeric() || "-_.=".contains(c) { c } else { '-' };
    format!("{run}-{}", treatment.chars().map(plain).collect::<String>())
}
