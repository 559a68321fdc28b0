//! What a terminal shows of crash tests, and what JSON does.

use std::fmt::Write as _;

use comfy_table::{Table, TableStyle};
use pgdyno_model::CrashRecord;
use pgdyno_model::crash::{CheckOutcome, Control, CrashOutcome, FaultOutcome, Round, Verdict};
use pgdyno_model::facts::{HostFacts, StorageFacts};
use pgdyno_model::units::Epoch;
use serde::Serialize;

use super::text::wrap;

const WIDTH: usize = 100;
const NONE: &str = "–";
/// Lost tokens that a page names.
const NAMED: usize = 5;
/// Lines of a log that a page quotes.
const LINES: usize = 8;

/// One fault as JSON shows it.
#[derive(Clone, Debug, Serialize)]
pub struct FaultView {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// The fault.
    pub fault: String,
    /// Rounds (count).
    pub rounds: usize,
    /// Transactions acknowledged in all rounds (count).
    pub acknowledged: u64,
    /// Of these missing (count).
    pub lost: u64,
    /// Age of the oldest one lost, when the fault struck (milliseconds).
    pub oldest_lost_ms: Option<f64>,
    /// The longest recovery (milliseconds).
    pub recovery_ms: Option<f64>,
    /// With how much probability a round fails at most (95% confidence), where none did.
    pub chance_at_most: Option<f64>,
    /// Round by round.
    pub each: Vec<Round>,
}

impl From<&FaultOutcome> for FaultView {
    fn from(fault: &FaultOutcome) -> Self {
        Self {
            verdict: fault.verdict,
            reason: fault.reason.clone(),
            fault: fault.fault.to_string(),
            rounds: fault.rounds.len(),
            acknowledged: fault.acknowledged(),
            lost: fault.lost(),
            oldest_lost_ms: fault.oldest_lost_ms(),
            recovery_ms: fault.recovery_ms(),
            chance_at_most: fault.chance_at_most,
            each: fault.rounds.clone(),
        }
    }
}

/// Crash tests as JSON shows them: the sum over all faults, then each.
#[derive(Clone, Debug, Serialize)]
pub struct CrashView {
    /// Their name in the store.
    pub id: String,
    /// The run that they belong to.
    pub run: Option<String>,
    /// The run's treatment that was crashed.
    pub treatment: Option<usize>,
    /// What was crashed.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// The faults, joined by commas.
    pub fault: String,
    /// Rounds (count).
    pub rounds: usize,
    /// Transactions acknowledged (count).
    pub acknowledged: u64,
    /// Of these missing (count).
    pub lost: u64,
    /// Age of the oldest one lost, when its fault struck (milliseconds).
    pub oldest_lost_ms: Option<f64>,
    /// The longest recovery (milliseconds).
    pub recovery_ms: Option<f64>,
    /// The positive controls.
    pub controls: Vec<Control>,
    /// Fault by fault.
    pub faults: Vec<FaultView>,
    /// What weakens the verdict.
    pub notes: Vec<String>,
    /// Whether everything was done that was to be.
    pub complete: bool,
    /// The seed that repeats every round.
    pub seed: u64,
    /// The settings that were asked for.
    pub settings: std::collections::BTreeMap<String, String>,
    /// When it began.
    #[serde(serialize_with = "crate::analysis::as_text")]
    pub started_at: Epoch,
    /// The pgdyno that crashed it.
    pub pgdyno_version: String,
    /// The server's version.
    pub server_version: String,
    /// The machine.
    pub host: HostFacts,
    /// The storage of PGDATA.
    pub storage: StorageFacts,
}

impl From<&CrashRecord> for CrashView {
    fn from(record: &CrashRecord) -> Self {
        let outcome = &record.outcome;
        let faults: Vec<FaultView> = outcome.faults.iter().map(FaultView::from).collect();
        let names: Vec<&str> = outcome.options.faults.iter().map(|f| f.name()).collect();
        Self {
            id: record.id.clone(),
            run: record.run.clone(),
            treatment: record.treatment,
            name: record.name.clone(),
            verdict: outcome.verdict,
            reason: outcome.reason.clone(),
            fault: names.join(","),
            rounds: faults.iter().map(|f| f.rounds).sum(),
            acknowledged: faults.iter().map(|f| f.acknowledged).sum(),
            lost: faults.iter().map(|f| f.lost).sum(),
            oldest_lost_ms: faults.iter().filter_map(|f| f.oldest_lost_ms).reduce(f64::max),
            recovery_ms: faults.iter().filter_map(|f| f.recovery_ms).reduce(f64::max),
            controls: outcome.controls.clone(),
            faults,
            notes: outcome.notes.clone(),
            complete: outcome.complete,
            seed: outcome.options.seed,
            settings: outcome.settings.clone(),
            started_at: record.started_at,
            pgdyno_version: record.pgdyno_version.clone(),
            server_version: outcome.server_version.clone(),
            host: record.host.clone(),
            storage: record.storage.clone(),
        }
    }
}

