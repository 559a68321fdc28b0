//! docs/audit.md: its tables are what the rules and the fixtures say.

use std::fmt::Write as _;

use pgdyno_audit::rules;

use super::fixture;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md");

/// The field reports in the order of their numbers.
const REPORTS: [&str; 5] = [
    "ssd-acceptance.txt",
    "filesystems.txt",
    "group-commit.txt",
    "billion-rows.txt",
    "zfs-xfs.txt",
];

fn rules_table() -> String {
    let mut table = String::from("| rule | looks for | stands on |\n|---|---|---|\n");
    for rule in rules() {
        let _ = writeln!(table, "| `{}` | {} | {} |", rule.name, rule.looks_for, rule.source);
    }
    table
}

fn findings_table() -> String {
    let mut table =
        String::from("| report:line | severity, sure | rule | finding |\n|---|---|---|---|\n");
    let lower = |what: &dyn std::fmt::Debug| format!("{what:?}").to_lowercase();
    for name in REPORTS {
        let audit = fixture(name);
        if audit.findings.is_empty() {
            let _ = writeln!(
                table,
                "| {name} | | | none: {} was recognised |",
                audit.recognised.summary()
            );
        }
        for f in &audit.findings {
            let (severity, sure) = (lower(&f.severity), lower(&f.sure));
            let message = f.message.replace('|', "\\|");
            let _ = writeln!(
                table,
                "| {name}:{} | {severity}, {sure} | `{}` | {message} |",
                f.line, f.rule
            );
        }
    }
    table
}

/// What stands between the marks of `name`; with `AUDIT_DOCS=write` it is put there.
fn compare(name: &str, table: &str) {
    let docs = std::fs::read_to_string(DOCS).unwrap();
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let from = docs.find(&begin).unwrap() + begin.len();
    let to = docs.find(&end).unwrap();
    if std::env::var_os("AUDIT_DOCS").is_some_and(|v| v == "write") {
        std::fs::write(DOCS, format!("{}{table}{}", &docs[..from], &docs[to..])).unwrap();
    } else {
        assert_eq!(
            &docs[from..to],
            table,
            "`just audit-docs` writes the tables of docs/audit.md anew"
        );
    }
}

#[test]
fn the_tables_of_the_documentation_are_true() {
    compare("rules", &rules_table());
    compare("field reports", &findings_table());
}
