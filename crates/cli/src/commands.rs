//! The commands: each turns arguments into calls and results into text.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pgdyno_lab::file::Override;
use pgdyno_lab::{
    Consent, LabError, Prepared, Serials, SessionEnd, Trust, Wipe, recipes as built_in, run as lab,
};
use pgdyno_results::analysis::across::{self, Asked, Outcome};
use pgdyno_results::analysis::analyse;
use pgdyno_results::audit::ImportedRun;
use pgdyno_results::gate::{self, Form};
use pgdyno_results::report;
use pgdyno_results::report::Detail;
use pgdyno_results::report::json::{self as as_json, Document};
use pgdyno_results::store::{Store, Stored};

use crate::Done;
use crate::args::{self, Undecided};
use crate::doctor::DoctorDocument;
use crate::output::{Failure, complain, is_verbose, print, print_line, tell};
use crate::progress::Display;
use crate::report::{Place, names_standard_output};

/// Width of tables where standard output is no terminal.
const WIDTH: u16 = 100;

/// The store that is meant: by `--store`, else by the environment; an empty variable is none.
pub(crate) fn store_path(option: &args::StoreOption) -> PathBuf {
    let by_environment = || std::env::var_os("PGDYNO_STORE").filter(|path| !path.is_empty());
    let named = option.path.clone().or_else(|| by_environment().map(PathBuf::from));
    named.unwrap_or_else(pgdyno_lab::default_store)
}

pub(crate) fn open(option: &args::StoreOption) -> Result<Store, Failure> {
    Ok(lab::open_store_existing(&store_path(option))?)
}

pub(crate) fn run(options: &args::Run, stop: &AtomicBool) -> Result<Done, Failure> {
    let store = store_path(&options.store);
    let servers = Override::servers(&options.dsn).map_err(LabError::from)?;
    let wipe =
        Wipe { devices: options.wipe.clone(), overwrite_signature: options.overwrite_signature };
    let trust = Trust::new(options.trust.paths.clone());
    let mut recipe = None;
    let outcome = match &options.resume {
        Some(run) => {
            let more = options.set.iter().map(|given| Override::parse(given));
            let more = more.collect::<Result<Vec<_>, _>>().map_err(LabError::from)?;
            with_progress(|progress| {
                lab::resume(run, &servers, &more, Consent { wipe, trust }, &store, progress, stop)
            })
        }
        None => {
            let named = options.experiment.as_deref().unwrap_or_default();
            let source = built_in::source(named).map_err(LabError::from)?;
            recipe = built_in::name_of(&source).map(str::to_owned);
            let mut overrides = match &options.size {
                Some(size) => pgdyno_lab::overrides_of(&source, size)?,
                None => Vec::new(),
            };
            for given in &options.set {
                overrides.push(Override::parse(given).map_err(LabError::from)?);
            }
            if options.keep_serials {
                overrides
                    .push(Override::parse("telemetry.keep_serials=true").map_err(LabError::from)?);
            }
            overrides.extend(servers);
            let prepared = Prepared::new(source, overrides)?.with_wipe(wipe)?;
            if options.dry_run {
                prepared.check_programs(&trust, built_in::file(named))?;
                print(&pgdyno_lab::dry_run(&prepared)?);
                return Ok(Done::Whole);
            }
            let prepared = prepared.with_trust(trust, built_in::file(named))?;
            with_progress(|progress| lab::run(&prepared, &store, progress, stop))
        }
    };
    let outcome = match outcome {
        Err(LabError::Interrupted) => {
            tell(
                "interrupted before the first trial: nothing was measured, nothing is left behind",
            );
            return Ok(Done::Interrupted);
        }
        outcome => outcome?,
    };
    let view = analyse(&Store::open_existing(&store).map_err(LabError::from)?, &outcome.run)
        .map_err(LabError::from)?;
    // The table before anything that can fail.
    if !names_standard_output(options.output.as_deref()) {
        print(&report::terminal_with(&view, width(), detail()));
    }
    let done = ended(&outcome, &view);
    if let Err(failure) = written(options, &view, recipe.as_deref(), &store) {
        // What was found outweighs a report that could not be written.
        if done == Done::Whole {
            return Err(failure);
        }
        complain(&failure);
    }
    Ok(done)
}

