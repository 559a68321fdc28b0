//! Holds the width of lines, and the first words of documentation, in all Rust files.

use crate::{root, rust_files};

/// Folders that hold the repository's Rust files.
const FOLDERS: [&str; 3] = ["crates", "fuzz/fuzz_targets", "xtask"];
/// Width of the widest line (characters).
const WIDTH: usize = 100;
/// Words that name neither a thing nor an action.
const EMPTY_WORDS: [&str; 3] = ["What", "The same", "Its"];

/// Returns the faults of `text`, each as `LINE: fault: remedy`.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let width = line.chars().count();
        if width > WIDTH {
            faults.push(format!("{number}: {width} columns: break the line, at most {WIDTH} fit"));
        }
        if let Some(word) = empty_word(line) {
            faults.push(format!(
                "{number}: documentation begins with `{word}`: begin with a verb or the thing's \
                 name, and reflow if the sentence began on the line before"
            ));
        }
    }
    faults
}

/// Returns the empty word that `line` begins with, if it is a line of documentation.
fn empty_word(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?.trim_start();
    let is_first = |word: &str| {
        text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    EMPTY_WORDS.into_iter().find(|word| is_first(word))
}

#[test]
fn no_line_is_too_wide_and_no_documentation_begins_with_an_empty_word() {
    let root = root();
    let mut found = Vec::new();
    for folder in FOLDERS {
        let files = rust_files(&root.join(folder));
        assert!(!files.is_empty(), "{folder} holds no Rust files");
        for path in files {
            let file = path.strip_prefix(&root).unwrap_or(&path).display();
            let text = std::fs::read_to_string(&path).unwrap();
            found.extend(faults(&text).into_iter().map(|fault| format!("{file}:{fault}")));
        }
    }
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_wide_line_and_an_empty_first_word_are_found_and_others_are_not() {
    let wide = "é".repeat(WIDTH + 1);
    let lines = |text: &str| -> Vec<String> {
        let places = faults(text).into_iter().map(|f| f.split(':').next().unwrap().to_owned());
        places.collect()
    };
    assert_eq!(lines(&format!("{}\n{wide}\n", &wide[2..])), ["2"]);
    assert_eq!(lines("//! What it is.\n    /// Its name.\n/// The same.\n"), ["1", "2", "3"]);
    assert!(lines("/// Whatever.\n// What for?\n/// Returns it.\n/// Itself.\n").is_empty());
}
