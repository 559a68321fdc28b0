//! Experiment files of earlier versions: each must still be read and planned.
//!
//! The files in `tests/fixtures/experiments/VERSION` are the recipes of that version, and one file
//! with most keys. They never change: a new version gets a folder of its own.

use std::path::PathBuf;

use crate::Prepared;
use crate::file::{self, Source};
use crate::host::NoDevices;

fn fixtures() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/experiments/0.1.0");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn experiment_files_of_earlier_versions_are_planned_in_every_size() {
    let files = fixtures();
    assert_eq!(files.len(), 10);
    for path in files {
        let source = Source::read(&path).unwrap();
        let prepared = Prepared::new(source.clone(), Vec::new(), &NoDevices);
        let prepared = prepared.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(!prepared.plan.trials.is_empty(), "{}", path.display());
        for size in file::sizes(&source).unwrap() {
            let planned = Prepared::new(source.clone(), size.overrides, &NoDevices);
            assert!(planned.is_ok(), "{} at size {}", path.display(), size.name);
        }
    }
}

#[test]
fn every_key_of_an_earlier_version_has_its_meaning() {
    let path = fixtures().into_iter().find(|path| path.ends_with("many-keys.toml")).unwrap();
    let source = Source::read(&path).unwrap();
    let Prepared { experiment, plan, .. } = Prepared::new(source, Vec::new(), &NoDevices).unwrap();
    assert_eq!((plan.seed, plan.treatments.len()), (7, 6));
    assert_eq!(experiment.load.options.rate, Some(500.0));
    assert_eq!(plan.loading.partitions, 2);
    assert_eq!(experiment.crash.unwrap().rounds, 2);
}
