//! Pages of docs/field-reports, and the figures in their prose.

use std::collections::BTreeSet;

use crate::support::docs;

/// Where a page begins to tell of our runs.
const OURS: &str = "**pgdyno's run";

/// A page of docs/field-reports.
pub struct Page {
    name: &'static str,
    /// Questions, what the report found, what a reader computes, and the commands.
    report: String,
    /// Tables that tests make of runs, and commands, below that.
    computed: String,
    /// Everything else below that.
    prose: String,
}

impl Page {
    /// Reads the page `name`.
    pub fn open(name: &'static str) -> Self {
        let path = docs::path(&format!("field-reports/{name}"));
        let text = std::fs::read_to_string(path).unwrap();
        let (report, ours) = text.split_at(text.find(OURS).unwrap());
        let (mut computed, mut prose) = (String::new(), String::new());
        let mut is_made = false;
        for line in ours.lines() {
            is_made |= line.ends_with(": begin -->");
            let part = if is_made || line.starts_with("    ") { &mut computed } else { &mut prose };
            part.push_str(line);
            part.push('\n');
            is_made &= !line.ends_with(": end -->");
        }
        Self { name, report: report.to_owned(), computed, prose }
    }

    /// Checks that the prose has each of `claims`, which were computed from the page's runs.
    pub fn assert_has(&self, claims: &[String]) {
        let words = self.prose.split_whitespace().collect::<Vec<_>>().join(" ");
        let missing: Vec<&String> = claims.iter().filter(|claim| !words.contains(*claim)).collect();
        assert!(missing.is_empty(), "{}: the runs have {missing:#?}", self.name);
    }

    /// Checks [`Self::assert_has`], and that the prose has no other figure but those of the report,
    /// of tables and commands on the page, and `given` ones.
    pub fn assert_computed(&self, claims: &[String], given: &[&str]) {
        self.assert_has(claims);
        let known: BTreeSet<&str> = [&self.report, &self.computed]
            .into_iter()
            .chain(claims)
            .flat_map(|text| figures(text))
            .chain(given.iter().copied())
            .collect();
        let unknown_of = |line: &str| {
            let mut of_line = figures(line);
            of_line.retain(|figure| !known.contains(figure));
            (!of_line.is_empty()).then(|| format!("{}: {line}", of_line.join(" ")))
        };
        let unknown: Vec<String> = self.prose.lines().filter_map(unknown_of).collect();
        assert!(unknown.is_empty(), "{}: not computed from a run: {unknown:#?}", self.name);
    }
}

/// The numbers in a text, as they stand there. Digits in names, such as `ext4` and `p99`, and the
/// targets of links are none.
fn figures(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("](") {
            rest = rest.split_once(')').map_or("", |(_, after)| after);
            before = ')';
            continue;
        }
        if !first.is_ascii_digit() {
            before = first;
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let is_part = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
        let (number, after) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
        if !before.is_alphabetic() && before != '_' {
            out.push(number.trim_end_matches([',', '.']));
        }
        (before, rest) = ('0', after);
    }
    out
}

#[test]
fn figures_are_numbers_that_are_no_part_of_a_name() {
    let text = "ext4 has 1,234.5 tps (95% CI 0.9 to 1.1), p99 of `nr_requests16` [3](a/4.md), 7.";
    assert_eq!(figures(text), ["1,234.5", "95", "0.9", "1.1", "3", "7"]);
}
