//! Holds that programs are started by `exec` alone.

use std::path::Path;

use crate::{crate_folders, rust_files};

/// Files outside of `exec` that may start a program. `\shell` and `\setshell` of a script run in
/// the midst of a transaction, as in pgbench: the client waits for them itself, and `engine` knows
/// nothing of the host.
const MAY_START: [&str; 1] = ["engine/src/client/shell.rs"];

/// Crates that may start what they like: `test-support` belongs to tests.
const EXEMPT: [&str; 3] = ["exec", "test-support", "xtask"];

/// Whether `text` names `std::process::Command` before its tests begin.
fn starts_programs(text: &str) -> bool {
    let product = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut imports = product.split("use std::process::").skip(1).map(|rest| {
        let end = rest.find(';').unwrap_or(rest.len());
        &rest[..end]
    });
    let is_command = |name: &str| name == "Command" || name == "*";
    product.contains("process::Command")
        || imports
            .any(|names| names.split(|c: char| !c.is_alphanumeric() && c != '*').any(is_command))
}

#[test]
fn exec_alone_starts_programs() {
    let mut read = 0;
    for folder in crate_folders() {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if EXEMPT.contains(&name.as_str()) {
            continue;
        }
        let is_product = |path: &&std::path::PathBuf| !path.ends_with("tests.rs");
        for path in rust_files(&folder.join("src")).iter().filter(is_product) {
            read += 1;
            let file = Path::new(&name).join(path.strip_prefix(&folder).unwrap());
            let file = file.to_str().unwrap();
            let is_allowed = MAY_START.contains(&file);
            assert_eq!(
                starts_programs(&std::fs::read_to_string(path).unwrap()),
                is_allowed,
                "{file} names process::Command: start programs by exec::tool, so that each is \
                 found, waited for and ended in one way"
            );
        }
    }
    assert!(read > 500, "{read} files");
}

#[test]
fn a_command_is_found_by_import_and_by_path_and_not_in_tests() {
    assert!(starts_programs("use std::process::{Child, Command};"));
    assert!(starts_programs("use std::process::Command as Program;"));
    assert!(starts_programs("use std::process; fn f() { process::Command::new(\"x\"); }"));
    assert!(!starts_programs("use std::process::{Child, Stdio}; fn f(_: clap::Command) {}"));
    assert!(!starts_programs("#[cfg(test)] mod tests { use std::process::Command; }"));
}
