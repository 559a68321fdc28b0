//! Stores merged in any order, any number of times, hold the same records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_audit::{Audit, ImportedRun};
use pgdyno_model::Verdict;
use pgdyno_model::units::Epoch;
use pgdyno_report::json;
use pgdyno_store::{Identity, Imported, Merge, Store, StoreError, Stored};
use pgdyno_test_support::records::probes::disk_probe;
use pgdyno_test_support::records::{Random, crash_record, fill, plan, run_record};

/// A store with runs, a probe, crash tests and an import.
fn whole(path: &Path) -> Store {
    let mut store = Store::open(path).unwrap();
    for n in 0..3_u32 {
        let mut record = run_record(plan(1));
        record.id = format!("run-{n}");
        record.started_at = Epoch(record.started_at.0 + u64::from(n));
        fill(&mut store, &record, (n == 1).then_some(2));
    }
    store.add_probe(None, &disk_probe()).unwrap();
    store.add_crash(None, &crash_record(7, Verdict::Pass)).unwrap();
    let text = "number of clients: 8\ntps = 545.536819 (excluding connections establishing)\n";
    let recognised = Audit::from_bytes("report.txt", text.as_bytes()).unwrap().recognised;
    let at = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    let import = ImportedRun::new("report.txt", text.as_bytes(), recognised, at);
    store.add_import(&import).unwrap();
    store
}

/// Every record as `show --json` prints it.
fn contents(store: &Store) -> BTreeMap<String, String> {
    let text = |stored: &Stored| (stored.id().to_owned(), json::stored(store, stored).unwrap());
    store.all_records().unwrap().iter().map(text).collect()
}

fn merge(target: &Path, sources: &[&Path]) -> Result<Vec<Imported>, StoreError> {
    let sources: Vec<Store> =
        sources.iter().map(|path| Store::open_for_reading(path).unwrap()).collect();
    let here = target.exists().then(|| Store::open_for_reading(target).unwrap());
    let mut merge = Merge::default();
    for source in &sources {
        merge.add_store(here.as_ref(), source)?;
    }
    drop(here);
    if target.exists() {
        return merge.write(&mut Store::open(target)?);
    }
    merge.write_new(target, Arc::new(AtomicBool::new(false)))
}

/// Archives with a drawn choice of the records of `store`.
fn parts(store: &Store, folder: &Path, random: &mut Random) -> Vec<PathBuf> {
    let all = store.all_records().unwrap();
    let mut parts = Vec::new();
    for n in 0..3 {
        let chosen: Vec<Stored> = all.iter().filter(|_| random.uniform() < 0.5).cloned().collect();
        let path = folder.join(format!("part-{n}.sqlite3"));
        store.archive(&chosen, &path, Identity::Kept, Arc::new(AtomicBool::new(false))).unwrap();
        parts.push(path);
    }
    // Everything is in some part.
    let path = folder.join("rest.sqlite3");
    let missing: Vec<Stored> = all
        .into_iter()
        .filter(|stored| {
            !parts.iter().any(|part| {
                Store::open_for_reading(part).unwrap().all_records().unwrap().contains(stored)
            })
        })
        .collect();
    store.archive(&missing, &path, Identity::Kept, Arc::new(AtomicBool::new(false))).unwrap();
    parts.push(path);
    parts
}

#[test]
fn parts_of_a_store_merged_in_any_order_are_that_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = whole(&folder.path().join("whole.sqlite3"));
    let expected = contents(&store);
    assert_eq!(expected.len(), 6);
    let mut random = Random(11);
    for round in 0..2 {
        let place = folder.path().join(round.to_string());
        std::fs::create_dir(&place).unwrap();
        let parts = parts(&store, &place, &mut random);
        let before: Vec<Vec<u8>> = parts.iter().map(|part| std::fs::read(part).unwrap()).collect();
        let mut order: Vec<&Path> = parts.iter().map(PathBuf::as_path).collect();
        let (at_once, one_by_one) = (place.join("at-once"), place.join("one-by-one"));
        merge(&at_once, &order).unwrap();
        order.sort_by_cached_key(|_| random.uniform().to_bits());
        for part in &order {
            merge(&one_by_one, &[part]).unwrap();
        }
        for target in [&at_once, &one_by_one] {
            let merged = Store::open_for_reading(target).unwrap();
            assert_eq!(contents(&merged), expected);
            assert!(merged.verify(&[]).unwrap().sound);
        }
        let again = merge(&at_once, &order).unwrap();
        assert!(again.iter().all(|source| source.added.is_empty()), "{again:?}");
        let again = merge(&at_once, &[&one_by_one]).unwrap();
        assert_eq!((again[0].added.len(), again[0].identical.len()), (0, expected.len()));
        let after: Vec<Vec<u8>> = parts.iter().map(|part| std::fs::read(part).unwrap()).collect();
        assert!(before == after, "sources are only read");
    }
}