/// Writes the run's report, and tells where it is.
fn written(
    options: &args::Run,
    view: &pgdyno_results::RunView,
    recipe: Option<&str>,
    store: &Path,
) -> Result<(), Failure> {
    let run = &view.run.id;
    let place = Place::new(options.output.as_deref(), store, run)?;
    if let Some(file) = place.write(view)? {
        print("");
        print_line(&format!("report: {}", file.display()));
    }
    if let Some(recipe) = recipe
        && let Some(figures) = crate::audit::keep_figures(recipe, store)?
        && place != Place::StandardOutput
    {
        print(&format!("beside the published report: pgdyno compare {figures} {run}"));
    }
    Ok(())
}

/// How a run ended: a signal, a promise that was broken, work that was not done, an open verdict,
/// the first of these.
fn ended(outcome: &lab::Outcome, view: &pgdyno_results::RunView) -> Done {
    let crashed = crashed(view);
    match outcome.end {
        SessionEnd::Completed => crashed,
        SessionEnd::Failed => {
            let trials = outcome.failed - outcome.not_crashed;
            let mut failed = Vec::new();
            if trials > 0 {
                failed.push(format!("{trials} of the trials failed; the others are kept"));
            }
            if outcome.not_crashed > 0 {
                failed.push(format!(
                    "crash tests of {} treatments were not done to the end",
                    outcome.not_crashed
                ));
            }
            tell(&format!(
                "{}. `pgdyno run --resume {}` tries again",
                failed.join("; "),
                outcome.run
            ));
            if crashed == Done::PromiseBroken { crashed } else { Done::TrialFailed }
        }
        SessionEnd::Interrupted => {
            tell(&format!("interrupted; `pgdyno run --resume {}` goes on", outcome.run));
            Done::Interrupted
        }
    }
}

/// What crash tests of a run's treatments come to, if there were any: the newest of each, and every
/// failure.
fn crashed(view: &pgdyno_results::RunView) -> Done {
    let newest = view.treatments.iter().filter_map(|t| t.crash.as_ref()).map(|crash| crash.verdict);
    let failed =
        view.crashes.iter().map(|crash| crash.verdict).filter(|verdict| verdict.is_failure());
    newest.chain(failed).max().map_or(Done::Whole, crate::crash::done)
}

pub(crate) fn with_progress<T>(work: impl FnOnce(&Display) -> T) -> T {
    let display = Display::new();
    let result = work(&display);
    display.finish();
    result
}

/// How much of a report is printed.
pub(crate) fn detail() -> Detail {
    if is_verbose() { Detail::Full } else { Detail::Brief }
}

pub(crate) fn width() -> u16 {
    comfy_table::Table::new().width().unwrap_or(WIDTH).max(60)
}

pub(crate) fn recipes(options: &args::Recipes) -> Result<Done, Failure> {
    match &options.what {
        Some(args::RecipesWhat::Show { name }) => {
            print(&built_in::source(name).map_err(LabError::from)?.text);
        }
        None => {
            for recipe in built_in::all() {
                print(&pgdyno_lab::summary(&recipe)?);
            }
            print(
                "\n`pgdyno recipes show NAME` prints one to copy and change; `pgdyno run NAME --size SIZE --dry-run` tells what it would do.",
            );
        }
    }
    Ok(Done::Whole)
}

pub(crate) fn show(options: &args::Show) -> Result<Done, Failure> {
    let store = open(&options.store)?;
    let run = match store.resolve_any(&options.run).map_err(LabError::from)? {
        Stored::Run(run) => run,
        Stored::Probe(probe) => {
            let record = store.probe(&probe).map_err(LabError::from)?;
            print(&crate::probe::shown(&record, options.json)?);
            return Ok(Done::Whole);
        }
        Stored::Crash(crash) => {
            let record = store.crash(&crash).map_err(LabError::from)?;
            print(&crate::crash::shown(&record, options.json)?);
            return Ok(Done::Whole);
        }
        Stored::Imported(id) => {
            let import = store.import(&id).map_err(LabError::from)?;
            print(&if options.json { json(&import)? } else { report::audit::imported(&import) });
            return Ok(Done::Whole);
        }
    };
    let view = analyse(&store, &run).map_err(LabError::from)?;
    if options.json {
        print(&json(&view)?);
    } else {
        print(&report::terminal_with(&view, width(), detail()));
    }
    Ok(Done::Whole)
}

