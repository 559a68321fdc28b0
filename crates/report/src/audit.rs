//! Renders audits and imported reports for a terminal and as JSON.

use std::fmt::Write as _;

use pgdyno_audit::{
    Audit, Checked, Confidence, Figure, Finding, FsyncLine, ImportedRun, NotUnderstood, PgbenchRun,
    Recognised, Setting, Severity, Table,
};
use pgdyno_text::format;
use serde::Serialize;

use super::text::{plain, wrap};
use crate::prose::finding as prose;

/// Shown length of a quoted line (characters).
const QUOTED: usize = 100;

/// Most lines printed that were not understood; the others are counted.
const SHOWN: usize = 10;

/// A finding of one of several files, or a check that held, which has no weight.
#[derive(Debug, Serialize)]
pub struct Judged<'a> {
    /// Name of the file, as it was given.
    pub file: &'a str,
    /// Name of the rule.
    pub rule: &'static str,
    /// Weight of the finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Certainty of the finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sure: Option<Confidence>,
    /// First of `lines`.
    pub line: usize,
    /// Lines of the report that it is about, from 1.
    pub lines: &'a [usize],
    /// Text of `line`, for a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quoted: Option<&'a str>,
    /// Sentence that says it.
    pub message: String,
    /// Computed figures, by name.
    pub computed: serde_json::Value,
}

impl<'a> Judged<'a> {
    fn from_finding(file: &'a str, finding: &'a Finding) -> Self {
        Self {
            file,
            rule: finding.rule,
            severity: Some(finding.severity),
            sure: Some(finding.sure),
            line: finding.line(),
            lines: &finding.lines,
            quoted: Some(&finding.quoted),
            message: prose::message(&finding.kind, false),
            computed: prose::computed(&finding.kind),
        }
    }

    fn from_check(file: &'a str, checked: &'a Checked) -> Self {
        Self {
            file,
            rule: checked.rule,
            severity: None,
            sure: None,
            line: checked.line(),
            lines: &checked.lines,
            quoted: None,
            message: prose::message(&checked.kind, true),
            computed: prose::computed(&checked.kind),
        }
    }
}

/// A line of one of several files that could not be read.
#[derive(Debug, Serialize)]
pub struct Unread<'a> {
    /// Name of the file, as it was given.
    pub file: &'a str,
    /// Number of the line, from 1.
    pub line: usize,
    /// Text of the line.
    pub quoted: &'a str,
    /// Reason why it could not be read.
    pub why: String,
}

impl<'a> Unread<'a> {
    fn new(file: &'a str, one: &'a NotUnderstood) -> Self {
        let why = prose::reason_not_understood(&one.why);
        Self { file, line: one.line, quoted: &one.quoted, why }
    }
}

/// An audited file.
#[derive(Debug, Serialize)]
pub struct AuditedFile<'a> {
    /// Name of the file, as it was given.
    pub file: &'a str,
    /// Name in the store of the imported figures.
    pub imported: Option<&'a str>,
    /// Recognised figures.
    pub recognised: &'a Recognised,
}

/// Audits of several files, as JSON has them.
#[derive(Debug, Serialize)]
pub struct AuditView<'a> {
    /// Findings, file by file.
    pub findings: Vec<Judged<'a>>,
    /// Passed checks.
    pub checked: Vec<Judged<'a>>,
    /// Lines that could not be read.
    pub not_understood: Vec<Unread<'a>>,
    /// The files.
    pub files: Vec<AuditedFile<'a>>,
}

/// A file's name, its audit, and the name under which its figures were imported.
pub type Audited = (String, Audit, Option<String>);

impl<'a> From<&'a [Audited]> for AuditView<'a> {
    fn from(audits: &'a [Audited]) -> Self {
        Self {
            findings: all(audits, |audit| &audit.findings, Judged::from_finding),
            checked: all(audits, |audit| &audit.checked, Judged::from_check),
            not_understood: all(audits, |audit| &audit.not_understood, Unread::new),
            files: audits
                .iter()
                .map(|(file, audit, imported)| AuditedFile {
                    file,
                    imported: imported.as_deref(),
                    recognised: &audit.recognised,
                })
                .collect(),
        }
    }
}

/// Renders the parts of all audits, each with its file.
fn all<'a, P: 'a, T>(
    audits: &'a [Audited],
    part: fn(&Audit) -> &Vec<P>,
    render: fn(&'a str, &'a P) -> T,
) -> Vec<T> {
    let parts = audits
        .iter()
        .flat_map(|(file, audit, _)| part(audit).iter().map(move |one| render(file, one)));
    parts.collect()
}

/// Renders the audit of one file in lines of at most `width` columns, where words allow it.
pub fn audit((file, audit, imported): &Audited, width: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}: {} recognised", plain(file), audit.recognised.summary());
    for finding in &audit.findings {
        let _ = writeln!(
            out,
            "\n{}:{}: {} ({}, {})",
            plain(file),
            finding.line(),
            finding.severity,
            finding.rule,
            finding.sure
        );
        quote(&mut out, "  | ", &finding.quoted);
        let message = prose::message(&finding.kind, false);
        text(&mut out, "  ", &format!("{message}{}", others(&finding.lines)), width);
    }
    if !audit.checked.is_empty() {
        let _ = writeln!(out, "\nchecked and right:");
        for checked in &audit.checked {
            let message = prose::message(&checked.kind, true);
            let words = format!("line {}, {}: {message}", checked.line(), checked.rule);
            text(&mut out, "  ", &words, width);
        }
    }
    if !audit.not_understood.is_empty() {
        let _ = writeln!(out, "\nnot understood, so not checked:");
        for one in audit.not_understood.iter().take(SHOWN) {
            let why = prose::reason_not_understood(&one.why);
            text(&mut out, "  ", &format!("line {}: {why}", one.line), width);
            quote(&mut out, "  | ", &one.quoted);
        }
        if let Some(more) = audit.not_understood.len().checked_sub(SHOWN).filter(|n| *n > 0) {
            let _ = writeln!(out, "  and {more} more (--json has them)");
        }
    }
    let _ = writeln!(out);
    text(&mut out, "", &verdict(audit), width);
    if let Some(id) = imported {
        let _ = writeln!(out, "imported as {id}");
    }
    out
}

