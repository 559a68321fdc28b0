//! States of a recorded stretch of load, in figures and in words.

use pgdyno_model::crash::{
    FailedState, FailureCause, FilePart, MissingFlush, MissingWrite, PageKind, RecordedStretch,
    StateKind, StatesOutcome,
};
use pgdyno_model::ledger::Token;
use pgdyno_text::format;
use serde::Serialize;

/// All states of a recorded stretch of load.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatesView {
    /// The figures.
    #[serde(flatten)]
    pub figures: StatesOutcome,
    /// Sentences: how many states were judged, and what was found in them.
    pub words: Vec<String>,
}

impl From<&StatesOutcome> for StatesView {
    fn from(figures: &StatesOutcome) -> Self {
        Self { figures: figures.clone(), words: words(figures) }
    }
}

fn words(states: &StatesOutcome) -> Vec<String> {
    let StatesOutcome { boundaries, stretch, .. } = states;
    let of = |part: u64, whole: u64| format!("{} of {}", format::count(part), format::count(whole));
    let (judged, total) = states.within_total();
    // Once all others are judged, so are those whose image is another's.
    let is_whole = judged + states.equal_within == total;
    let looked_at = if is_whole { total } else { judged };
    let within = match total {
        0 => String::new(),
        _ => format!(", {} between two flushes", of(looked_at, total)),
    };
    let mut words = vec![format!(
        "{} states at flush boundaries{within}; {} lost of {} acknowledged; {}",
        of(boundaries.judged, boundaries.total),
        format::count(states.lost),
        format::count(stretch.acknowledged),
        format::counted(stretch.checkpoints, "checkpoint"),
    )];
    if total > 0 {
        words.push(kinds(states));
    }
    words.push(format!(
        "the stretch: {} s, {}, {} flushes, a disk log of {} MB",
        format::seconds(stretch.length_ms / 1e3),
        format::counted(stretch.writes, "write"),
        format::count(stretch.flushes),
        stretch.log_bytes.div_ceil(1_000_000)
    ));
    words.push(flush_accounting(stretch));
    let rest =
        "the others were looked at by the ledger's oracles, the sums and a scan of every table";
    words
        .push(format!("every oracle looked at {} of them; {rest}", format::count(states.thorough)));
    words.extend(states.cause.as_ref().map(|it| cause("the first flush boundary that failed", it)));
    words.extend(states.state_ms.map(|ms| times(states, ms)));
    words
}

/// Says which commits were acknowledged before a flush covered them.
fn flush_accounting(stretch: &RecordedStretch) -> String {
    let Some(early) = stretch.early else {
        return "flushes are not accounted for: commits are asynchronous".to_owned();
    };
    let (early, all) = (format::count(early), format::count(stretch.acknowledged));
    let mut words = format!("acknowledged before a flush covered them: {early} of {all}");
    if let Some(known) = stretch.by_record {
        let known = format::count(known);
        words.push_str(&format!(", {known} of them judged by the write of their commit record"));
    }
    let named: Vec<String> = stretch.first_early.iter().map(Token::to_string).collect();
    if !named.is_empty() {
        words.push_str(&format!("; the first: {}", named.join(" ")));
    }
    words
}

/// Says how long a state took, which took `state_ms`, and how many were judged a minute.
fn times(states: &StatesOutcome, state_ms: f64) -> String {
    let mut words = format!("a state took {state_ms:.0} ms (median)");
    if let Some(phases) = states.phases {
        words.push_str(&format!(
            ": mount {:.0}, recovery {:.0}, oracles {:.0}, power cut {:.0}",
            phases.mount_ms, phases.recovery_ms, phases.oracles_ms, phases.cut_ms
        ));
    }
    if let Some(ms) = states.judging_ms.filter(|ms| *ms > 0.0) {
        // One state was judged for all flush boundaries of one image.
        let judged = states.boundaries.judged - states.equal_boundaries + states.within_total().0;
        words.push_str(&format!("; {:.0} states a minute", judged as f64 / ms * 60e3));
    }
    words
}

