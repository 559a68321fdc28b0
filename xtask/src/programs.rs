//! Holds that programs are started by `exec` alone.

use syn::visit::{self, Visit};
use syn::{Item, UseTree};

use crate::source::{CrateSource, attributes_of, is_test_only};
use crate::{crate_folders, name_of};

/// Files outside of `exec` that may start a program. `\shell` and `\setshell` of a script run in
/// the midst of a transaction, as in pgbench: the client waits for them itself, and `engine` knows
/// nothing of the host.
const MAY_START: [&str; 1] = ["engine/src/client/shell.rs"];

/// Looks for `std::process::Command` in code that is not for tests alone.
#[derive(Default)]
struct Finder {
    found: bool,
}

impl Finder {
    fn find_in(items: &[Item]) -> bool {
        let mut finder = Self::default();
        items.iter().for_each(|item| finder.visit_item(item));
        finder.found
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast Item) {
        // A module's files are read by themselves.
        if !is_test_only(attributes_of(item)) && !matches!(item, Item::Mod(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.found |= names.windows(2).any(|pair| pair == ["process", "Command"]);
        visit::visit_path(self, path);
    }

    fn visit_use_path(&mut self, path: &'ast syn::UsePath) {
        self.found |= path.ident == "process" && brings_command(&path.tree);
        visit::visit_use_path(self, path);
    }
}

fn brings_command(tree: &UseTree) -> bool {
    match tree {
        UseTree::Name(name) => name.ident == "Command",
        UseTree::Rename(rename) => rename.ident == "Command",
        UseTree::Group(group) => group.items.iter().any(brings_command),
        UseTree::Glob(_) => true,
        UseTree::Path(_) => false,
    }
}

#[test]
fn exec_alone_starts_programs() {
    // Tests start what they like; `test-support` is theirs.
    let folders = crate_folders().unwrap();
    let others = folders.iter().filter(|f| !["exec", "test-support"].contains(&&*name_of(f)));
    for folder in others {
        let source = CrateSource::read(folder).unwrap();
        for module in source.modules.iter().filter(|module| Finder::find_in(&module.items)) {
            let file = format!("{}/{}", name_of(folder), source.files[module.file].display());
            assert!(
                MAY_START.contains(&file.as_str()),
                "{file} names process::Command: start programs by exec::tool, so that each is \
                 found, waited for and ended in one way"
            );
        }
    }
}

#[test]
fn a_command_is_found_by_import_and_by_path_and_not_in_tests() {
    let finds = |text: &str| Finder::find_in(&syn::parse_file(text).unwrap().items);
    assert!(finds("use std::process::{Child, Command};"));
    assert!(finds("use std::process; fn f() { process::Command::new(\"x\"); }"));
    assert!(!finds("use std::process::{Child, Stdio}; fn f(_: clap::Command) {}"));
    assert!(!finds("#[cfg(test)] mod tests { use std::process::Command; }"));
}
