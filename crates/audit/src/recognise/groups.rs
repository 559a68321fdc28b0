//! Which runs are repeats of one thing, and which only warm up.
//!
//! Nobody writes it down in one way. Runs are repeats where the same command printed the same
//! parameters, and where all that stands between them only counts, or stood right above the run
//! before as well. Anything else between two runs may have changed something, and be it SQL.

use std::collections::BTreeSet;

use super::command::Command;
use super::pgbench_run::PgbenchRun;
use super::scan::Scan;
use super::sysbench::SysbenchRun;
use crate::words::{self, Words};

/// Place of a run of a load generator, and its parameters.
pub(crate) struct Span {
    /// First line, with the progress lines above the report.
    pub(crate) first_line: usize,
    /// First line of the report.
    pub(super) line: usize,
    pub(crate) last_line: usize,
    /// All that makes two runs equal, as far as it is printed.
    pub(super) parameters: String,
    /// Version that printed it, where it says so.
    pub(super) version: Option<String>,
}

/// Lines above the first run that may introduce it.
const ABOVE: usize = 12;

/// Runs that are repeats of each other: indices into `spans`. Warm-ups are in none.
pub(super) fn groups(
    scan: &Scan<'_>,
    spans: &[Span],
    commands: &[Command],
    warm_ups: &BTreeSet<usize>,
) -> Vec<Vec<usize>> {
    let options =
        |span: &Span| commands.iter().rev().find(|c| c.line < span.line).map(|c| &c.options);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut before: Option<usize> = None;
    for (at, span) in spans.iter().enumerate() {
        if warm_ups.contains(&span.line) {
            continue;
        }
        let follows = before.is_some_and(|earlier| {
            let versions = spans[earlier].version.as_ref().zip(span.version.as_ref());
            spans[earlier].parameters == span.parameters
                && options(&spans[earlier]) == options(span)
                && versions.is_none_or(|(a, b)| a == b)
                && introduction(scan, spans, earlier).ends_with(&introduction(scan, spans, at))
        });
        match groups.last_mut() {
            Some(group) if follows => group.push(at),
            _ => groups.push(vec![at]),
        }
        before = Some(at);
    }
    groups
}

/// Returns the lines above a run that are neither a number of it nor a time.
fn introduction(scan: &Scan<'_>, spans: &[Span], at: usize) -> Vec<String> {
    let lines = preamble(scan, spans, at).into_iter().filter(|text| !counts_runs(text));
    lines.map(without_times).filter(|text| !text.is_empty()).collect()
}

/// Runs that only warm up, by their first lines: a heading says so.
pub(super) fn warm_ups(scan: &Scan<'_>, spans: &[Span]) -> BTreeSet<usize> {
    let is_warm_up =
        |at: &usize| preamble(scan, spans, *at).last().is_some_and(|text| names_warm_up(text));
    (0..spans.len()).filter(is_warm_up).map(|at| spans[at].line).collect()
}

/// Lines between a run and the one before that no recogniser has read, fences left out.
fn preamble<'a>(scan: &'a Scan<'_>, spans: &[Span], at: usize) -> Vec<&'a str> {
    let from = match at.checked_sub(1) {
        Some(before) => spans[before].last_line,
        None => spans[at].line.saturating_sub(ABOVE),
    };
    let between =
        scan.lines.iter().enumerate().filter(|(_, l)| l.number > from && l.number < spans[at].line);
    between
        .filter(|(i, l)| {
            let text = l.text.trim();
            !(scan.read[*i] || text.is_empty() || text.starts_with("```") || is_prompt(text))
        })
        .map(|(_, l)| l.text.trim())
        .collect()
}

/// A shell's prompt with nothing behind it: `root@host:/data$`.
fn is_prompt(text: &str) -> bool {
    const LONGEST: usize = 80;
    text.len() <= LONGEST && text.contains('@') && text.ends_with(['$', '#', ':', '%', '>'])
}

