//! A damaged or hostile store is told, and never shown as if it were whole.

use pgdyno_model::Advice;
use pgdyno_test_support::{records, test_name};
use std::io::Write as _; // past the test runner, which keeps what passing tests print to itself
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pgdyno_analysis::analyse;
use pgdyno_audit::{Audit, ImportedRun};
use pgdyno_model::json::{json, json_list};
use pgdyno_model::{CrashRecord, ProbeRecord, RunRecord, TrialRecord, Verdict};
use pgdyno_report::RunReport;
use pgdyno_store::{CheckedRecord, Merge, RecordState, Store, StoreError, Stored};
use pgdyno_test_support::records::probes::disk_probe;
use pgdyno_test_support::records::{RUN, crash_record, fill, fill_with, plan, run_record, store};
use rusqlite::Connection;

/// A store with a run, its trials and probes, and a crash test and a probe by themselves.
fn filled() -> (tempfile::TempDir, PathBuf) {
    static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let (_folder, path) = filled_by(|store| fill(store, &run_record(plan(1)), Some(1)));
        std::fs::read(path).unwrap()
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    std::fs::write(&path, &*WHOLE).unwrap();
    (folder, path)
}

/// A store as [`filled`] makes, with the run that `add` makes.
fn filled_by(add: impl FnOnce(&mut Store)) -> (tempfile::TempDir, PathBuf) {
    let (folder, mut store) = store();
    add(&mut store);
    let crash = crash_record(0, Verdict::Pass);
    let crash = CrashRecord { run: None, treatment: None, id: "crash-by-itself".into(), ..crash };
    store.add_crash(None, &crash).unwrap();
    let probe = ProbeRecord { run: None, id: "probe-by-itself".into(), ..disk_probe() };
    store.add_probe(None, &probe).unwrap();
    let path = store.path().to_owned();
    (folder, path)
}

/// All that commands show of a store, or why they refuse to.
fn shown(path: &Path) -> Result<Vec<String>, StoreError> {
    let store = Store::open_existing(path)?;
    let mut all = vec![json_list(&store.runs()?).unwrap(), json_list(&store.probes()?).unwrap()];
    all.push(json_list(&store.crashes()?).unwrap());
    all.extend(figures(path)?);
    Ok(all)
}

/// All that reports show of a store.
fn figures(path: &Path) -> Result<Vec<String>, StoreError> {
    let store = Store::open_existing(path)?;
    let mut all = Vec::new();
    all.push(json(&RunReport::read(&store, RUN)?).unwrap());
    all.push(format!("{:?}", store.crash("crash-by-itself")?));
    all.push(format!("{:?}", store.probe("probe-by-itself")?));
    Ok(all)
}

/// Where the last of `before` begin to differ from `after`.
fn first_change(before: &[String], after: &[String]) -> String {
    let last = &before[before.len() - after.len()..];
    let Some((was, is)) = last.iter().zip(after).find(|(was, is)| was != is) else {
        return String::new();
    };
    let at = was.bytes().zip(is.bytes()).take_while(|(was, is)| was == is).count();
    let near = |text: &str| {
        String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(80)..text.len().min(at + 80)])
            .into_owned()
    };
    format!("{} became {}", near(was), near(is))
}

/// Whether `pgdyno verify` finds damage, or cannot even open the file.
fn is_found(path: &Path) -> bool {
    Store::open_existing(path)
        .and_then(|store| store.verify(&[]))
        .map_or(true, |found| !found.sound)
}