pub(crate) fn compare(options: &args::Compare) -> Result<Done, Failure> {
    let mut gates = Vec::new();
    let given =
        |form, all: &[String]| all.iter().map(|text| (form, text.clone())).collect::<Vec<_>>();
    let asked =
        [given(Form::FailIf, &options.fail_if), given(Form::FailUnless, &options.fail_unless)]
            .concat();
    for (form, text) in asked {
        gates.extend(gate::parse(&text, form).map_err(|e| Failure::of(&e, Some(e.help.clone())))?);
    }
    let store = open(&options.store)?;
    if let Some((import, run)) = imported_side(&store, &options.a, &options.b)? {
        if let Some(gate) = gates.first() {
            return Err(Failure::new(format!(
                "cannot judge `{}` beside imported figures: nothing is computed between the two",
                gate.form.option()
            )));
        }
        let view = analyse(&store, &run).map_err(LabError::from)?;
        let view = pgdyno_results::analysis::beside::beside(&import, &view);
        print(&if options.json { json(&view)? } else { report::beside(&view, options.markdown) });
        return Ok(Done::Whole);
    }
    let asked = Asked { by: options.by.clone(), force: options.force, gates };
    let view = across::compare(&store, &options.a, &options.b, &asked)
        .map_err(|e| Failure::of(&e, e.help()))?;
    print(&if options.json {
        json(&view)?
    } else if options.markdown {
        report::compare_markdown(&view)
    } else {
        report::compare_with(&view, width(), detail())
    });
    Ok(match (view.outcome, options.undecided) {
        (None | Some(Outcome::Passed), _) | (Some(Outcome::Undecided), Some(Undecided::Pass)) => {
            Done::Whole
        }
        (Some(Outcome::Exceeded), _) | (Some(Outcome::Undecided), Some(Undecided::Fail)) => {
            Done::Exceeded
        }
        (Some(Outcome::Undecided), None) => Done::Undecided,
    })
}

/// The imported one of the two and the other, a run; none where both are runs or treatments of
/// runs.
fn imported_side(
    store: &Store,
    a: &str,
    b: &str,
) -> Result<Option<(ImportedRun, String)>, Failure> {
    let stored = |name: &str| store.resolve_any(name).ok();
    let (import, other) = match (stored(a), stored(b)) {
        (Some(Stored::Imported(import)), _) => (import, b),
        (_, Some(Stored::Imported(import))) => (import, a),
        _ => return Ok(None),
    };
    let import = store.import(&import).map_err(LabError::from)?;
    Ok(Some((import, store.resolve(other).map_err(LabError::from)?)))
}

pub(crate) fn doctor(options: &args::Doctor) -> Result<Done, Failure> {
    let serials = if options.keep_serials { Serials::Kept } else { Serials::Hashed };
    let doctor = pgdyno_lab::doctor::examine(options.directory.as_deref(), serials);
    if options.json {
        print(&json(&DoctorDocument::from(&doctor))?);
    } else {
        print(&crate::doctor::rendered(&doctor, is_verbose(), usize::from(width().min(WIDTH))));
    }
    Ok(Done::Whole)
}

pub(crate) fn json<T: Document>(document: &T) -> Result<String, Failure> {
    as_json::json(document).map_err(|e| no_json(&e))
}

pub(crate) fn json_list<T: Document>(documents: &[T]) -> Result<String, Failure> {
    as_json::json_list(documents).map_err(|e| no_json(&e))
}

fn no_json(error: &serde_json::Error) -> Failure {
    Failure::new(format!("cannot write JSON: {error}"))
}
