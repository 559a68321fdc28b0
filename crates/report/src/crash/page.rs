//! Renders crash tests for a terminal.

use std::fmt::Write as _;

use comfy_table::{Table, TableStyle};
use pgdyno_model::crash::{
    CheckOutcome, Control, CrashOutcome, FaultOutcome, Round, StatesOutcome, Verdict,
};
use pgdyno_model::{CrashRecord, Fault};
use pgdyno_text::format;

use super::super::text::wrap;
use super::states::{cause, image_command, judge_command, named};
use super::{FilesystemsView, PowerView, StatesView};

const WIDTH: usize = 100;
const NONE: &str = "–";
/// Lost tokens that a page names (count).
const NAMED: usize = 5;
/// Lines of a log that a page quotes (count).
const LINES: usize = 8;
/// Help on testing a real drive, where the test could be mistaken for one.
const YOUR_DRIVE: &str = "to test a drive of your own: `pgdyno fsync DIR` tells whether it \
                          acknowledges from a cache, `pgdyno crash --fault plug --witness HOST` \
                          what it loses";

/// Renders crash tests as a page of text.
///
/// `is_there` tells whether a folder of kept files still exists.
pub fn crash(record: &CrashRecord, is_there: &dyn Fn(&str) -> bool) -> String {
    let outcome = &record.outcome;
    let mut out = String::new();
    let on = match record.storage.filesystem.as_str() {
        "" => String::new(),
        filesystem => format!(" (PGDATA on {filesystem})"),
    };
    let head = format!(
        "{}: PostgreSQL {}, {}{on}; {} clients, seed {}",
        record.id,
        outcome.server_version,
        record.name,
        outcome.options.clients,
        outcome.options.seed
    );
    paragraph(&mut out, 0, &head);
    out.push('\n');
    match &outcome.states {
        Some(states) => all_states(&mut out, states, is_there),
        None => {
            let _ = writeln!(out, "{}", faults(&outcome.faults));
        }
    }
    for fault in &outcome.faults {
        out.push('\n');
        one(&mut out, fault, is_there);
    }
    controls(&mut out, outcome);
    out.push('\n');
    paragraph(&mut out, 0, &format!("verdict: {}: {}", outcome.verdict, because(outcome)));
    out
}

/// Writes one fault: its verdict, its detection power, its model, and rounds that did not simply
/// pass.
fn one(out: &mut String, fault: &FaultOutcome, is_there: &dyn Fn(&str) -> bool) {
    let reason = match fault.verdict {
        Verdict::Pass => fault.reason.clone(),
        Verdict::Invalid | Verdict::Unknown | Verdict::Partial | Verdict::BoundedLoss => {
            format!("{}: {}", fault.verdict, fault.reason)
        }
        // Round by round below.
        verdict => {
            let failed = |r: &&Round| r.verdict.failing() == verdict.failing();
            let alike = fault.rounds.iter().filter(failed).count();
            format!(
                "{verdict} in {alike} of {}",
                format::counted(fault.rounds.len() as u64, "round")
            )
        }
    };
    paragraph(out, 0, &format!("{}: {reason}", fault.fault));
    if fault.fault.tests_storage() {
        for line in PowerView::new(fault).words {
            paragraph(out, 2, &line);
        }
    }
    for line in FilesystemsView::new(fault.rounds.iter()).into_iter().flat_map(|view| view.words) {
        paragraph(out, 2, &line);
    }
    paragraph(out, 2, &format!("({})", fault.fault.models()));
    if fault.fault == Fault::EmulatedLie {
        paragraph(out, 2, YOUR_DRIVE);
    }
    let unlike_pass = fault.rounds.iter().filter(|r| r.verdict != Verdict::Pass);
    for round in unlike_pass {
        let Round { number, seed, verdict, .. } = round;
        let head = format!("round {number} (seed {seed}, during {}): {verdict}", round.aim.name());
        // A round that failed as it was meant to takes one line.
        if matches!(fault.verdict, Verdict::AsPlanted(_)) {
            paragraph(out, 2, &format!("{head}: {}", round.reason));
        } else {
            paragraph(out, 2, &head);
            details(out, round);
        }
        if let Some(kept) = &round.kept {
            let gone = if is_there(kept) { "" } else { " (not there any more)" };
            paragraph(out, 4, &format!("kept: {kept}{gone}"));
        }
    }
}

