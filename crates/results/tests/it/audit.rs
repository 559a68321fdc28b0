//! docs/audit.md: its findings are those of the field reports, in the same words.

use std::fmt::Write as _;

use pgdyno_audit::Audit;
use pgdyno_results::report::audit::{AuditView, Audited};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The field reports in the order of their numbers.
const REPORTS: [&str; 5] = [
    "experiments/figures/ssd-acceptance.txt",
    "experiments/figures/filesystems.txt",
    "experiments/figures/group-commit.txt",
    "crates/audit/tests/fixtures/audit/billion-rows.txt",
    "experiments/figures/zfs-xfs.txt",
];

fn field_reports() -> Vec<Audited> {
    let read = |path: &str| {
        let bytes = std::fs::read(format!("{ROOT}/{path}")).unwrap();
        let (_, name) = path.rsplit_once('/').unwrap();
        (name.to_owned(), Audit::from_bytes(name, &bytes).unwrap(), None)
    };
    REPORTS.map(read).into()
}

fn findings_table() -> String {
    let mut table =
        String::from("| report:line | severity, sure | rule | finding |\n|---|---|---|---|\n");
    for audited in field_reports() {
        let (name, audit, _) = &audited;
        if audit.findings.is_empty() {
            let recognised = audit.recognised.summary();
            let _ = writeln!(table, "| {name} | | | none: {recognised} was recognised |");
        }
        for finding in AuditView::from(std::slice::from_ref(&audited)).findings {
            let (line, rule) = (finding.line, finding.rule);
            let (severity, sure) = (finding.severity.unwrap(), finding.sure.unwrap());
            let message = finding.message.replace('|', "\\|");
            let _ =
                writeln!(table, "| {name}:{line} | {severity}, {sure} | `{rule}` | {message} |");
        }
    }
    table
}

/// With `AUDIT_DOCS=write` the table is written in place of the one that stands there.
#[test]
fn the_findings_of_the_documentation_are_those_of_the_field_reports() {
    let path = format!("{ROOT}/docs/audit.md");
    let docs = std::fs::read_to_string(&path).unwrap();
    let begin = "<!-- field reports: begin -->\n";
    let from = docs.find(begin).unwrap() + begin.len();
    let to = docs.find("<!-- field reports: end -->").unwrap();
    let table = findings_table();
    if std::env::var_os("AUDIT_DOCS").is_some_and(|value| value == "write") {
        std::fs::write(path, format!("{}{table}{}", &docs[..from], &docs[to..])).unwrap();
    } else {
        assert_eq!(&docs[from..to], table, "`just audit-docs` writes the table of docs/audit.md");
    }
}
