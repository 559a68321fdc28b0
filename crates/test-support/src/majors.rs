//! Major versions of PostgreSQL whose pgbench ours is compared with.

use std::path::{Path, PathBuf};

use crate::skip;

const MAJORS: std::ops::RangeInclusive<u32> = 15..=18;

/// Returns the folders of programs that the test named `test` compares with, oldest version first.
///
/// The first tier of tests has one version: the newest that the distribution installed. Where
/// `PGDYNO_TEST_POSTGRESQL` names a folder that `.ci/postgresql` filled, all versions take part.
/// A version that is wanted and missing is reported as skipped.
pub fn pgbench_folders(test: &str) -> Vec<(u32, PathBuf)> {
    let Some(fetched) = std::env::var_os("PGDYNO_TEST_POSTGRESQL") else {
        let newest = MAJORS.rev().find_map(|major| Some((major, debian_folder(major)?)));
        if newest.is_none() {
            skip(test, "no installed pgbench to compare with");
        }
        return newest.into_iter().collect();
    };
    let find = |major: u32| {
        let fetched = Path::new(&fetched).join(major.to_string()).join("bin");
        let folder = if is_complete(&fetched) { Some(fetched) } else { debian_folder(major) };
        if folder.is_none() {
            skip(test, &format!("no pgbench {major} to compare with (.ci/postgresql fetches it)"));
        }
        Some((major, folder?))
    };
    MAJORS.filter_map(find).collect()
}

fn debian_folder(major: u32) -> Option<PathBuf> {
    let folder = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
    is_complete(&folder).then_some(folder)
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres", "psql", "pgbench"].iter().all(|program| folder.join(program).exists())
}