/// Changes the store's rows behind pgdyno's back: without the triggers, which are put back.
fn tamper(path: &Path, sql: &str) {
    let raw = Connection::open(path).unwrap();
    let triggers: Vec<(String, String)> = raw
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    raw.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    for (name, _) in &triggers {
        raw.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    raw.execute_batch(sql).unwrap();
    triggers.iter().for_each(|(_, sql)| raw.execute_batch(sql).unwrap());
}

/// Takes out of a store what the scripts after the sixth made.
fn make_version_6(path: &Path) {
    make_version(
        path,
        6,
        &[
            "seal",
            "unsealed",
            "second_histogram",
            "removal",
            "thinning",
            "arrival",
            "second_command",
        ],
    );
}

/// Takes `tables`, which later scripts made, out of a store.
fn make_version(path: &Path, version: u32, tables: &[&str]) {
    let each = |what: &str| tables.iter().map(|table| what.replace('?', table)).collect::<String>();
    let (drop_all, empty) = (each("DROP TABLE ?;"), each("CREATE TABLE ? (x);"));
    // Triggers are put back on tables of these names.
    tamper(path, &format!("{drop_all} {empty} PRAGMA user_version = {version};"));
    Connection::open(path).unwrap().execute_batch(&drop_all).unwrap();
}

#[test]
fn a_store_of_version_8_keeps_its_checksums_and_can_be_thinned_and_emptied() {
    // That version counted no commands by the second.
    let without_commands = |trial: &mut TrialRecord| {
        let seconds = trial.measurement.iter_mut().flat_map(|m| &mut m.series);
        seconds.for_each(|second| second.commands.clear());
    };
    let (_folder, path) = filled_by(|store| {
        fill_with(store, &run_record(plan(1)), without_commands);
    });
    let before = shown(&path).unwrap();
    make_version(&path, 8, &["removal", "thinning", "arrival", "second_command"]);
    assert_eq!(shown(&path).unwrap(), before);
    let mut store = Store::open(&path).unwrap();
    let found = store.verify(&[]).unwrap();
    assert!(found.records.iter().all(|r| r.state == RecordState::Sound), "{found:?}");
    let every = std::num::NonZeroU32::new(2).unwrap();
    assert!(!store.thin(&[RUN.to_owned()], every).unwrap().is_empty());
    assert!(store.verify(&[]).unwrap().sound);
    let records = store.all_records().unwrap();
    store.remove(&records, "rm").unwrap();
    store.compact().unwrap();
    let found = store.verify(&[]).unwrap();
    assert!(found.sound && found.records.len() == 1, "{found:?}");
    assert_eq!(found.records[0].kind, "removals");
}

#[test]
fn a_store_that_nobody_touched_is_sound() {
    let (_folder, path) = filled();
    let found = Store::open_existing(&path).unwrap().verify(&[]).unwrap();
    assert!(found.sound && found.file.is_empty(), "{found:?}");
    assert_eq!(found.records.len(), 3);
    assert!(found.records.iter().all(|r| r.state == RecordState::Sound && r.rows > 0), "{found:?}");
    let one = Store::open_existing(&path).unwrap().verify(&[RUN.to_owned()]).unwrap();
    assert_eq!((one.records.len(), one.records[0].id.as_str()), (1, RUN));
    let none = Store::open_existing(&path).unwrap().verify(&["nobody".to_owned()]);
    assert!(matches!(none, Err(StoreError::UnknownRun { .. })));
}

#[test]
fn each_changed_byte_is_found_or_changes_nothing_that_is_shown() {
    assert_changes_are_found(50);
}

#[test]
#[ignore = "long: three thousand changed bytes"]
fn each_of_many_changed_bytes_is_found_or_changes_nothing_that_is_shown() {
    assert_changes_are_found(3_000);
}

/// Changes `count` bytes of a store, each in a copy of its own.
fn assert_changes_are_found(count: usize) {
    let (folder, path) = filled();
    let whole = std::fs::read(&path).unwrap();
    let before = shown(&path).unwrap();
    let copy = folder.path().join("copy.sqlite3");
    // Bytes that hold something, evenly over the whole file, and each with another change.
    let places: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] != 0).collect();
    let stride = (places.len() / count).max(1);
    let (mut found, mut harmless) = (0, 0);
    for (n, &at) in places.iter().step_by(stride).enumerate() {
        let mut bytes = whole.clone();
        bytes[at] ^= [1, 2, 0x10, 0x80][n % 4];
        std::fs::write(&copy, &bytes).unwrap();
        // Reports never show other figures, whether or not anybody asks for a check.
        if let Ok(after) = figures(&copy) {
            let same = before.ends_with(&after);
            assert!(same, "byte {at} shows other figures: {}", first_change(&before, &after));
        }
        if is_found(&copy) {
            found += 1;
            continue;
        }
        harmless += 1;
        let after = shown(&copy);
        assert!(after.as_ref().is_ok_and(|after| *after == before), "byte {at}: {after:?}");
    }
    assert!(
        found > count * 2 / 3,
        "{found} found, {harmless} harmless: a check that finds nothing"
    );
}