#[test]
fn a_record_with_other_content_ends_the_merge_and_says_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    drop(whole(&at("a")));
    let mut other = Store::open(at("b")).unwrap();
    for id in ["new", "run-0"] {
        let mut record = run_record(plan(1));
        record.id = id.into();
        record.started_at = Epoch(5);
        fill(&mut other, &record, None);
    }
    drop(other);
    let assert_refused = |target: &str, sources: [&str; 2]| {
        let sources = sources.map(at);
        let error = merge(&at(target), &[&sources[0], &sources[1]]).unwrap_err();
        let StoreError::Differs { id, path, from, parts, others } = error else {
            panic!("{error}");
        };
        assert_eq!((id.as_str(), others.len()), ("run-0", 0));
        assert_eq!((path, from), (sources[0].clone(), sources[1].clone()));
        // It began at another time, and nothing else of it differs.
        assert_eq!(parts, ["plans and sessions"]);
    };
    assert_refused("new", ["a", "b"]);
    assert_refused("new", ["b", "a"]);
    assert!(!at("new").exists());
    let before = std::fs::read(at("a")).unwrap();
    let error = merge(&at("a"), &[&at("b")]).unwrap_err();
    assert!(matches!(error, StoreError::Differs { .. }), "{error}");
    assert!(std::fs::read(at("a")).unwrap() == before, "nothing is written");
}

#[test]
fn lists_of_removed_records_are_joined_and_remove_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    drop(whole(&at("a")));
    std::fs::copy(at("a"), at("b")).unwrap();
    let mut store = Store::open(at("b")).unwrap();
    store.remove(&[Stored::Run("run-0".into())], "rm").unwrap();
    drop(store);
    let first = merge(&at("new"), &[&at("b"), &at("a")]).unwrap();
    assert_eq!(first.iter().map(|source| source.removals).collect::<Vec<_>>(), [1, 0]);
    let again = merge(&at("new"), &[&at("b")]).unwrap();
    assert_eq!(again[0].removals, 0);
    let merged = Store::open_for_reading(at("new")).unwrap();
    assert_eq!(merged.size().unwrap().removed, 1);
    assert_eq!(merged.all_records().unwrap().len(), 6);
    assert!(merged.verify(&[]).unwrap().sound);
}

#[test]
fn a_record_that_another_process_is_writing_is_there_or_not() {
    const RUNS: u32 = 30;
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from.sqlite3"), folder.path().join("to.sqlite3"));
    let mut store = Store::open(&from).unwrap();
    for n in 0..RUNS {
        let mut record = run_record(plan(1));
        record.id = format!("run-{n}");
        fill(&mut store, &record, None);
    }
    drop((store, Store::open(&to).unwrap()));
    let records = Store::open_for_reading(&from).unwrap().all_records().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let from = Store::open_for_reading(&from).unwrap();
            for record in &records {
                let mut one = Merge::default();
                one.add(None, &from, std::slice::from_ref(record)).unwrap();
                one.write(&mut Store::open(&to).unwrap()).unwrap();
            }
        });
        let (from, to) =
            (Store::open_for_reading(&from).unwrap(), Store::open_for_reading(&to).unwrap());
        for record in &records {
            let is_there = || {
                let mut one = Merge::default();
                one.add(Some(&to), &from, std::slice::from_ref(record)).unwrap();
                to.all_records().unwrap().contains(record)
            };
            let patience = Instant::now() + Duration::from_secs(60);
            while !is_there() {
                assert!(Instant::now() < patience, "{} is not written", record.id());
            }
        }
    });
}