/// Crash tests as a page of text.
#[must_use]
pub fn crash(record: &CrashRecord) -> String {
    let outcome = &record.outcome;
    let mut out = String::new();
    let on = match record.storage.filesystem.as_str() {
        "" => String::new(),
        filesystem => format!(" (PGDATA on {filesystem})"),
    };
    let head = format!(
        "{}: PostgreSQL {}, {}{on}; {} clients, seed {}",
        record.id, outcome.server_version, record.name, outcome.options.clients, outcome.options.seed
    );
    paragraph(&mut out, 0, &head);
    out.push('\n');
    let _ = writeln!(out, "{}", faults(&outcome.faults));
    for fault in &outcome.faults {
        out.push('\n');
        let reason = match fault.verdict {
            Verdict::Pass => fault.reason.clone(),
            // Round by round below.
            verdict => {
                let alike = fault.rounds.iter().filter(|r| r.verdict == verdict).count();
                format!("{verdict} in {alike} of {} rounds", fault.rounds.len())
            }
        };
        paragraph(&mut out, 0, &format!("{}: {reason}", fault.fault));
        paragraph(&mut out, 2, &format!("({})", fault.fault.models()));
        unlike_pass(&mut out, fault);
    }
    controls(&mut out, outcome);
    out.push('\n');
    let names: Vec<String> =
        outcome.faults.iter().filter(|f| f.verdict == outcome.verdict).map(|f| f.fault.to_string()).collect();
    let because = match outcome.verdict {
        Verdict::Invalid | Verdict::Unknown => outcome.reason.clone(),
        _ => names.join(", "),
    };
    paragraph(&mut out, 0, &format!("verdict: {}: {because}", outcome.verdict));
    out
}

/// One line a fault.
fn faults(faults: &[FaultOutcome]) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::default()).set_header([
        "fault",
        "rounds",
        "acknowledged",
        "lost",
        "oldest lost ms",
        "recovery ms",
        "verdict",
    ]);
    let ms = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |v| format!("{v:.0}"));
    for fault in faults {
        table.add_row([
            fault.fault.to_string(),
            fault.rounds.len().to_string(),
            fault.acknowledged().to_string(),
            fault.lost().to_string(),
            ms(fault.oldest_lost_ms()),
            ms(fault.recovery_ms()),
            fault.verdict.to_string(),
        ]);
    }
    table.trim_fmt()
}

/// Of each round that did not simply pass: the oracles' words, tokens, log, and where it is kept.
fn unlike_pass(out: &mut String, fault: &FaultOutcome) {
    for round in fault.rounds.iter().filter(|r| r.verdict != Verdict::Pass) {
        let head = format!(
            "round {} (seed {}, during {}): {}",
            round.number,
            round.seed,
            round.aim.name(),
            round.verdict
        );
        paragraph(out, 2, &head);
        for note in &round.notes {
            paragraph(out, 4, note);
        }
        for check in &round.checks {
            let (word, found) = match &check.outcome {
                CheckOutcome::Failed(found) => ("FAILED", found),
                CheckOutcome::Allowed(found) => ("allowed", found),
                CheckOutcome::CouldNotRun(why) => ("could not run", why),
                CheckOutcome::Passed | CheckOutcome::NotApplicable(_) => continue,
            };
            paragraph(out, 4, &format!("{word}: {}: {found}", check.name));
        }
        if round.checks.is_empty() {
            paragraph(out, 4, &round.reason);
        }
        if !round.tokens.is_empty() {
            let named: Vec<String> = round
                .tokens
                .iter()
                .take(NAMED)
                .map(|lost| format!("{} {:.0} ms before", lost.token, lost.age_ms))
                .collect();
            let more = if round.lost > NAMED as u64 { "; …" } else { "" };
            paragraph(out, 4, &format!("lost (client, sequence): {}{more}", named.join("; ")));
        }
        for line in round.log.lines().rev().take(LINES).collect::<Vec<_>>().into_iter().rev() {
            let _ = writeln!(out, "    | {line}");
        }
        if let Some(kept) = &round.kept {
            paragraph(out, 4, &format!("kept: {kept}"));
        }
    }
}

fn controls(out: &mut String, outcome: &CrashOutcome) {
    out.push('\n');
    for control in &outcome.controls {
        let seen = if control.seen { "seen" } else { "NOT SEEN" };
        paragraph(out, 0, &format!("control: {}: {seen}: {}", control.name, control.verdict));
        if !control.seen {
            paragraph(out, 2, &control.reason);
        }
    }
    for note in &outcome.notes {
        paragraph(out, 0, &format!("note: {note}"));
    }
}

/// `text` in lines that begin with `indent` spaces.
fn paragraph(out: &mut String, indent: usize, text: &str) {
    for line in wrap(text, WIDTH - indent, "  ") {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}
