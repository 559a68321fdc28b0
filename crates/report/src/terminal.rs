//! Renders a run for a terminal.

use comfy_table::Cell;
use pgdyno_model::Verdict;
use pgdyno_text::format;

use super::crash::{CrashView, FaultView, FilesystemsView};
use super::table::{NONE, right, table_lines};
use super::text::{Detail, plain, wrap};
use super::{fingerprint, generators, groups, stages};
use crate::note::{Note, NoteKind};
use crate::{RunReport, prose};
use pgdyno_analysis::question::asked_pairs;
use pgdyno_analysis::{
    Comparison, FsyncView, LatencyView, RatioView, RunView, StageProbeView, StatementView,
    TreatmentView, WhyView,
};

/// Explains the figures of the table of treatments.
pub(crate) const LEGEND: &str = "mean, stddev, p50, p95, p99: latency in ms. ±: half of the 95% \
                                 confidence interval over trials. ~: no significant difference \
                                 from the best.";

const SERVICE: &str = "With a rate, latency counts from when a transaction was due; service p50, \
                       p99: from when it was sent.";

const MOUNTS: &str = "mount, fsck: median time in ms of the mount after a power cut, and of a \
                      check without repairs.";

/// Most comparisons printed; the report has the others.
const COMPARISONS: usize = 6;