fn quote(out: &mut String, mark: &str, line: &str) {
    if line.is_empty() {
        return;
    }
    let short: String = line.chars().take(QUOTED).collect();
    let more = if short.len() < line.len() { "…" } else { "" };
    let _ = writeln!(out, "{mark}{}{more}", plain(&short));
}

fn text(out: &mut String, indent: &str, words: &str, width: usize) {
    let further = if indent.is_empty() { "" } else { "  " };
    for line in wrap(words, width.saturating_sub(indent.len()), further) {
        let _ = writeln!(out, "{indent}{line}");
    }
}

/// Lists the lines of a finding after the first.
fn others(lines: &[usize]) -> String {
    const MOST: usize = 6;
    let mut rest: Vec<usize> = lines.iter().skip(1).copied().collect();
    rest.sort_unstable();
    rest.dedup();
    if rest.is_empty() || rest.len() > MOST {
        return String::new();
    }
    let many = if rest.len() > 1 { "s" } else { "" };
    let rest: Vec<String> = rest.iter().map(usize::to_string).collect();
    format!(" (line{many} {})", rest.join(", "))
}

/// Sums up the audit in a sentence.
fn verdict(audit: &Audit) -> String {
    let checks = match audit.checked.len() {
        0 => "nothing could be checked against anything else".to_owned(),
        1 => "1 check is right".to_owned(),
        n => format!("{n} checks are right"),
    };
    if audit.recognised.is_empty() {
        return "nothing was recognised, so nothing can be said: neither that it is right nor that \
                it is wrong"
            .to_owned();
    }
    if audit.findings.is_empty() {
        return format!("no finding; {checks}");
    }
    let count = |of: Severity| audit.findings.iter().filter(|f| f.severity == of).count();
    let parts = [Severity::Serious, Severity::Warning, Severity::Note];
    let parts = parts.iter().filter(|s| count(**s) > 0).map(|s| {
        let many = if count(*s) > 1 && *s != Severity::Serious { "s" } else { "" };
        format!("{} {}{many}", count(*s), s)
    });
    format!("findings: {}; {checks}", parts.collect::<Vec<_>>().join(", "))
}

/// Renders imported figures, their provenance first.
pub fn imported(import: &ImportedRun) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", plain(&import.id));
    let _ = writeln!(
        out,
        "imported: pgdyno did not measure this, it read it in {}",
        plain(&import.source)
    );
    let _ = writeln!(out, "on {}, sha256 {}", import.imported_at, plain(&import.sha256));
    let recognised = &import.recognised;
    let _ = writeln!(out, "holds {}", recognised.summary());
    pgbench_runs(&mut out, &recognised.runs);
    for table in &recognised.tables {
        figures(&mut out, table);
    }
    flushes(&mut out, &recognised.fsync);
    if !recognised.settings.is_empty() {
        let _ = writeln!(out);
    }
    for Setting { name, value, line, .. } in &recognised.settings {
        let _ = writeln!(out, "{} = {} (line {line})", plain(name), plain(value));
    }
    out
}

fn value(figure: Option<Figure>) -> String {
    figure.map_or_else(|| "–".to_owned(), |f| f.value.to_string())
}

fn pgbench_runs(out: &mut String, runs: &[PgbenchRun]) {
    if runs.is_empty() {
        return;
    }
    let mut table = rows([
        "line",
        "name",
        "clients",
        "threads",
        "seconds",
        "transactions",
        "tps",
        "latency ms",
    ]);
    for run in runs {
        table.add_row([
            run.line.to_string(),
            plain(run.label.as_deref().unwrap_or("–")),
            value(run.clients),
            value(run.threads),
            value(run.duration_s),
            value(run.transactions),
            value(run.tps_connected()),
            value(run.latency_average_ms),
        ]);
    }
    let _ = writeln!(out, "\npgbench\n{}", table.trim_fmt());
}

/// Renders a table of the report, row by row.
fn figures(out: &mut String, found: &Table) {
    let mut table = rows(["line", "row", "figures", "mean as written", "ratio as written"]);
    for row in &found.rows {
        let figures = row.repeats.iter().chain(row.others.iter().map(|(_, f)| f));
        let figures: Vec<String> = figures.map(|f| f.value.to_string()).collect();
        let (line, label) = (row.line.to_string(), plain(&row.label));
        table.add_row([line, label, figures.join(" "), value(row.mean), value(row.ratio)]);
    }
    let title = if found.tps { "tps" } else { "figures" };
    let _ = writeln!(out, "\n{title}\n{}", table.trim_fmt());
}

/// Renders the lines of `pg_test_fsync`.
fn flushes(out: &mut String, lines: &[FsyncLine]) {
    if lines.is_empty() {
        return;
    }
    let mut table = rows(["line", "pg_test_fsync", "ops/s"]);
    for line in lines {
        let (number, rate) = (line.per_second.line, line.per_second.value);
        table.add_row([number.to_string(), plain(&line.method), format::rate(rate)]);
    }
    let _ = writeln!(out, "\n{}", table.trim_fmt());
}

fn rows<const N: usize>(header: [&str; N]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::TableStyle::default()).set_header(header);
    table
}
