//! A server that does not flush a class of its files: a library preloaded into `postgres` plays it.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use pgdyno_test_support::write_program;

use crate::support::World;

/// The folder of the newest installed programs.
fn bindir() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").unwrap();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|e| e.unwrap().path()).max_by_key(number).unwrap();
    newest.join("bin")
}

/// Programs like the installed ones, but for a `postgres` that does not flush files below `folder`.
pub(crate) fn unflushing(world: &World, folder: &str) -> PathBuf {
    let library = world.path("lying_server.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/lying_server.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .output();
    let compiled = compiled.unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let programs = world.path("bin");
    std::fs::create_dir(&programs).unwrap();
    let installed = bindir();
    for entry in std::fs::read_dir(&installed).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "postgres" {
            symlink(entry.path(), programs.join(entry.file_name())).unwrap();
        }
    }
    let wrapper = format!(
        "#!/bin/sh\nexport PGDYNO_TEST_UNFLUSHED={folder} LD_PRELOAD={}\nexec {} \"$@\"\n",
        library.display(),
        installed.join("postgres").display()
    );
    let postgres = programs.join("postgres");
    write_program(&postgres, &wrapper);
    for path in [&library, &programs] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    programs
}
