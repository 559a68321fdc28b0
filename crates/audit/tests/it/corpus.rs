//! Precision and recall on published reports whose faults were labelled blind.
//!
//! The texts are not ours to keep: `corpus.json` holds their addresses where known, hashes, labels
//! and figures. [`precision_and_recall`] reads the texts from the folder `PGDYNO_AUDIT_CORPUS` and
//! prints a table; `just audit-corpus FOLDER` calls it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pgdyno_audit::{Audit, Finding, Severity, rule_names};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Lines between a label and a finding that mean the same place.
const NEAR: usize = 5;

/// Labels that no rule is meant to find.
const WITHOUT_RULE: &str = "other";

/// Faults that readers labelled and that no rule looks for any more: they count as missed.
const NOT_LOOKED_FOR: &[&str] = &["best-of-n", "claimed-ratio"];

/// Rules that name what is worth knowing and no fault: nothing is labelled for them.
const WITHOUT_LABEL: &[&str] = &["latency-gap"];

/// Rules whose findings and labels stand on one figure each; those of all others hold for a report
/// as a whole.
const OF_A_PLACE: &[&str] = &[
    "transactions",
    "littles-law",
    "statements",
    "scripts",
    "means",
    "ratios",
    "percentages",
    "fsync-arithmetic",
    "command-contradiction",
    "sysbench-command",
    "printed-shares",
    "rate-reached",
    "capped-percentile",
    "sysbench-arithmetic",
    "unsteady-progress",
    "failed-transactions",
    "rising-repeats",
    "told-apart",
];

#[derive(Deserialize)]
struct Corpus {
    reports: Vec<Report>,
}

#[derive(Deserialize)]
struct Report {
    name: String,
    set: String,
    /// Where it is published; none where only its text is known, by its checksum.
    address: Option<String>,
    /// Key by which the split was drawn.
    drawn: String,
    sha256: String,
    labels: Vec<Label>,
    figures: Vec<(usize, String, f64)>,
}

#[derive(Deserialize)]
struct Label {
    rule: String,
    line: usize,
    certain: bool,
}

fn corpus() -> Corpus {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/audit/corpus.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn hexadecimal(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Counts of one rule.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Findings that meet a certain label.
    right: usize,
    /// Findings that meet no label at all.
    wrong: usize,
    /// Certain labels that a finding meets.
    met: usize,
    /// Certain labels that none meets.
    missed: usize,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.met += other.met;
        self.missed += other.missed;
    }

    fn row(self, name: &str) -> String {
        let share = |part: usize, rest: usize| match part + rest {
            0 => "–".to_owned(),
            whole => format!("{:.0}%", 100.0 * part as f64 / whole as f64),
        };
        format!(
            "| {name} | {} | {} | {} | {} | {} |",
            self.met + self.missed,
            self.right,
            self.wrong,
            share(self.right, self.wrong),
            share(self.met, self.missed)
        )
    }
}

/// The rule whose labels a finding answers to.
fn label_of(rule: &str) -> &str {
    match rule {
        "property-contradiction" | "command-contradiction" | "sysbench-command" => "contradiction",
        rule => rule,
    }
}

/// Whether a finding is what was labelled: at its place, or anywhere where either holds for the
/// whole report.
fn meets(finding: &Finding, label: &Label) -> bool {
    label_of(finding.rule) == label.rule
        && (!OF_A_PLACE.contains(&finding.rule)
            || label.line == 1
            || finding.lines.iter().any(|line| line.abs_diff(label.line) <= NEAR))
}

/// Scores the findings of one report; `said` takes what was wrong or missed.
fn score(
    report: &Report,
    findings: &[&Finding],
    said: &mut Vec<String>,
) -> BTreeMap<String, Count> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let (mut seen, mut labelled) = (BTreeSet::new(), BTreeSet::new());
    for finding in findings {
        let whole = !OF_A_PLACE.contains(&finding.rule);
        if WITHOUT_LABEL.contains(&finding.rule) || (whole && !seen.insert(finding.rule)) {
            continue;
        }
        let mut met = report.labels.iter().filter(|label| meets(finding, label)).peekable();
        let count = counts.entry(label_of(finding.rule).to_owned()).or_default();
        if met.peek().is_none() {
            count.wrong += 1;
            let (name, line, rule) = (&report.name, finding.line(), finding.rule);
            said.push(format!("false alarm: {name}:{line} {rule}: {:?}", finding.kind));
        } else if met.any(|label| label.certain) {
            count.right += 1;
        }
    }
    for label in report.labels.iter().filter(|l| l.certain && l.rule != WITHOUT_RULE) {
        let whole = !OF_A_PLACE.contains(&label.rule.as_str()) && label.rule != "contradiction";
        if whole && !labelled.insert(&label.rule) {
            continue;
        }
        let count = counts.entry(label.rule.clone()).or_default();
        if findings.iter().any(|finding| meets(finding, label)) {
            count.met += 1;
        } else {
            count.missed += 1;
            said.push(format!("missed: {}:{} {}", report.name, label.line, label.rule));
        }
    }
    counts
}

