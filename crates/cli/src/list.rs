//! `pgdyno list`: what the store holds.

use std::path::Path;

use pgdyno_lab::clean::{KeptCrash, kept_crashes};
use pgdyno_lab::{Bytes, LabError};
use pgdyno_results::report::text::plain;
use pgdyno_results::store::{CrashSummary, ImportSummary, ProbeSummary, RunSummary, Store};

use crate::Done;
use crate::args;
use crate::commands::{json_list, open, store_path};
use crate::output::{Failure, print, print_line};

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
    let mut all =
        if path.exists() { Listed::of(&open(&options.store)?)? } else { Listed::default() };
    let kept = if options.crashes { kept_crashes() } else { Vec::new() };
    for crash in &mut all.crashes {
        let its = kept.iter().find(|kept| kept.id == crash.id);
        crash.kept = its.map(|kept| kept.path.clone());
        crash.kept_bytes = its.map(|kept| kept.bytes);
    }
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
        of_one_kind(crashes_with_kept(&all.crashes), "no crash tests", &path);
        tell_of_others(&all.crashes, &kept);
    } else if options.imported {
        of_one_kind(imports(&all.imports), "nothing imported", &path);
    } else {
        everything(&all, &path);
    }
    Ok(Done::Whole)
}

fn of_one_kind(table: Option<String>, none: &str, path: &Path) {
    print(&table.unwrap_or_else(|| plain(&format!("{none} yet in {}", path.display()))));
}

fn everything(all: &Listed, path: &Path) {
    let none =
        || plain(&format!("no runs yet in {}; begin with `pgdyno run quickstart`", path.display()));
    print(&runs(&all.runs).unwrap_or_else(none));
    for table in
        [probes(&all.probes), crashes(&all.crashes), imports(&all.imports)].into_iter().flatten()
    {
        print("");
        print(&table);
    }
}

fn runs(runs: &[RunSummary]) -> Option<String> {
    let row = |r: &RunSummary| {
        let trials = format!("{}/{}", r.trials_done, r.trials_planned);
        [r.id.clone(), r.state.name().to_owned(), trials, r.started_at.to_string()]
    };
    table(["run", "state", "trials", "started"], &runs.iter().map(row).collect::<Vec<_>>())
}

fn probes(probes: &[ProbeSummary]) -> Option<String> {
    let row = |p: &ProbeSummary| {
        let state = if p.complete { "completed" } else { "not complete" };
        [p.id.clone(), p.name.clone(), state.to_owned(), p.started_at.to_string()]
    };
    table(["probe", "of", "state", "started"], &probes.iter().map(row).collect::<Vec<_>>())
}

fn crashes(crashes: &[CrashSummary]) -> Option<String> {
    let row = |c: &CrashSummary| {
        [c.id.clone(), c.name.clone(), c.verdict.clone(), c.started_at.to_string()]
    };
    table(["crash tests", "of", "verdict", "started"], &crashes.iter().map(row).collect::<Vec<_>>())
}

/// With the room that is taken by what is kept; where it is, below the table.
fn crashes_with_kept(crashes: &[CrashSummary]) -> Option<String> {
    let row = |c: &CrashSummary| {
        let kept = c.kept_bytes.map_or_else(|| "–".to_owned(), |bytes| Bytes(bytes).to_string());
        [c.id.clone(), c.name.clone(), c.verdict.clone(), c.started_at.to_string(), kept]
    };
    table(
        ["crash tests", "of", "verdict", "started", "kept"],
        &crashes.iter().map(row).collect::<Vec<_>>(),
    )
}

/// Where images are kept, and those of sessions that another store knows.
fn tell_of_others(crashes: &[CrashSummary], kept: &[KeptCrash]) {
    let Some(folder) = kept.first().and_then(|kept| kept.path.parent()) else { return };
    let bytes = Bytes(kept.iter().map(|kept| kept.bytes).sum());
    print("");
    print_line(&format!(
        "kept in {}: {bytes}; `pgdyno clean --crashes` removes it",
        folder.display()
    ));
    let is_other = |kept: &&KeptCrash| !crashes.iter().any(|crash| crash.id == kept.id);
    let others: Vec<&str> = kept.iter().filter(is_other).map(|kept| kept.id.as_str()).collect();
    if !others.is_empty() {
        print_line(&format!("not in this store: {}", others.join(", ")));
    }
}

fn imports(imports: &[ImportSummary]) -> Option<String> {
    let row = |i: &ImportSummary| {
        [i.id.clone(), i.source.clone(), i.holds.clone(), i.imported_at.to_string()]
    };
    table(
        ["imported, not measured", "from", "holds", "on"],
        &imports.iter().map(row).collect::<Vec<_>>(),
    )
}

/// None without rows.
fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::TableStyle::default()).set_header(header);
    // A cell of several lines would begin lines of its own.
    table.add_rows(rows.iter().map(|row| row.each_ref().map(|cell| plain(cell))));
    Some(table.trim_fmt())
}