/// Says which kinds of states between two flushes were looked at, and of how many there are.
fn kinds(states: &StatesOutcome) -> String {
    let looked_at = states.within.iter().filter(|count| count.total > 0);
    let each: Vec<String> = looked_at
        .map(|count| {
            let (judged, total) = (format::count(count.judged), format::count(count.total));
            format!("{} {judged} of {total}", kind_name(count.kind))
        })
        .collect();
    let equal = format!("{} had the image of another state", format::count(states.equal_within));
    let all = match states.within_log2 {
        Some(log) => format!("; subsets of writes that a drive could have left: about 2^{log:.0}"),
        None => String::new(),
    };
    format!("between two flushes, judged: {}; {equal}{all}", each.join(", "))
}

/// Returns the name of a kind of states.
pub(super) fn kind_name(kind: StateKind) -> &'static str {
    match kind {
        StateKind::Boundary => "at a flush",
        StateKind::Subset => "subsets of few writes",
        StateKind::Prefix => "first writes",
        StateKind::Omitted => "one write omitted",
        StateKind::PairOmitted => "two neighbours omitted",
        StateKind::Torn4096 => "torn at 4 KiB",
        StateKind::Torn512 => "torn at 512 bytes",
    }
}

/// Names a state that failed by the events of the disk log.
pub(super) fn named(state: &FailedState) -> String {
    let mut name = match state.newest {
        0 => "the disk before the load".to_owned(),
        newest => format!("the disk with all writes up to event {newest}"),
    };
    state.missing.iter().for_each(|write| name.push_str(&format!(", {}", part(write))));
    match state.until {
        Some(until) => format!("{name} (a cut before event {until})"),
        None => format!("{name} (a cut at the end)"),
    }
}

/// Returns the command that makes an image of a state that failed, in the folder of what was kept.
pub(super) fn image_command(state: &FailedState) -> String {
    format!("pgdyno disk-log disk-log --image state.img{}", options(state))
}

/// Returns the command that judges a state that failed again, in the folder of what was kept.
pub(super) fn judge_command(state: &FailedState) -> String {
    let before = state.until.map_or_else(String::new, |until| format!(" --before {until}"));
    format!("pgdyno crash judge .{}{before}", options(state))
}

/// Returns the options that name a state.
fn options(state: &FailedState) -> String {
    let mut options = format!(" --newest {}", state.newest);
    let omitted = state.missing.iter().filter(|write| write.kept == 0);
    let omitted: Vec<String> = omitted.map(|write| write.number.to_string()).collect();
    if !omitted.is_empty() {
        options.push_str(&format!(" --omit {}", omitted.join(",")));
    }
    for torn in state.missing.iter().filter(|write| write.kept > 0) {
        options.push_str(&format!(" --torn {}:{}", torn.number, torn.kept));
    }
    options
}

fn page_words((kind, position): &(PageKind, u64)) -> String {
    let kind = match kind {
        PageKind::Data => "data page",
        PageKind::Wal => "WAL page",
    };
    format!(" ({kind}, LSN {:X}/{:X})", position >> 32, position & 0xffff_ffff)
}

/// Says how much of a write is there, and which pages it holds.
fn part(write: &MissingWrite) -> String {
    let kept = if write.kept == 0 { "none".to_owned() } else { format!("{} bytes", write.kept) };
    let pages: String = write.pages.iter().map(page_words).collect();
    let files: Vec<String> = write.files.iter().map(file_words).collect();
    let files = if files.is_empty() { String::new() } else { format!(", {}", files.join(", ")) };
    format!("{kept} of write {}{pages}{files}", write.number)
}

/// Names a part of a file; of a table or index by its block.
fn file_words(part: &FilePart) -> String {
    let is_relation = part.file.starts_with("base/") || part.file.starts_with("global/");
    match is_relation {
        true => format!("block {} of {}", part.offset / 8192, part.file),
        false => format!("{} from byte {}", part.file, part.offset),
    }
}

/// Says why `what` failed.
pub(super) fn cause(what: &str, cause: &FailureCause) -> String {
    let FailureCause::Lost { writes, first, flush } = cause else {
        return format!(
            "{what} fails with every write before its cut, too: what is missing had not been sent \
             to the disk"
        );
    };
    let parts: Vec<String> = first.iter().map(part).collect();
    let more = if *writes > first.len() as u64 { ", …" } else { "" };
    let flush = flush.map(|MissingFlush { after, before, token }| {
        format!(
            "; a flush was missing after write {after} and before event {before}, by which {token} \
             was acknowledged"
        )
    });
    format!(
        "{what} fails for want of {} that no flush had covered: {}{more}{}",
        format::counted(*writes, "write"),
        parts.join(", "),
        flush.unwrap_or_default()
    )
}
