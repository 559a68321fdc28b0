//! Holds that the integration tests of a crate are one program, and that it has all their files.

use std::collections::BTreeSet;
use std::path::Path;

use crate::crate_folders;

/// Programs of tests that must be alone in their process or on the machine; their first line says
/// why. At most four.
const ALONE: [&str; 0] = [];

/// Names of the modules in `tests/it`: files, and folders with a `mod.rs`.
fn modules(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_module = |path: &Path| {
        path.join("mod.rs").exists()
            || path.extension().is_some_and(|e| e == "rs") && !path.ends_with("main.rs")
    };
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    entries.filter(|path| is_module(path)).map(|path| name(&path)).collect()
}

#[test]
fn each_crates_integration_tests_are_one_program_that_forgets_no_file() {
    let mut programs = 0;
    for tests in crate_folders().iter().map(|folder| folder.join("tests")) {
        let Ok(entries) = std::fs::read_dir(&tests) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let is_program = path.extension().is_some_and(|e| e == "rs")
                || path.join("main.rs").exists() && !path.ends_with("it");
            if ALONE.iter().any(|alone| path.ends_with(alone)) {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text.starts_with("//! Alone, because "), "{}", path.display());
            } else {
                assert!(!is_program, "{} is a test program: move it to it/", path.display());
            }
        }
        let main = tests.join("it/main.rs");
        let Ok(text) = std::fs::read_to_string(&main) else { continue };
        programs += 1;
        let named = text.lines().filter_map(|l| l.strip_prefix("mod ")?.strip_suffix(';'));
        let named: BTreeSet<String> = named.map(str::to_owned).collect();
        assert_eq!(named, modules(&tests.join("it")), "{}", main.display());
    }
    assert!(programs >= 10, "{programs}");
}
