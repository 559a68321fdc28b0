//! docs/audit.md: its table of rules has each rule once.

use pgdyno_audit::rule_names;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md");

#[test]
fn the_table_of_rules_has_each_rule_in_order_with_its_tolerance_and_source() {
    let docs = std::fs::read_to_string(DOCS).unwrap();
    let (_, rules) = docs.split_once("\n## Rules\n").unwrap();
    let (rules, _) = rules.split_once("\n## ").unwrap();
    let rows = rules.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.map(|row| {
        let [name, looks_for, source] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}: not a name, what the rule looks for, and a source")
        };
        assert!(!looks_for.trim().is_empty() && source.len() > " |".len(), "{row}");
        name.trim_end_matches('`')
    });
    assert_eq!(names.collect::<Vec<_>>(), rule_names().collect::<Vec<_>>());
}