/// Indexes by which reports find the rows of a run.
const INDEXES: [&str; 5] = [
    "session_by_run",
    "trial_by_run",
    "fsync_rate_by_run",
    "probe_record_by_run",
    "crash_record_by_run",
];

/// Changes the first page of the index `name`: `change` is given the page, and the places where the
/// run's name is. The rows themselves are whole.
fn change_index(name: &str, path: &Path, change: impl Fn(&mut [u8], &[usize])) {
    let store = Connection::open(path).unwrap();
    let number = |sql: &str| store.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap() as usize;
    let size = number("PRAGMA page_size");
    let root = number(&format!("SELECT rootpage FROM sqlite_schema WHERE name = '{name}'"));
    drop(store);
    let mut bytes = std::fs::read(path).unwrap();
    let page = &mut bytes[(root - 1) * size..root * size];
    let places: Vec<usize> =
        (0..page.len()).filter(|&at| page[at..].starts_with(RUN.as_bytes())).collect();
    assert!(!places.is_empty(), "{name}");
    change(page, &places);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn rows_that_an_index_hides_are_missed() {
    for index in INDEXES {
        let (_folder, path) = filled();
        change_index(index, &path, |page, places| {
            places.iter().for_each(|at| page[at + RUN.len() - 1] ^= 1);
        });
        let shown = figures(&path);
        assert!(matches!(shown, Err(StoreError::Damaged { .. })), "{index}: {shown:?}");
        assert!(is_found(&path), "{index}");
    }
}

#[test]
fn what_an_index_says_of_a_row_is_not_shown() {
    for index in INDEXES {
        let (_folder, path) = filled();
        let before = figures(&path).unwrap();
        // The row that was added last, and lies first, is still found: what comes before the run's
        // name, and not where it should, is taken for it.
        change_index(index, &path, |page, places| page[places[0] + RUN.len() - 2] -= 1);
        let after = figures(&path);
        assert!(after.as_ref().map_or(true, |after| *after == before), "{index}: {after:?}");
        assert!(is_found(&path), "{index}");
    }
}

#[test]
fn figures_that_were_changed_are_not_shown() {
    for (part, sql) in [
        (
            "trial",
            "UPDATE trial SET measurement = json_set(measurement, '$.transactions', 9)
             WHERE id = 1",
        ),
        ("second", "UPDATE second SET transactions = transactions + 1 WHERE trial = 1 AND t_s = 2"),
        ("second", "DELETE FROM second WHERE trial = 1 AND t_s = 3"),
        (
            "second_histogram",
            "UPDATE second_histogram SET counts = X'010101' WHERE trial = 1 AND t_s = 2",
        ),
        ("second_histogram", "DELETE FROM second_histogram WHERE trial = 1"),
        (
            "second_command",
            "UPDATE second_command SET done = '[[1,2]]' WHERE trial = 1 AND t_s = 2",
        ),
        (
            "histogram",
            "UPDATE histogram SET v2 = zeroblob(length(v2)) WHERE trial = 1 AND scope = 'trial'",
        ),
        ("setting", "UPDATE setting SET value = 'off' WHERE trial = 1 AND position = 0"),
        ("sample", "UPDATE sample SET readings = '[1]' WHERE position = 0"),
        (
            "trial",
            "UPDATE trial SET id = -id WHERE id < 3; UPDATE trial SET id = 3 + id WHERE id < 0",
        ),
        ("trial", "DELETE FROM trial WHERE id = 1"),
        (
            "trial",
            "INSERT INTO trial
                 (run, session, ordinal, block, treatment, repeat, started_at, measurement)
             SELECT run, session, ordinal, block, treatment, repeat, started_at, measurement
             FROM trial WHERE id = 1",
        ),
        ("seal", "DELETE FROM seal WHERE position = 2"),
        (
            "seal",
            "UPDATE seal SET position = -1 - position WHERE position IN (2, 3);
             UPDATE seal SET position = CASE position WHEN -3 THEN 3 ELSE 2 END WHERE position < 0",
        ),
        ("run", "UPDATE run SET experiment = experiment || ' '"),
        ("run", "DELETE FROM seal WHERE part = 'run'"),
    ] {
        let (_folder, path) = filled();
        tamper(&path, sql);
        let store = Store::open_existing(&path).unwrap();
        let found = store.verify(&[RUN.to_owned()]).unwrap();
        let record = &found.records[0];
        assert_eq!((found.sound, record.state), (false, RecordState::Damaged), "{sql}");
        let is_named = record.damage.iter().any(|damage| damage.part == part);
        assert!(is_named, "{sql}: {:?}", record.damage);
        let refused = analyse(&store, RUN).unwrap_err();
        assert!(matches!(refused, StoreError::Damaged { .. }), "{sql}: {refused}");
        assert!(refused.help().unwrap().contains("pgdyno verify"), "{sql}");
        // What is whole is shown all the same.
        store.crash("crash-by-itself").unwrap();
    }
}

#[test]
fn a_change_in_any_stored_column_is_found() {
    let (folder, path) = filled_by(|store| {
        fill(store, &run_record(plan(1)), Some(1));
        store.extend_run(RUN, pgdyno_model::units::Epoch(2), &[], &plan(2)).unwrap();
        let every = std::num::NonZeroU32::new(2).unwrap();
        fill_with(store, &RunRecord { id: "thinned".into(), ..run_record(plan(1)) }, |_| ());
        store.thin(&["thinned".to_owned()], every).unwrap();
        let text = "number of clients: 8\ntps = 545.536819 (excluding connections establishing)\n";
        let recognised = Audit::from_bytes("a.txt", text.as_bytes()).unwrap().recognised;
        let now = std::time::SystemTime::UNIX_EPOCH;
        store.add_import(&ImportedRun::new("a.txt", text.as_bytes(), recognised, now)).unwrap();
        let gone = ProbeRecord { run: None, id: "gone".into(), ..disk_probe() };
        store.add_probe(None, &gone).unwrap();
        store.remove(&[Stored::Probe("gone".into())], "rm").unwrap();
    });
    let merged = folder.path().join("merged.sqlite3");
    let source = Store::open_for_reading(&path).unwrap();
    let mut merge = Merge::default();
    merge.add_store(None, &source).unwrap();
    merge.write_new(&merged, std::sync::Arc::default()).unwrap();
    assert!(!is_found(&merged));
    let whole = std::fs::read(&merged).unwrap();
    let copy = folder.path().join("copy.sqlite3");
    let columns: Vec<(String, String, String)> = Connection::open(&merged)
        .unwrap()
        .prepare(
            "SELECT t.name, c.name, c.type FROM sqlite_schema t JOIN pragma_table_info(t.name) c
             WHERE t.type = 'table' AND t.name NOT IN ('seal', 'unsealed')",
        )
        .unwrap()
        .query_map([], |row| row.try_into())
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(columns.len() > 100, "{}", columns.len());
    for (table, column, kind) in columns {
        std::fs::write(&copy, &whole).unwrap();
        let other = match kind.as_str() {
            "TEXT" => format!("coalesce({column}, '') || ' '"),
            "BLOB" => "X'00'".to_owned(),
            _ => format!("coalesce({column}, 0) + 1000"),
        };
        // The last row alone: keys stay unique.
        let last = format!("SELECT {column} FROM {table} ORDER BY {column} DESC LIMIT 1");
        let change = format!(
            "PRAGMA ignore_check_constraints = ON;
             UPDATE {table} SET {column} = {other} WHERE {column} IS ({last})"
        );
        tamper(&copy, &change);
        let found = Store::open_existing(&copy).unwrap().verify(&[]).unwrap();
        let is_damaged = |record: &CheckedRecord| record.state == RecordState::Damaged;
        assert!(found.records.iter().any(is_damaged), "{table}.{column}");
    }
}

#[test]
fn probes_crash_tests_and_runs_that_are_gone_are_missed() {
    let (_folder, path) = filled();
    tamper(&path, "UPDATE probe_record SET storage = storage || ' ' WHERE id = 'probe-by-itself'");
    tamper(&path, "DELETE FROM crash_record WHERE id = 'crash-by-itself'");
    let store = Store::open_existing(&path).unwrap();
    assert!(matches!(store.probe("probe-by-itself"), Err(StoreError::Damaged { .. })));
    let found = store.verify(&[]).unwrap();
    let states: Vec<(&str, &str, RecordState)> =
        found.records.iter().map(|r| (r.id.as_str(), r.kind, r.state)).collect();
    assert!(states.contains(&("crash-by-itself", "missing", RecordState::Damaged)), "{states:?}");
    assert!(states.contains(&("probe-by-itself", "probe", RecordState::Damaged)), "{states:?}");
    assert!(states.contains(&(RUN, "run", RecordState::Sound)), "{states:?}");
}

#[test]
fn what_was_stored_before_checksums_is_said_to_have_none_and_is_shown() {
    let (_folder, path) = filled();
    let before = shown(&path).unwrap();
    make_version_6(&path);
    assert_eq!(shown(&path).unwrap(), before);
    let store = Store::open_existing(&path).unwrap();
    let found = store.verify(&[]).unwrap();
    assert!(found.sound, "{found:?}");
    assert!(
        found
            .records
            .iter()
            .all(|r| r.state == RecordState::NotChecksummed && r.not_checksummed > 0)
    );
    // What comes later has checksums.
    assert!(!store.is_writable(), "what reads leaves the file as it is");
    let mut store = Store::open(&path).unwrap();
    let session = store.begin_session(RUN, &records::session_record()).unwrap();
    store.end_session(session, pgdyno_model::record::SessionEnd::Completed).unwrap();
    let found = store.verify(&[RUN.to_owned()]).unwrap();
    assert_eq!(
        (found.sound, found.records[0].state, found.records[0].rows),
        (true, RecordState::Partly, 2)
    );
}

#[test]
fn a_store_that_brings_code_or_nonsense_is_refused_without_a_panic() {
    let refused = |sql: &str| {
        let (_folder, path) = filled();
        let raw = Connection::open(&path).unwrap();
        raw.execute_batch(sql).unwrap();
        drop(raw);
        shown(&path).unwrap_err()
    };
    for sql in [
        "CREATE TRIGGER theirs AFTER INSERT ON session
             BEGIN SELECT load_extension('/tmp/x.so'); END",
        "DROP VIEW result; CREATE VIEW result AS SELECT 1 AS run",
        "DROP TRIGGER trial_no_update",
        "ALTER TABLE second RENAME TO third; CREATE VIEW second AS SELECT * FROM third",
    ] {
        let error = refused(sql);
        assert!(matches!(error, StoreError::Corrupt { .. }), "{sql}: {error}");
    }
    for value in ["'{'", "'[]'", "printf('%.*c', 3000000, '[')", "'{\"kernel\": 1}'"] {
        let (_folder, path) = filled();
        tamper(&path, &format!("UPDATE session SET host = {value}"));
        assert!(shown(&path).is_err(), "{value}");
        assert!(is_found(&path), "{value}");
    }
    let (_folder, path) = filled();
    tamper(
        &path,
        "UPDATE histogram SET v2 = randomblob(300 << 20) WHERE scope = 'trial' AND trial = 1",
    );
    assert!(matches!(shown(&path), Err(StoreError::Sqlite { .. })), "300 MB in one value");
}

#[test]
fn views_and_indexes_of_the_users_own_are_let_be() {
    let (_folder, path) = filled();
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(
        "CREATE VIEW mine AS SELECT tps FROM trial; CREATE INDEX faster ON trial (ordinal)",
    )
    .unwrap();
    drop(raw);
    shown(&path).unwrap();
    assert!(!is_found(&path));
}

#[test]
fn a_store_that_others_may_change_is_read_and_never_written() {
    let test = test_name!();
    if !rustix::process::geteuid().is_root() {
        let _ = writeln!(std::io::stderr(), "\nskipped: {test}: needs root to give a file away");
        return;
    }
    let (folder, path) = filled();
    let before = shown(&path).unwrap();
    for version in [10, 6] {
        if version == 6 {
            make_version_6(&path);
        }
        std::os::unix::fs::chown(folder.path(), Some(65534), None).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut store = Store::open_existing(&path).unwrap();
        assert!(!store.is_writable());
        assert_eq!(shown(&path).unwrap(), before, "version {version}");
        if version == 10 {
            assert!(store.begin_session(RUN, &records::session_record()).is_err());
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "version {version}");
        let others: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(others.len(), 1, "nothing is put beside it: {others:?}");
        std::os::unix::fs::chown(folder.path(), Some(0), None).unwrap();
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
}