/// Precision and recall of each rule on one set, as a table.
fn table(set: &str, folder: &Path, said: &mut Vec<String>) -> String {
    let corpus = corpus();
    let reports: Vec<&Report> = corpus.reports.iter().filter(|r| r.set == set).collect();
    let (mut counts, mut serious) = (BTreeMap::<String, Count>::new(), Count::default());
    let texts = reports.iter().filter_map(|report| {
        // Not every text can be had again.
        let bytes = std::fs::read(folder.join(&report.name)).ok()?;
        Some((report, bytes))
    });
    let mut read = 0;
    for (report, bytes) in texts {
        read += 1;
        assert_eq!(
            hexadecimal(&bytes),
            report.sha256,
            "{} is not the text that was labelled",
            report.name
        );
        let audit = Audit::from_bytes(&report.name, &bytes).unwrap();
        let all: Vec<&Finding> = audit.findings.iter().collect();
        for (rule, count) in score(report, &all, said) {
            counts.entry(rule).or_default().add(count);
        }
        let grave: Vec<&Finding> =
            all.into_iter().filter(|finding| finding.severity != Severity::Note).collect();
        score(report, &grave, &mut Vec::new()).into_values().for_each(|count| serious.add(count));
    }
    assert!(read > 0, "none of the texts is in {}", folder.display());
    let mut total = Count::default();
    counts.values().for_each(|count| total.add(*count));
    let mut lines = vec![
        format!("{set}: {read} of {} reports", reports.len()),
        String::new(),
        "| rule | labels | right | false alarms | precision | recall |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(counts.iter().map(|(rule, count)| count.row(&format!("`{rule}`"))));
    lines.push(total.row("all"));
    lines.push(serious.row("all but notes"));
    lines.join("\n")
}

#[test]
#[ignore = "needs the corpus' texts: just audit-corpus FOLDER"]
fn precision_and_recall() {
    let folder =
        PathBuf::from(std::env::var_os("PGDYNO_AUDIT_CORPUS").expect("PGDYNO_AUDIT_CORPUS"));
    let sets = std::env::var("PGDYNO_AUDIT_SETS").unwrap_or_else(|_| "working".to_owned());
    for set in sets.split(',') {
        let mut said = Vec::new();
        println!("{}\n", table(set, &folder, &mut said));
        said.iter().for_each(|line| println!("{line}"));
    }
}

#[test]
fn the_corpus_is_split_by_where_its_reports_were_found_alone() {
    let corpus = corpus();
    let mut drawn: Vec<&Report> = corpus.reports.iter().filter(|r| r.set != "later").collect();
    drawn.sort_by_key(|report| report.drawn.as_str());
    for (at, report) in drawn.iter().enumerate() {
        assert_eq!(report.set, if at < 20 { "aside" } else { "working" }, "{}", report.name);
    }
    assert!(corpus.reports.len() >= 60);
    let texts: BTreeSet<&str> = corpus.reports.iter().map(|r| r.sha256.as_str()).collect();
    assert_eq!(texts.len(), corpus.reports.len(), "each text is there once");
}

#[test]
fn every_label_names_a_rule_and_the_corpus_holds_no_sentences() {
    let names: BTreeSet<&str> = rule_names().map(label_of).collect();
    for report in corpus().reports {
        for label in &report.labels {
            assert!(
                label.rule == WITHOUT_RULE
                    || NOT_LOOKED_FOR.contains(&label.rule.as_str())
                    || names.contains(label.rule.as_str()),
                "{}: {}",
                report.name,
                label.rule
            );
        }
        assert!(
            report.address.is_none_or(|address| address.starts_with("https://")),
            "{}",
            report.name
        );
        for (line, name, figure) in &report.figures {
            assert!(*line > 0 && !name.contains(' ') && figure.is_finite(), "{}", report.name);
        }
    }
}
