//! The commands: each turns arguments into calls and results into text.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pgdyno_lab::file::Override;
use pgdyno_lab::{LabError, Prepared, SessionEnd, recipes as built_in, run as lab};
use pgdyno_results::analysis::analyse;
use pgdyno_results::report;
use pgdyno_results::store::{RunSummary, Store};

use crate::Done;
use crate::args;
use crate::output::{Failure, print, tell};
use crate::progress::Display;

/// Width of tables where standard output is no terminal.
const WIDTH: u16 = 100;

fn store_path(option: &args::StoreOption) -> PathBuf {
    option.path.clone().unwrap_or_else(pgdyno_lab::default_store)
}

fn open(option: &args::StoreOption) -> Result<Store, Failure> {
    Ok(lab::open_store_existing(&store_path(option))?)
}

pub(crate) fn run(options: &args::Run, stop: &AtomicBool) -> Result<Done, Failure> {
    let store = store_path(&options.store);
    let dsn =
        options.dsn.as_deref().map(|dsn| Override::text("postgres.dsn", dsn, &format!("postgres.dsn={dsn}")));
    let outcome = match &options.resume {
        Some(run) => with_progress(|progress| lab::resume(run, dsn.as_ref(), &store, progress, stop)),
        None => {
            let named = options.experiment.as_deref().unwrap_or_default();
            let source = built_in::source(named).map_err(LabError::from)?;
            let mut overrides = Vec::new();
            for given in &options.set {
                overrides.push(Override::parse(given).map_err(LabError::from)?);
            }
            overrides.extend(dsn);
            let prepared = Prepared::new(source, overrides)?;
            if options.dry_run {
                print(&pgdyno_lab::dry_run(&prepared)?);
                return Ok(Done::Whole);
            }
            with_progress(|progress| lab::run(&prepared, &store, progress, stop))
        }
    };
    let outcome = match outcome {
        Err(LabError::Interrupted) => {
            tell("interrupted before the first trial: nothing was measured, nothing is left behind");
            return Ok(Done::Interrupted);
        }
        outcome => outcome?,
    };
    let view = analyse(&Store::open_existing(&store).map_err(LabError::from)?, &outcome.run)
        .map_err(LabError::from)?;
    print(&report::terminal(&view, width()));
    let file = match &options.output {
        Some(file) => file.clone(),
        None => beside(&store, &outcome.run)?,
    };
    report::write_html(&view, &file).map_err(|e| Failure::of(&e, e.help()))?;
    print(&format!("\nreport: {}", file.display()));
    Ok(match outcome.end {
        SessionEnd::Completed => Done::Whole,
        SessionEnd::Failed => {
            tell(&format!(
                "{} of the trials failed; the others are kept. `pgdyno run --resume {}` tries again",
                outcome.failed, outcome.run
            ));
            Done::TrialFailed
        }
        SessionEnd::Interrupted => {
            tell(&format!("interrupted; `pgdyno run --resume {}` goes on", outcome.run));
            Done::Interrupted
        }
    })
}

fn with_progress<T>(work: impl FnOnce(&Display) -> T) -> T {
    let display = Display::new();
    let result = work(&display);
    display.finish();
    result
}

/// Where a run's report goes that has no place of its own: into a folder beside the store, made if it is missing.
fn beside(store: &Path, run: &str) -> Result<PathBuf, Failure> {
    let folder = store.with_file_name("reports");
    std::fs::create_dir_all(&folder).map_err(|e| {
        Failure::new(format!("cannot make the folder for reports, {}: {e}", folder.display()))
    })?;
    Ok(folder.join(format!("{run}.html")))
}

fn width() -> u16 {
    comfy_table::Table::new().width().unwrap_or(WIDTH).max(60)
}

pub(crate) fn recipes(options: &args::Recipes) -> Result<Done, Failure> {
    match &options.what {
        Some(args::RecipesWhat::Show { name }) => {
            print(&built_in::source(name).map_err(LabError::from)?.text);
        }
        None => {
            for recipe in built_in::all() {
                let prepared = Prepared::new(recipe, Vec::new())?;
                print(&prepared.summary());
            }
            print(
                "\n`pgdyno recipes show NAME` prints one to copy and change; `pgdyno run NAME --dry-run` tells what it would do.",
            );
        }
    }
    Ok(Done::Whole)
}

pub(crate) fn list(options: &args::List) -> Result<Done, Failure> {
    let path = store_path(&options.store);
    // A first look before any run is no mistake.
    let runs = if path.exists() { open(&options.store)?.runs().map_err(LabError::from)? } else { Vec::new() };
    if options.json {
        print(&json(&runs)?);
    } else if runs.is_empty() {
        print(&format!("no runs yet in {}; begin with `pgdyno run quickstart`", path.display()));
    } else {
        print(&list_table(&runs));
    }
    Ok(Done::Whole)
}

pub(crate) fn show(options: &args::Show) -> Result<Done, Failure> {
    let store = open(&options.store)?;
    let run = store.resolve(&options.run).map_err(LabError::from)?;
    let view = analyse(&store, &run).map_err(LabError::from)?;
    if options.json {
        print(&json(&view)?);
    } else {
        print(&report::terminal(&view, width()));
    }
    Ok(Done::Whole)
}

pub(crate) fn report(options: &args::Report) -> Result<Done, Failure> {
    let store = open(&options.store)?;
    let run = store.resolve(&options.run).map_err(LabError::from)?;
    let view = analyse(&store, &run).map_err(LabError::from)?;
    report::write_html(&view, &options.output).map_err(|e| Failure::of(&e, e.help()))?;
    print(&format!("report of {run}: {}", options.output.display()));
    Ok(Done::Whole)
}

pub(crate) fn doctor(options: &args::Doctor) -> Result<Done, Failure> {
    print(&crate::doctor::rendered(&pgdyno_lab::doctor::examine(options.directory.as_deref())));
    Ok(Done::Whole)
}

fn list_table(runs: &[RunSummary]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::TableStyle::default()).set_header(["run", "state", "trials", "started"]);
    for run in runs {
        let trials = format!("{}/{}", run.trials_done, run.trials_planned);
        table.add_row([run.id.clone(), run.state.name().to_owned(), trials, run.started_at.to_string()]);
    }
    table.trim_fmt()
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(|e| Failure::new(format!("cannot write JSON: {e}")))
}