/// Renders answer, table, differences, causes, storages and notes of a run as plain text in at most
/// `width` columns, with a newline at the end.
///
/// A brief text has the first few notes, and one line for each note and each fact about the
/// machine.
pub fn terminal(report: &RunReport, width: u16, detail: Detail) -> String {
    let RunReport { view, crashes, notes, answer, .. } = report;
    let width = width.max(40);
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph = |text: &str| lines.extend(wrap(text, usize::from(width), ""));
    let run = &view.run;
    let head = format!(
        "{}: {}{}, {} of {} trials",
        run.id,
        run.state.name(),
        if view.ad_hoc { ", ad hoc" } else { "" },
        run.trials_completed,
        run.trials_planned
    );
    paragraph(&head);
    if let Some(question) = &run.question {
        paragraph(question);
    }
    paragraph("");
    answer.iter().for_each(|sentence| paragraph(sentence));
    paragraph("");
    let (table, left_out) = table(report, width);
    lines.extend(table);
    lines.extend(wrap(LEGEND, usize::from(width), ""));
    if has_service(view) {
        lines.extend(wrap(SERVICE, usize::from(width), ""));
    }
    if has_mounts(crashes) {
        lines.extend(wrap(MOUNTS, usize::from(width), ""));
    }
    lines.extend(wrap(&left_out, usize::from(width), "").into_iter().filter(|l| !l.is_empty()));
    lines.extend(groups::lines(view, width, detail));
    lines.extend(stages::lines(view, width, detail));
    lines.extend(generators::lines(view, width, detail));
    for (title, items) in [
        ("Flush accounting", prose::flush_accounting(view)),
        ("Crash tests", crashes.iter().flat_map(crashed).collect()),
        ("Differences", differences(view, notes)),
        ("Maximum rates", prose::capacities(view)),
        ("Why", why(view)),
        ("Probes", view.probes.iter().map(probed).collect()),
        ("Statements", if detail == Detail::Full { statements(view) } else { Vec::new() }),
        ("Not available here", unavailable(view)),
        ("Failed trials", failed(notes, detail)),
        ("Ceiling", detail.lines(newest(&view.fsync).into_iter().map(ceiling).collect(), width)),
        ("Machine", detail.lines(machine(view), width)),
        ("Notes", detail.notes(other_notes(notes), width)),
    ] {
        lines.extend(section(title, &items, width));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Renders a title and its items, one paragraph each; nothing without items.
pub(super) fn section(title: &str, items: &[String], width: u16) -> Vec<String> {
    if items.is_empty() {
        return Vec::new();
    }
    let items = items.iter().flat_map(|item| wrap(&format!("- {item}"), width.into(), "  "));
    [String::new(), title.to_owned()].into_iter().chain(items).collect()
}

/// Texts of the table of treatments.
pub(crate) struct TreatmentTable {
    /// Columns that hold levels (count); all others hold figures.
    pub(crate) names: usize,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Returns the table of a run's treatments.
pub(crate) fn treatment_table(report: &RunReport) -> TreatmentTable {
    let view = &report.view;
    let factors = &view.plan.factors;
    let service: &[&str] = if has_service(view) { &["service p50", "service p99"] } else { &[] };
    let measure = match view.plan.find {
        Some(_) => "max rate".to_owned(),
        None => prose::tps_of(&view.plan),
    };
    let titles =
        ["trials", &measure, "± 95%", "ratio to best", "mean", "stddev", "p50", "p95", "p99"];
    let has_mounts = has_mounts(&report.crashes);
    let crash: &[&str] = match (view.crashes.is_empty(), has_mounts) {
        (true, _) => &[],
        (false, true) => &["mount", "fsck", "crash tests"],
        (false, false) => &["crash tests"],
    };
    let figures = titles.iter().chain(service).chain(&["failed"]).chain(crash);
    let names = factors.iter().map(|factor| plain(factor));
    let header = names.chain(figures.map(|title| (*title).to_owned())).collect();
    let row = |t: &TreatmentView| {
        let level = |factor| t.factors.get(factor).map(|level| plain(&level.to_string()));
        let levels = factors.iter().map(|factor| level(factor).unwrap_or_default());
        let verdict = t.crash.as_ref().map_or(NONE, |crash| crash.verdict.name());
        let verdict = (!view.crashes.is_empty()).then(|| verdict.to_owned());
        let mounts = report.mounts(t).map_or_else(<[_; 2]>::default, FilesystemsView::cells);
        let mounts = mounts.map(|cell| cell.unwrap_or_else(|| NONE.to_owned()));
        let mounts = mounts.into_iter().filter(|_| has_mounts);
        levels.chain(numbers(t, has_service(view))).chain(mounts).chain(verdict).collect()
    };
    let rows = view.treatments.iter().map(row).collect();
    TreatmentTable { names: factors.len(), header, rows }
}

/// Columns that a narrow table does without, in this order: figures of latency, and counts that are
/// the same in every row.
const DISPENSABLE: [&str; 7] = ["stddev", "mean", "p95", "failed", "trials", "p50", "p99"];

/// Renders the table of treatments in at most `width` columns. Returns it with a sentence about the
/// columns that it has no room for; they are left out where that keeps words whole.
fn table(report: &RunReport, width: u16) -> (Vec<String>, String) {
    let mut table = treatment_table(report);
    let mut left_out = Vec::new();
    for title in DISPENSABLE {
        if natural_width(&table) <= usize::from(width) {
            break;
        }
        // Factors may have any name.
        let is_it = |i: &usize| table.header[*i] == title;
        let Some(i) = (table.names..table.header.len()).find(is_it) else { continue };
        let first = table.rows.first().map(|row| row[i].clone()).unwrap_or_default();
        let is_same = table.rows.iter().all(|row| row[i] == first);
        if !is_same && matches!(title, "failed" | "trials") {
            continue;
        }
        left_out.push(if is_same { format!("{title} ({first})") } else { title.to_owned() });
        table.header.remove(i);
        table.rows.iter_mut().for_each(|row| drop(row.remove(i)));
    }
    let left_out = match left_out.is_empty() {
        true => String::new(),
        false => format!("Not shown at this width: {}.", left_out.join(", ")),
    };
    (table_lines(cells(&table.header, table.names), rows_of(&table), width), left_out)
}

fn rows_of(table: &TreatmentTable) -> Vec<Vec<Cell>> {
    table.rows.iter().map(|row| cells(row, table.names)).collect()
}

fn cells(texts: &[String], names: usize) -> Vec<Cell> {
    let cell = |(i, text): (usize, &String)| if i < names { Cell::new(text) } else { right(text) };
    texts.iter().enumerate().map(cell).collect()
}

/// Returns the columns that the table takes if no cell is wrapped.
fn natural_width(table: &TreatmentTable) -> usize {
    let lines = table_lines(cells(&table.header, table.names), rows_of(table), u16::MAX);
    lines.iter().map(|line| line.chars().count()).max().unwrap_or_default()
}

/// Renders every statement of every treatment: mean and standard deviation of its latency.
fn statements(view: &RunView) -> Vec<String> {
    let line = |t: &TreatmentView, s: &StatementView| {
        let latency = s.latency_us.as_ref()?;
        Some(format!(
            "{}: mean {} ms, standard deviation {} ms ({}): {} (line {})",
            t.label,
            format::milliseconds(latency.mean),
            format::milliseconds(latency.stddev),
            format::count(latency.count),
            plain(&s.text),
            s.line
        ))
    };
    let all = view.treatments.iter().flat_map(|t| t.statements.iter().map(move |s| (t, s)));
    all.filter_map(|(t, s)| line(t, s)).collect()
}

/// Returns whether a treatment has a service time beside its latency, as loads with a rate have.
fn has_service(view: &RunView) -> bool {
    view.treatments.iter().any(|t| t.service_us.is_some())
}

fn numbers(t: &TreatmentView, with_service: bool) -> Vec<String> {
    let trials = if t.trials == t.trials_planned {
        t.trials.to_string()
    } else {
        match t.unavailable {
            Some(_) => "not available here".to_owned(),
            None => format!("{}/{}", t.trials, t.trials_planned),
        }
    };
    let tps = t.tps.as_ref().map_or(NONE.to_owned(), |tps| format::rate(tps.mean));
    let half = t.tps.as_ref().and_then(|tps| format::plus_minus(tps.mean, tps.ci95?));
    let milliseconds = |latency: &Option<LatencyView>, of: fn(&LatencyView) -> f64| {
        latency.as_ref().map_or(NONE.to_owned(), |l| format::milliseconds(of(l)))
    };
    let mut out = vec![
        trials,
        tps,
        half.map_or(NONE.to_owned(), |half| format!("{half}%")),
        t.ratio_to_best.as_ref().map_or(NONE.to_owned(), ratio),
        milliseconds(&t.latency_us, |l| l.mean),
        milliseconds(&t.latency_us, |l| l.stddev),
        milliseconds(&t.latency_us, |l| l.p50),
        milliseconds(&t.latency_us, |l| l.p95),
        milliseconds(&t.latency_us, |l| l.p99),
    ];
    if with_service {
        out.extend([
            milliseconds(&t.service_us, |l| l.p50),
            milliseconds(&t.service_us, |l| l.p99),
        ]);
    }
    out.push(if t.trials == 0 { NONE.to_owned() } else { format::count(t.failed) });
    out
}

pub(super) fn ratio(ratio: &RatioView) -> String {
    let Some(value) = ratio.value else { return NONE.to_owned() };
    let mark = if ratio.significant == Some(false) { "~ " } else { "" };
    // Half of an interval of logarithms, as a share: the same up and down but for its sign.
    let half = ratio.ci95.map_or_else(String::new, |[lo, hi]| half_width((hi / lo).sqrt() - 1.0));
    format!("{mark}{}{half}", format::times(value))
}

/// Renders half of an interval: ` ±2.3%`. Above 100% it is empty: the value may as well be double.
pub(super) fn half_width(share: f64) -> String {
    if share > 1.0 { String::new() } else { format!(" ±{}%", format::percent(share)) }
}

/// Returns the newest probe of each storage and method.
fn newest(all: &[FsyncView]) -> Vec<&FsyncView> {
    let later = |i: usize, f: &FsyncView| {
        all[i + 1..].iter().any(|o| (&o.storage, &o.method) == (&f.storage, &f.method))
    };
    all.iter().enumerate().filter(|(i, f)| !later(*i, f)).map(|(_, f)| f).collect()
}

fn ceiling(f: &FsyncView) -> String {
    let Some(rate) = f.per_second else {
        return format!("storage `{}`: no flush was measured", f.storage);
    };
    let latency = f.latency_us.as_ref().map_or_else(String::new, |l| {
        format!("; p50 {} ms, p99 {} ms", format::milliseconds(l.p50), format::milliseconds(l.p99))
    });
    format!(
        "storage `{}`: {} flushes/s of one writer ({}, {} bytes each{latency}). Commits of several \
         clients can share a flush.",
        f.storage,
        format::rate(rate),
        f.method,
        f.block_bytes
    )
}

/// Renders a probe in a line or two.
pub(super) fn probed(probe: &StageProbeView) -> String {
    let when = match probe.attempts_before {
        0 => "before the first trial".to_owned(),
        1 => "after 1 trial".to_owned(),
        n => format!("after {n} trials"),
    };
    let when = if probe.after_trim { format!("{when} and fstrim") } else { when };
    let flushes =
        probe.flushes_per_second.map(|f| format!("{} flushes/s of one writer", format::rate(f)));
    let megabytes =
        |what: &str, rate: Option<f64>| Some(format!("{what} {} MB/s", format::rate(rate? / 1e6)));
    let iops = |what: &str, rate: Option<f64>| Some(format!("{what} {} IOPS", format::rate(rate?)));
    let figures: Vec<String> = [
        flushes,
        megabytes("sequential writes", probe.write_bytes_per_second),
        megabytes("sequential reads", probe.read_bytes_per_second),
        iops("random reads of 8 kB up to", probe.randread_iops),
        iops("random writes of 8 kB up to", probe.randwrite_iops),
    ]
    .into_iter()
    .flatten()
    .collect();
    let figures =
        if figures.is_empty() { "nothing to compare".to_owned() } else { figures.join(", ") };
    let partly = if probe.complete { "" } else { " (not complete)" };
    let suspect: String = probe.warnings.iter().map(|w| format!(" Suspect: {w}.")).collect();
    format!("storage `{}`, {when}{partly}: {figures} ({}).{suspect}", probe.storage, probe.id)
}

/// Renders how old the oldest loss of a round was at the fault: `, the oldest of a round 31 ms
/// (median) to 83 ms before the fault`; empty without a loss.
fn lost_age(fault: &FaultView) -> String {
    let (Some(median), Some(oldest)) = (fault.median_lost_ms, fault.oldest_lost_ms) else {
        return String::new();
    };
    format!(", the oldest of a round {median:.0} ms (median) to {oldest:.0} ms before the fault")
}

/// Renders crash tests: a line for each fault, then the circumstances that weaken the verdict.
pub(super) fn crashed(crash: &CrashView) -> Vec<String> {
    let line = |fault: &FaultView| {
        format!(
            "{}, {}: {}. {}, {} acknowledged, {} lost{} ({}).",
            crash.name,
            fault.fault,
            fault.verdict,
            format::counted(fault.rounds as u64, "round"),
            format::count(fault.acknowledged),
            format::count(fault.lost),
            lost_age(fault),
            crash.id
        )
    };
    let mut lines: Vec<String> = Vec::new();
    for fault in &crash.faults {
        lines.push(line(fault));
        // A pass of rounds that did not put everything under test says so.
        let partly = fault.power.as_ref().is_some_and(|power| {
            power.figures.rounds < fault.rounds || power.figures.checkpoints.is_none()
        });
        if partly && matches!(fault.verdict, Verdict::Pass | Verdict::BoundedLoss) {
            lines.push(format!("{}, {}: {}.", crash.name, fault.fault, fault.reason));
        }
        if let Some(filesystems) = &fault.filesystems {
            let words = filesystems.words.join("; ");
            lines.push(format!("{}, {}: {words}.", crash.name, fault.fault));
        }
        // What was under test matters where nothing was found.
        let words = fault
            .power
            .as_ref()
            .filter(|_| fault.verdict.failing().is_none())
            .map(|power| &power.words);
        if let Some(words) = words.filter(|words| !words.is_empty()) {
            lines.push(format!("{}, {}: {}.", crash.name, fault.fault, words.join("; ")));
        }
    }
    let blind = crash.controls.iter().filter(|control| !control.seen);
    lines.extend(
        blind.map(|c| format!("{}: invalid: the control `{}` was not seen.", crash.name, c.name)),
    );
    if matches!(crash.verdict, Verdict::Invalid | Verdict::Unknown) {
        lines.push(format!("{}: {}: {}.", crash.name, crash.verdict, crash.reason));
    }
    lines.extend(crash.notes.iter().map(|note| format!("{}: {note}.", crash.name)));
    lines
}

/// Returns whether filesystems were mounted after power cuts.
fn has_mounts(crashes: &[CrashView]) -> bool {
    crashes.iter().any(|crash| crash.filesystems.is_some())
}

/// Returns the notes' texts; what is not available and what failed have sections of their own.
fn other_notes(notes: &[Note]) -> Vec<String> {
    let own =
        [NoteKind::NotAvailable, NoteKind::TrialFailed, NoteKind::Interaction, NoteKind::Course];
    let others = notes.iter().filter(|note| !own.contains(&note.kind));
    others.map(|note| note.text.clone()).collect()
}

/// Renders the trials that failed, each with its whole reason.
fn failed(notes: &[Note], detail: Detail) -> Vec<String> {
    const SHOWN: usize = 3;
    let failed = notes.iter().filter(|note| note.kind == NoteKind::TrialFailed);
    let reason = |note: &Note| note.text.trim_start_matches("Failed: ").to_owned();
    let mut out: Vec<String> = failed.map(reason).collect();
    let more = out.len().saturating_sub(SHOWN);
    if detail == Detail::Brief && more > 0 {
        out.truncate(SHOWN);
        out.push(format!("{more} more with `--verbose`."));
    }
    out
}

/// Renders the storages that the newest session's machine lacks: why, and what would run them.
fn unavailable(view: &RunView) -> Vec<String> {
    let storages = view.sessions.last().map_or(&[][..], |session| &session.storage);
    let lacking = storages.iter().filter(|storage| storage.not_available_here);
    lacking.filter_map(|storage| storage.failure.clone()).collect()
}

/// Renders the newest session's machine: a line for the host and one for each storage.
fn machine(view: &RunView) -> Vec<String> {
    let Some(session) = view.sessions.last() else { return Vec::new() };
    let storage = session
        .storage
        .iter()
        .map(|s| format!("storage `{}`: {}", s.name, fingerprint::storage_in_brief(s)));
    [fingerprint::host_in_brief(&session.host)].into_iter().chain(storage).collect()
}

/// Returns the largest part of each difference, for the first few differences.
fn why(view: &RunView) -> Vec<String> {
    const SHOWN: usize = 4;
    let label = |treatment: usize| view.treatments[treatment].label.as_str();
    let largest =
        |why: &WhyView| prose::why(why, label(why.to), label(why.treatment)).into_iter().next();
    let mut out: Vec<String> =
        view.why.iter().filter_map(largest).map(|words| format!("{words}.")).collect();
    let more = out.len().saturating_sub(SHOWN);
    out.truncate(SHOWN);
    if more > 0 {
        out.push(format!("{more} more in the report."));
    }
    out
}

/// Returns what the question asks for, the other significant differences, the largest first, then
/// the others; then what factors do over all their levels.
fn differences(view: &RunView, notes: &[Note]) -> Vec<String> {
    let size = |c: &&Comparison| match (c.ratio.value, c.ratio.significant) {
        (Some(value), Some(true)) if value > 0.0 => 1.0 + value.ln().abs(),
        (_, Some(_)) => 0.5,
        _ => 0.0,
    };
    let asked = asked_pairs(&view.plan);
    let is_asked = |c: &Comparison| asked.contains(&(c.treatment.min(c.to), c.treatment.max(c.to)));
    let mut sorted: Vec<&Comparison> = view.comparisons.iter().collect();
    sorted.sort_by(|a, b| is_asked(b).cmp(&is_asked(a)).then(size(b).total_cmp(&size(a))));
    let mut out: Vec<String> =
        sorted.iter().take(COMPARISONS).map(|c| prose::comparison(&view.plan, c)).collect();
    if sorted.len() > COMPARISONS {
        out.push(format!("{} more in the report.", sorted.len() - COMPARISONS));
    }
    let is_of_factors =
        |note: &&Note| matches!(note.kind, NoteKind::Interaction | NoteKind::Course);
    let of_factors: Vec<String> =
        notes.iter().filter(is_of_factors).map(|note| note.text.clone()).collect();
    out.extend(of_factors.iter().take(COMPARISONS).cloned());
    if of_factors.len() > COMPARISONS {
        out.push(format!("{} more in the report.", of_factors.len() - COMPARISONS));
    }
    out
}
