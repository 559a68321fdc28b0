//! Recognisers: each finds one kind of figure in a document.
//!
//! [`recognise`] runs all of them, in an order that matters: a line that one has read is not read
//! by the next. To add a recogniser, write a module with a `find(&mut Scan)` that marks the lines
//! it reads, give [`Recognised`] or [`Evidence`] a field for its results, and call it in
//! [`recognise`].

mod columns;
mod command;
mod evidence;
mod groups;
mod leftover;
mod loads;
mod pgbench;
mod pgbench_run;
mod probes;
mod properties;
mod recognised;
mod repeats;
mod scan;
mod settings;
mod shares;
mod storage;
mod sysbench;
mod table;
mod tables;
mod taken;

pub(crate) use command::Command;
pub use command::LoadKind;
pub(crate) use evidence::Evidence;
pub(crate) use groups::Span;
pub(crate) use loads::RowOfLoad;
pub use pgbench_run::{PgbenchRun, Progress, Script, Statement};
pub use probes::{CpuLine, DeviceLine, FsyncLine};
pub(crate) use properties::{Origin, Property, PropertyKind};
pub use recognised::Recognised;
pub(crate) use repeats::is_numbered;
use scan::Scan;
pub use settings::Setting;
pub(crate) use settings::quantity;
pub(crate) use shares::{Counted, PrintedShare};
pub(crate) use storage::named_filesystems;
pub use storage::{StorageFact, StorageWhat};
pub use sysbench::SysbenchRun;
pub(crate) use table::mean_holds;
pub use table::{Meaning, Row, Table};

use crate::document::Document;
use crate::figure::{Decimals, Figure, proof};
use crate::finding::NotUnderstood;
use crate::words;

/// All that is recognised, and what looks like a figure and is not.
pub(super) fn recognise(document: &Document) -> (Evidence, Vec<NotUnderstood>) {
    let read = vec![false; document.lines.len()];
    let mut scan = Scan {
        lines: &document.lines,
        read,
        decimals: thousands(document),
        not_understood: Vec::new(),
    };
    let scan = &mut scan;
    let runs = pgbench::find(scan);
    let mut runs = without_quoted(scan, runs);
    let sysbench = sysbench::find(scan);
    let commands = command::find(scan);
    // While only these have read: a setting or a caption between two runs parts them.
    let spans: Vec<Span> = runs.iter().map(Span::from).collect();
    let mut warm_ups = groups::warm_ups(scan, &spans);
    let groups = groups::groups(scan, &spans, &commands, &warm_ups);
    let spans: Vec<Span> = sysbench.iter().map(Span::from).collect();
    let sysbench_warm_ups = groups::warm_ups(scan, &spans);
    let sysbench_groups = groups::groups(scan, &spans, &[], &sysbench_warm_ups);
    warm_ups.extend(sysbench_warm_ups);
    let fsync = probes::fsync(scan);
    let (cpus, devices) = probes::iostat(scan);
    let settings = settings::find(scan);
    let storage = storage::find(scan);
    let tables = tables::find(scan);
    for run in &mut runs {
        run.label = label(scan, run.line);
    }
    leftover::find(scan);
    let mut not_understood = std::mem::take(&mut scan.not_understood);
    for one in &mut not_understood {
        document.quote(one.line).clone_into(&mut one.quoted);
    }
    not_understood.sort_by_key(|one| one.line);
    let evidence = Evidence {
        properties: properties::find(scan, &storage, &settings),
        shares: runs.iter().map(|run| shares::of_run(scan, run)).collect(),
        loads: loads::find(scan, &tables),
        aborted: pgbench::aborted_clients(scan),
        scales: command::initialised_scales(scan),
        described: storage::described_filesystems(scan),
        capped: sysbench.iter().filter_map(|run| sysbench::capped_percentile(scan, run)).collect(),
        sysbench_commands: sysbench::commands(scan),
        recognised: Recognised { runs, sysbench, tables, fsync, cpus, devices, settings, storage },
        commands,
        groups,
        sysbench_groups,
        warm_ups,
    };
    (evidence, not_understood)
}

/// Returns the decimal sign that numbers such as `24,242,107` prove for the whole document.
fn thousands(document: &Document) -> Option<Decimals> {
    let words = document.lines.iter().flat_map(|line| line.text.split_whitespace());
    let mut proofs = words
        .filter(|word| {
            word.matches(['.', ',']).count() >= 2 && word.starts_with(|c: char| c.is_ascii_digit())
        })
        .filter_map(|word| proof(word.trim_end_matches([',', '.', ')', ';'])));
    let first = proofs.next()?;
    proofs.all(|other| other == first).then_some(first)
}

/// Finds the name of a run: a short line right above it.
fn label(scan: &Scan<'_>, line: usize) -> Option<String> {
    const NEAR: usize = 6;
    let first = scan.lines.iter().position(|l| l.number == line)?;
    let near = (0..first).rev().take(NEAR);
    let over = near
        .into_iter()
        .find(|i| !scan.lines[*i].text.trim().is_empty() && !is_command(scan, *i))?;
    if scan.read[over] {
        return None;
    }
    let name = words::heading(&scan.lines[over].text);
    let short = name.chars().count() <= 40 && name.chars().any(char::is_alphabetic);
    (short && !name.ends_with(['.', '。', ',', ';', '!', '?'])).then(|| name.to_owned())
}

/// A line that only starts what follows: a command, a prompt, a fence.
fn is_command(scan: &Scan<'_>, at: usize) -> bool {
    let text = scan.lines[at].text.trim();
    let prompt = text.starts_with("```")
        || text.starts_with("$ ")
        || text.contains("$ pgbench")
        || text.contains("> cat ");
    prompt || text.contains("pgbench ") || text.starts_with('\\') || text.ends_with(';')
}

/// Runs that a quotation repeats, or of which only a known tps stands once more, are no runs of
/// their own.
fn without_quoted(scan: &Scan<'_>, runs: Vec<PgbenchRun>) -> Vec<PgbenchRun> {
    let quoted = |run: &PgbenchRun| scan.lines.iter().any(|l| l.number == run.line && l.quoted);
    let figures =
        |run: &PgbenchRun| (run.tps().map(|f| f.value), run.transactions.map(|f| f.value));
    let bare = |run: &PgbenchRun| {
        run.transactions.is_none() && run.clients.is_none() && run.progress.is_empty()
    };
    let fine = |figure: Figure| figure.half < 0.005;
    let mut kept: Vec<PgbenchRun> = Vec::new();
    let originals: Vec<_> = runs.iter().filter(|r| !quoted(r)).map(figures).collect();
    for run in runs {
        let known = kept.iter().any(|k| figures(k) == figures(&run));
        let copied = quoted(&run) && (known || originals.contains(&figures(&run)));
        let said_again = bare(&run)
            && run.tps().is_some_and(|tps| {
                fine(tps)
                    && kept
                        .iter()
                        .any(|k| !bare(k) && k.tps().is_some_and(|t| t.value == tps.value))
            });
        if !(copied || said_again) {
            kept.push(run);
        }
    }
    kept
}
