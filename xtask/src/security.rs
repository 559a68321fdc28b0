//! Holds that each test which the threat model names as evidence exists.

use std::path::Path;

use crate::root;

/// Returns the tests that a row of `docs/security.md` names as `PATH`: `TEST`, `TEST`; `PATH`: ….
fn named_tests(row: &str) -> Vec<(String, String)> {
    let mut file = String::new();
    let words = row.split('`').skip(1).step_by(2);
    let mut named = Vec::new();
    for word in words {
        if Path::new(word).extension().is_some_and(|extension| extension == "rs") {
            word.clone_into(&mut file);
        } else if !file.is_empty() {
            named.push((file.clone(), word.to_owned()));
        }
    }
    named
}

#[test]
fn each_row_of_the_threat_model_names_tests_that_exist() {
    let text = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (_, table) = text.split_once("## Who may do what").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 30, "{} rows", rows.len());
    for row in rows {
        let tests = named_tests(row.rsplit('|').nth(1).unwrap());
        assert!(!tests.is_empty(), "names no test: {row}");
        for (file, test) in tests {
            let source =
                std::fs::read_to_string(root().join("crates").join(&file)).unwrap_or_default();
            let exists = source.contains(&format!("#[test]\nfn {test}()"));
            assert!(exists, "{file} has no test `{test}`");
        }
    }
}
