//! `pgdyno list`: what the store holds.

use std::path::Path;

use pgdyno_lab::LabError;
use pgdyno_results::report::text::plain;
use pgdyno_results::store::{CrashSummary, ImportSummary, ProbeSummary, RunSummary, Store};

use crate::Done;
use crate::args;
use crate::commands::{json_list, open, store_path};
use crate::output::{Failure, print};

/// Everything in a store, newest first.
#[derive(Default)]
struct Listed {
    runs: Vec<RunSummary>,
    probes: Vec<ProbeSummary>,
    crashes: Vec<CrashSummary>,
    imports: Vec<ImportSummary>,
}

impl Listed {
    fn of(store: &Store) -> Result<Self, LabError> {
        Ok(Self {
            runs: store.runs()?,
            probes: store.probes()?,
            crashes: store.crashes()?,
            imports: store.imports()?,
        })
    }
}

pub(crate) fn list(options: &args::List) -> Result<Done, Failure> {
    let path = store_path(&options.store);
    // A first look before any run is no mistake.
    let all = if path.exists() { Listed::of(&open(&options.store)?)? } else { Listed::default() };
    if options.json {
        print(&if options.probes {
            json_list(&all.probes)?
        } else if options.crashes {
            json_list(&all.crashes)?
        } else if options.imported {
            json_list(&all.imports)?
        } else {
            json_list(&all.runs)?
        });
    } else if options.probes {
        of_one_kind(probes(&all.probes), "no probes", &path);
    } else if options.crashes {
        of_one_kind(crashes(&all.crashes), "no crash tests", &path);
    } else if options.imported {
        of_one_kind(imports(&all.imports), "nothing imported", &path);
    } else {
        everything(&all, &path);
    }
    Ok(Done::Whole)
}

fn of_one_kind(table: Option<String>, none: &str, path: &Path) {
    print(&table.unwrap_or_else(|| format!("{none} yet in {}", path.display())));
}

fn everything(all: &Listed, path: &Path) {
    let none = || format!("no runs yet in {}; begin with `pgdyno run quickstart`", path.display());
    print(&runs(&all.runs).unwrap_or_else(none));
    for table in [probes(&all.probes), crashes(&all.crashes), imports(&all.imports)].into_iter().flatten() {
        print("");
        print(&table);
    }
}

fn runs(runs: &[RunSummary]) -> Option<String> {
    let row = |r: &RunSummary| {
        let trials = format!("{}/{}", r.trials_done, r.trials_planned);
        [r.id.clone(), r.state.name().to_owned(), trials, r.started_at.to_string()]
    };
    table(["run", "state", "trials", "started"], runs.iter().map(row).collect())
}

fn probes(probes: &[ProbeSummary]) -> Option<String> {
    let row = |p: &ProbeSummary| {
        let state = if p.complete { "completed" } else { "not complete" };
        [p.id.clone(), p.name.clone(), state.to_owned(), p.started_at.to_string()]
    };
    table(["probe", "of", "state", "started"], probes.iter().map(row).collect())
}

fn crashes(crashes: &[CrashSummary]) -> Option<String> {
    let row = |c: &CrashSummary| [c.id.clone(), c.name.clone(), c.verdict.clone(), c.started_at.to_string()];
    table(["crash tests", "of", "verdict", "started"], crashes.iter().map(row).collect())
}

fn imports(imports: &[ImportSummary]) -> Option<String> {
    let row =
        |i: &ImportSummary| [i.id.clone(), plain(&i.source), i.holds.clone(), i.imported_at.to_string()];
    table(["imported, not measured", "from", "holds", "on"], imports.iter().map(row).collect())
}

/// None without rows.
fn table(header: [&str; 4], rows: Vec<[String; 4]>) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::TableStyle::default()).set_header(header).add_rows(rows);
    Some(table.trim_fmt())
}