/// The line without times of day and dates.
fn without_times(text: &str) -> String {
    let is_time = |word: &&str| {
        let word = word.trim_matches(['[', ']', '(', ')', ',']);
        let parts: Vec<&str> =
            word.split([':', '-', 'T', '.', '+', 'Z']).filter(|p| !p.is_empty()).collect();
        word.contains([':', '-'])
            && parts.len() >= 2
            && parts.iter().all(|p| p.bytes().all(|b| b.is_ascii_digit()))
    };
    text.split_whitespace().filter(|word| !is_time(word)).collect::<Vec<_>>().join(" ")
}

/// A heading that names a warm-up, and does not only speak of one.
fn names_warm_up(text: &str) -> bool {
    const LONGEST: usize = 60;
    const NAMES: Words = Words("warmup|warm-up|warm up|warming|прогрев|预热|aufwärm|rozehř");
    const OTHERWISE: Words =
        Words("after|without|no warm|with|follow|then|incl|nach |ohne|после|без|后|post");
    let lower = text.to_lowercase();
    lower.chars().count() <= LONGEST && NAMES.any_in(&lower) && !OTHERWISE.any_in(&lower)
}

/// Names that people give a run.
const NAMES: Words = Words(
    "run|repeat|repetition|iteration|iter|round|pass|trial|attempt|try|test|time|durchlauf|lauf|\
     прогон|запуск|попытка|pokus|měření|tentative|intento",
);

/// How they count without digits.
const ORDINALS: Words = Words(
    "first|second|third|fourth|fifth|1st|2nd|3rd|once|again|another|první|druhé|třetí|erster|\
     zweiter|dritter|первый|второй|третий",
);

/// Words beside such a number that name nothing.
const FILLERS: Words =
    Words("of|no|number|the|pgbench|benchmark|sysbench|result|results|output|and|more|one");

/// `Run 2`, `=== 3rd repeat ===`, `pgbench, run 2 of 3`: a heading that only counts.
pub(super) fn counts_runs(text: &str) -> bool {
    let lower = words::heading(text).to_lowercase();
    let words: Vec<&str> = words::split(&lower);
    let is_number = |word: &str| {
        let digits =
            ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
        !digits.is_empty() && digits.len() <= 2 && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let counts = |word: &str| is_number(word) || ORDINALS.has(word);
    words.len() <= 6
        && words.iter().any(|w| NAMES.has(w))
        && words.iter().any(|w| counts(w))
        && words.iter().all(|w| counts(w) || NAMES.has(w) || FILLERS.has(w))
}

impl From<&PgbenchRun> for Span {
    fn from(run: &PgbenchRun) -> Self {
        Self {
            first_line: run.progress.first().map_or(run.line, |progress| progress.at_s.line),
            line: run.line,
            last_line: run.last_line,
            parameters: run.parameters(),
            version: run.version.clone(),
        }
    }
}

impl From<&SysbenchRun> for Span {
    fn from(run: &SysbenchRun) -> Self {
        Self {
            first_line: run.progress.first().map_or(run.line, |progress| progress.at_s.line),
            line: run.line,
            last_line: run.last_line,
            parameters: format!("{:?} {:?}", run.threads.map(|t| t.value), run.has_writes()),
            version: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_that_count_and_headings_that_name() {
        for counts in
            ["## Run 1", "=== 3rd repeat ===", "pgbench, run 2 of 3:", "Second run", "run again"]
        {
            assert!(counts_runs(counts), "{counts}");
        }
        for names in ["## ext4", "Run with fsync off", "Test 2: tuned", "1", "runs", "run"] {
            assert!(!counts_runs(names), "{names}");
        }
        assert_eq!(
            without_times("[07:24:51] CHECKPOINT done"),
            without_times("[07:34:53] CHECKPOINT done")
        );
        assert_ne!(without_times("shared_buffers = 128MB"), without_times("shared_buffers = 1GB"));
        assert!(names_warm_up("=== WARMUP ===") && !names_warm_up("After a warm-up of 60 s"));
    }
}