/// Writes all states of a stretch: what was judged, and the first states that failed.
fn all_states(out: &mut String, states: &StatesOutcome, is_there: &dyn Fn(&str) -> bool) {
    for (n, line) in StatesView::from(states).words.iter().enumerate() {
        paragraph(out, if n == 0 { 0 } else { 2 }, line);
    }
    for failed in &states.failures {
        paragraph(out, 2, &format!("{}: {}", named(failed), failed.verdict));
        paragraph(out, 4, &failed.reason);
        let why = failed.cause.as_ref().map(|found| cause("it", found));
        why.into_iter().for_each(|why| paragraph(out, 4, &why));
        quote(out, &failed.log);
        if states.kept.as_deref().is_some_and(is_there) {
            paragraph(out, 4, &format!("again: `{}`", judge_command(failed)));
            paragraph(out, 4, &format!("as an image: `{}`", image_command(failed)));
        }
    }
    if let Some(kept) = &states.kept {
        let gone = if is_there(kept) { "" } else { " (not there any more)" };
        paragraph(out, 2, &format!("kept: {kept}{gone}"));
        if gone.is_empty() && !states.failures.is_empty() {
            let there = "the commands above, given in that folder, judge a state again and make an \
                         image of it, to be mounted with `mount -o loop` (xfs: `-o loop,nouuid`)";
            paragraph(out, 2, there);
        }
    }
}

/// Returns the reason that stands after the session's verdict.
fn because(outcome: &CrashOutcome) -> String {
    let Some(gravest) = outcome.gravest() else { return outcome.reason.clone() };
    match outcome.verdict {
        Verdict::Invalid | Verdict::Unknown => outcome.reason.clone(),
        Verdict::AsPlanted(_) if !gravest.says_something_of_the_server() => {
            format!(
                "{} fails on every server, which says nothing about a drive of yours",
                gravest.fault
            )
        }
        Verdict::AsPlanted(_) => {
            format!("{} failed, which the experiment expects ([[crash.planted]])", gravest.fault)
        }
        verdict => {
            let alike = outcome.faults.iter().filter(|f| f.verdict == verdict);
            alike.map(|f| f.fault.name()).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Renders a table with one line for each fault.
fn faults(faults: &[FaultOutcome]) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::default()).set_header([
        "fault",
        "rounds",
        "acknowledged",
        "lost",
        "oldest lost ms",
        "median of rounds",
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
            ms(fault.median_lost_ms()),
            ms(fault.recovery_ms()),
            fault.verdict.to_string(),
        ]);
    }
    table.trim_fmt()
}

/// Writes a round that did not simply pass: the oracles' notes, tokens and log.
fn details(out: &mut String, round: &Round) {
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
        let tokens = round.tokens.iter().take(NAMED);
        let named: Vec<String> =
            tokens.map(|lost| format!("{} {:.0} ms before", lost.token, lost.age_ms)).collect();
        let more = if round.lost > NAMED as u64 { "; …" } else { "" };
        paragraph(out, 4, &format!("lost (client, sequence): {}{more}", named.join("; ")));
    }
    quote(out, &round.log);
}

/// Writes the last lines of a log.
fn quote(out: &mut String, log: &str) {
    for line in log.lines().rev().take(LINES).collect::<Vec<_>>().into_iter().rev() {
        let _ = writeln!(out, "    | {line}");
    }
}

fn controls(out: &mut String, outcome: &CrashOutcome) {
    out.push('\n');
    for (at, control) in outcome.controls.iter().enumerate() {
        // One round may be the control of several faults.
        let alike = |other: &&Control| {
            Control { fault: None, ..(*other).clone() }
                == Control { fault: None, ..control.clone() }
        };
        if outcome.controls[..at].iter().any(|other| alike(&other)) {
            continue;
        }
        let faults: Vec<&str> = outcome
            .controls
            .iter()
            .filter(alike)
            .filter_map(|c| c.fault)
            .map(Fault::name)
            .collect();
        let of = match faults.as_slice() {
            [] => String::new(),
            [only] if control.name.starts_with(only) => String::new(),
            faults => format!(" (for {})", faults.join(", ")),
        };
        let seen = if control.seen { "seen" } else { "NOT SEEN" };
        paragraph(out, 0, &format!("control: {}{of}: {seen}: {}", control.name, control.verdict));
        if !control.seen {
            paragraph(out, 2, &control.reason);
        }
    }
    for note in &outcome.notes {
        paragraph(out, 0, &format!("note: {note}"));
    }
}

/// Writes `text` in lines that begin with `indent` spaces.
fn paragraph(out: &mut String, indent: usize, text: &str) {
    for line in wrap(text, WIDTH - indent, "  ") {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}
