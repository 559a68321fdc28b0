//! `pgdyno list`: the contents of the store.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use pgdyno_lab::clean::{KeptCrash, kept_crashes};
use pgdyno_model::record::RunState;
use pgdyno_model::units::Bytes;
use pgdyno_report::text::plain;
use pgdyno_store::{CrashSummary, ImportSummary, ProbeSummary, RunSummary, Store, StoreError};

use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print, print_line};
use crate::shared_options::StoreOption;
use pgdyno_report::json::json_list;

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List probes instead of runs (`pgdyno fsync`, `pgdyno disk`)
    #[arg(long)]
    pub(crate) probes: bool,
    /// List crash tests instead of runs, with the files kept of failed ones
    #[arg(long, conflicts_with = "probes")]
    pub(crate) crashes: bool,
    /// List imports instead of runs (`pgdyno audit`)
    #[arg(long, conflicts_with_all = ["probes", "crashes"])]
    pub(crate) imported: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// The contents of a store, newest first.
#[derive(Default)]
struct Contents {
    runs: Vec<RunSummary>,
    probes: Vec<ProbeSummary>,
    crashes: Vec<CrashSummary>,
    imports: Vec<ImportSummary>,
}

impl Contents {
    fn read(store: &Store) -> Result<Self, StoreError> {
        Ok(Self {
            runs: store.runs()?,
            probes: store.probes()?,
            crashes: store.crashes()?,
            imports: store.imports()?,
        })
    }
}

/// Lists the contents of the store. A store that does not exist yet is empty.
pub(crate) fn run(options: &ListArgs) -> Result<ExitStatus, CommandError> {
    let path = options.store.path();
    // A first look before any run is no mistake.
    let mut all =
        if path.exists() { Contents::read(&options.store.open()?)? } else { Contents::default() };
    let kept = if options.crashes { kept_crashes() } else { Vec::new() };
    for crash in &mut all.crashes {
        let found = kept.iter().find(|kept| kept.id == crash.id);
        crash.kept = found.map(|kept| kept.path.clone());
        crash.kept_bytes = found.map(|kept| kept.bytes);
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
        print_table(probe_table(&all.probes), "no probes", &path);
    } else if options.crashes {
        print_table(kept_crash_table(&all.crashes), "no crash tests", &path);
        print_kept(&all.crashes, &kept);
    } else if options.imported {
        print_table(import_table(&all.imports), "nothing imported", &path);
    } else {
        print_all(&all, &path);
    }
    Ok(ExitStatus::Success)
}

fn print_table(table: Option<String>, none: &str, path: &Path) {
    print(&table.unwrap_or_else(|| plain(&format!("{none} yet in {}", path.display()))));
}

fn print_all(all: &Contents, path: &Path) {
    let none =
        || plain(&format!("no runs yet in {}; begin with `pgdyno run quickstart`", path.display()));
    print(&run_table(&all.runs).unwrap_or_else(none));
    for table in [probe_table(&all.probes), crash_table(&all.crashes), import_table(&all.imports)]
        .into_iter()
        .flatten()
    {
        print("");
        print(&table);
    }
}

fn run_table(runs: &[RunSummary]) -> Option<String> {
    let row = |r: &RunSummary| {
        let trials = format!("{}/{}", r.trials_done, r.trials_planned);
        let ad_hoc = if r.ad_hoc { ", ad hoc" } else { "" };
        let not_crashed = match r.not_crashed {
            n if n > 0 && r.state != RunState::Running => format!(", {n} not crashed"),
            _ => String::new(),
        };
        let state = format!("{}{ad_hoc}{not_crashed}", r.state.name());
        [r.id.clone(), state, trials, r.started_at.to_string()]
    };
    let rows: Vec<_> = runs.iter().map(row).collect();
    // One machine needs no name.
    let hosts: BTreeSet<&String> = runs.iter().flat_map(|run| &run.hosts).collect();
    if hosts.len() < 2 {
        return table(["run", "state", "trials", "started"], rows);
    }
    let with_host = |(run, [id, state, trials, started]): (&RunSummary, [String; 4])| {
        let hosts = if run.hosts.is_empty() { "–".to_owned() } else { run.hosts.join(", ") };
        [id, hosts, state, trials, started]
    };
    let rows = runs.iter().zip(rows).map(with_host);
    table(["run", "host", "state", "trials", "started"], rows)
}

fn probe_table(probes: &[ProbeSummary]) -> Option<String> {
    let row = |p: &ProbeSummary| {
        let state = if p.complete { "completed" } else { "not complete" };
        [p.id.clone(), p.name.clone(), state.to_owned(), p.started_at.to_string()]
    };
    table(["probe", "of", "state", "started"], probes.iter().map(row))
}

fn crash_table(crashes: &[CrashSummary]) -> Option<String> {
    let row = |c: &CrashSummary| {
        [c.id.clone(), c.name.clone(), c.verdict.clone(), c.started_at.to_string()]
    };
    table(["crash tests", "of", "verdict", "started"], crashes.iter().map(row))
}

/// Renders crash tests with the size of the files that each one left.
fn kept_crash_table(crashes: &[CrashSummary]) -> Option<String> {
    let row = |c: &CrashSummary| {
        let kept = c.kept_bytes.map_or_else(|| "–".to_owned(), |bytes| Bytes(bytes).to_string());
        [c.id.clone(), c.name.clone(), c.verdict.clone(), c.started_at.to_string(), kept]
    };
    table(["crash tests", "of", "verdict", "started", "kept"], crashes.iter().map(row))
}

/// Prints where the files of failed crash tests are, and which of them belong to another store.
fn print_kept(crashes: &[CrashSummary], kept: &[KeptCrash]) {
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

fn import_table(imports: &[ImportSummary]) -> Option<String> {
    let row = |i: &ImportSummary| {
        [i.id.clone(), i.source.clone(), i.holds.clone(), i.imported_at.to_string()]
    };
    table(["imported, not measured", "from", "holds", "on"], imports.iter().map(row))
}

/// Renders rows as a table, or returns `None` if there are none.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Option<String> {
    let mut rows = rows.into_iter().peekable();
    rows.peek()?;
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::TableStyle::default()).set_header(header);
    // A cell of several lines would begin lines of its own.
    table.add_rows(rows.map(|row| row.map(|cell| plain(&cell))));
    Some(table.trim_fmt())
}
