//! A server that leaves out flushes of a class of its files: a library that is preloaded into
//! `postgres` plays it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgdyno_test_support::wrap_postgres;

use crate::support::World;

/// The folder of the newest installed programs.
fn bindir() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").unwrap();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|e| e.unwrap().path()).max_by_key(number).unwrap();
    newest.join("bin")
}

/// Programs like the installed ones, but for a `postgres` that leaves out one flush in `one_in` of
/// the files below `folder`; 1: all of them.
pub(crate) fn unflushing(world: &World, folder: &str, one_in: u32) -> PathBuf {
    lying(world, &format!("PGDYNO_TEST_UNFLUSHED={folder} PGDYNO_TEST_ONE_IN={one_in}"))
}

/// Programs like the installed ones, but for a `postgres` that never flushes one segment of WAL in
/// `one_in`: see [`is_unkept_segment`].
pub(crate) fn unflushing_segments(world: &World, one_in: u32) -> PathBuf {
    lying(world, &format!("PGDYNO_TEST_ONE_SEGMENT_IN={one_in}"))
}

/// Whether a `postgres` that does not flush one segment in `one_in` does not flush `file`, a path
/// below PGDATA.
pub(crate) fn is_unkept_segment(file: &str, one_in: u32) -> bool {
    let name = file.strip_prefix("pg_wal/").filter(|name| name.len() == 24);
    let number = name.and_then(|name| u32::from_str_radix(&name[16..], 16).ok());
    number.is_some_and(|number| number % one_in == 0)
}

/// Programs like the installed ones, but for a `postgres` into which the library is preloaded, with
/// `variables` in its environment.
fn lying(world: &World, variables: &str) -> PathBuf {
    let library = world.path("lying_server.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/lying_server.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .output();
    let compiled = compiled.unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    std::fs::set_permissions(&library, PermissionsExt::from_mode(0o755)).unwrap();
    let (installed, programs) = (bindir(), world.path("bin"));
    let wrapper = format!(
        "#!/bin/sh\nexport {variables}\nexport LD_PRELOAD={}\nexec {} \"$@\"\n",
        library.display(),
        installed.join("postgres").display()
    );
    wrap_postgres(&installed, &programs, &wrapper);
    programs
}
