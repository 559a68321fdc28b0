//! The store keeps what it is given, and only that.

use pgdyno_audit::{Audit, ImportedRun};
use pgdyno_model::crash::Failing;
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::record::{RunState, SessionEnd, SessionRecord};
use pgdyno_model::{Advice, LevelValue, TrialRecord, Verdict};
use pgdyno_store::{Hold, Store, StoreError, Stored};
use pgdyno_test_support::records::probes::disk_probe;
use pgdyno_test_support::records::{
    RUN, crash_record, failed_trial, fill, filled, fsync_probe, fsync_rate, plan, run_record,
    session_record, store, trial,
};
use rusqlite::Connection;

#[test]
fn everything_comes_back_as_it_was_stored() {
    let (_folder, store) = filled(plan(2), Some(3));
    let record = run_record(plan(2));
    let path = store.path().to_owned();
    drop(store);

    let store = Store::open_existing(path).unwrap();
    assert_eq!(store.run(RUN).unwrap(), record);
    let sessions = store.sessions(RUN).unwrap();
    assert_eq!(sessions.len(), 1);
    assert_eq!((&sessions[0].1, sessions[0].2), (&session_record(), Some(SessionEnd::Failed)));
    assert_eq!(store.fsync_rates(RUN).unwrap(), [fsync_rate()]);
    let probe = fsync_probe();
    assert_eq!(store.probe(&probe.id).unwrap(), probe);
    let trials = store.trials(RUN).unwrap();
    let expected: Vec<TrialRecord> = record
        .plan
        .trials
        .iter()
        .map(|p| if p.ordinal == 3 { failed_trial(*p) } else { trial(&record.plan, *p) })
        .collect();
    assert_eq!(trials.len(), expected.len());
    for (stored, given) in trials.iter().zip(&expected) {
        assert!(stored == given, "trial {} differs", given.ordinal);
    }
    let second = &trials[0].measurement.as_ref().unwrap().series[1];
    assert_eq!(second.latencies.as_ref().unwrap().count(), second.transactions);
    let histogram = &trials[0].measurement.as_ref().unwrap().scripts[0].statements[2].latency;
    assert!(
        histogram.count() > 0
            && histogram.count() == trials[0].measurement.as_ref().unwrap().transactions
    );
    assert_eq!(store.completed_trials(RUN).unwrap(), [0, 1, 2, 4, 5, 6, 7].into());
}

/// Returns an import of a file of these bytes; the figures are equal for all.
fn imported(bytes: &str) -> ImportedRun {
    let text = "number of clients: 8\n\
                tps = 545.536819 (excluding connections establishing)\n\
                fsync = off\n";
    let recognised = Audit::from_bytes("a.txt", text.as_bytes()).unwrap().recognised;
    let at = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_790_000_000);
    ImportedRun::new("reports/A b.txt", bytes.as_bytes(), recognised, at)
}

#[test]
fn imported_figures_come_back_are_kept_once_and_are_no_runs() {
    let (_folder, mut store) = store();
    let text = "number of clients: 8\n\
                tps = 545.536819 (excluding connections establishing)\n\
                fsync = off\n";
    let audit = Audit::from_bytes("a.txt", text.as_bytes()).unwrap();
    let at = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_790_000_000);
    let import = |text: &str| {
        ImportedRun::new("reports/A b.txt", text.as_bytes(), audit.recognised.clone(), at)
    };
    let first = import(text);
    assert!(first.id.starts_with("import-a-b-2026") && first.sha256.len() == 64, "{}", first.id);
    assert_eq!(store.add_import(&first).unwrap(), first.id);
    let later = ImportedRun { id: "import-later".into(), ..first.clone() };
    assert_eq!(store.add_import(&later).unwrap(), first.id, "the same figures of the same file");
    assert_eq!(store.import(&first.id).unwrap(), first);

    let other = imported("another report");
    store.add_import(&other).unwrap();
    let listed = store.imports().unwrap();
    assert_eq!((listed.len(), listed[1].holds.as_str()), (2, "1 pgbench report, 1 setting"));
    assert_eq!(store.resolve_any(&first.id).unwrap(), Stored::Imported(first.id.clone()));
    assert!(matches!(store.resolve_any("import-"), Err(StoreError::AmbiguousRun { .. })));
    assert!(matches!(store.resolve_any("latest"), Err(StoreError::NoRuns { .. })));
    assert_eq!(store.runs().unwrap(), []);
}

#[test]
fn service_time_comes_back_and_is_shown_beside_latency() {
    let mut plan = plan(2);
    for treatment in &mut plan.treatments {
        treatment.options.rate = Some(LoadRate::Constant(100.0));
    }
    let (_folder, store) = filled(plan.clone(), None);
    let first = &store.trials(RUN).unwrap()[0];
    let given = trial(&plan, plan.trials[0]);
    assert!(*first == given && first.measurement.as_ref().unwrap().service.is_some());
    let report = pgdyno_report::RunReport::read(&store, RUN).unwrap();
    let view = &report.view;
    assert!(view.treatments.iter().all(|t| t.service_us.is_some()));
    let statement = &view.treatments[0].statements[0];
    let (whole, first) =
        (statement.latency_us.as_ref().unwrap(), statement.first_byte_us.as_ref().unwrap());
    assert!(first.p50 < whole.p50 && first.count == whole.count);
    let told = pgdyno_report::terminal(&report, 160, pgdyno_report::Detail::Full);
    assert!(told.contains("service p99") && told.contains("when a transaction was due"), "{told}");
}

#[test]
fn a_store_of_version_1_opens_with_its_histograms() {
    let (folder, store) = filled(plan(1), None);
    let old = folder.path().join("old.sqlite3");
    {
        // What version 1 had is what the first script makes, filled from the new one.
        let raw = Connection::open(&old).unwrap();
        raw.execute_batch("PRAGMA foreign_keys = off").unwrap();
        raw.execute_batch(include_str!("../../migrations/0001.sql")).unwrap();
        raw.execute("ATTACH ? AS new", [store.path().to_str().unwrap()]).unwrap();
        for table in ["run", "session", "session_end", "second", "setting", "server_log"] {
            let columns: String = raw
                .query_row("SELECT group_concat(name) FROM pragma_table_info(?)", [table], |r| {
                    r.get(0)
                })
                .unwrap();
            raw.execute_batch(&format!(
                "INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}"
            ))
            .unwrap();
        }
        let columns: String = raw
            .query_row("SELECT group_concat(name) FROM pragma_table_info('trial')", [], |r| {
                r.get(0)
            })
            .unwrap();
        raw.execute_batch(&format!(
            "INSERT INTO trial ({columns}) SELECT {columns} FROM new.trial;
             INSERT INTO histogram SELECT * FROM new.histogram WHERE scope <> 'first_byte';
             PRAGMA user_version = 1; PRAGMA application_id = {};",
            i32::from_be_bytes(*b"pgdy")
        ))
        .unwrap();
    }
    let opened = Store::open_existing(old).unwrap();
    let (new, old) = (store.trials(RUN).unwrap(), opened.trials(RUN).unwrap());
    assert_eq!(new.len(), old.len());
    for (new, old) in new.iter().zip(&old) {
        let (new, old) = (new.measurement.as_ref().unwrap(), old.measurement.as_ref().unwrap());
        assert!(new.latency == old.latency);
        assert!(new.series.iter().all(|second| second.latencies.is_some()));
        assert!(old.series.iter().all(|second| second.latencies.is_none()));
        let (new, old) = (&new.scripts[0].statements[0], &old.scripts[0].statements[0]);
        assert!(
            new.latency == old.latency && new.first_byte.count() > 0 && old.first_byte.count() == 0
        );
    }
}

#[test]
fn no_row_can_be_changed_or_removed() {
    let (_folder, mut store) = filled(plan(1), Some(3));
    store.add_import(&imported("a report")).unwrap();
    store.extend_run(RUN, pgdyno_model::units::Epoch(2), &[], &plan(2)).unwrap();
    let raw = Connection::open(store.path()).unwrap();
    raw.execute_batch(&format!(
        "INSERT INTO removal VALUES (1, 'gone', 'run', 0, '0', 'rm');
         INSERT INTO thinning VALUES (1, '{RUN}', 0, '0', 60, 1, 1);
         INSERT INTO arrival VALUES (1, '{RUN}', 'archive', 0, '0');"
    ))
    .unwrap();
    let tables: Vec<String> = raw
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(tables.len(), 22, "{tables:?}");
    for table in tables {
        let rows: i64 =
            raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).unwrap();
        assert!(rows > 0, "{table} is empty");
        let column: String = raw
            .query_row("SELECT name FROM pragma_table_info(?) LIMIT 1", [&table], |r| r.get(0))
            .unwrap();
        for change in
            [format!("UPDATE {table} SET {column} = {column}"), format!("DELETE FROM {table}")]
        {
            let error = raw.execute(&change, []).unwrap_err().to_string();
            assert!(error.contains("append-only"), "{change}: {error}");
        }
    }
}

#[test]
fn plain_sql_finds_results_by_level_and_counters_by_name() {
    let (_folder, store) = filled(plan(3), None);
    let record = run_record(plan(3));
    let raw = Connection::open(store.path()).unwrap();
    let (level, trials, tps): (i64, i64, f64) = raw
        .query_row(
            "SELECT levels ->> '$.clients', count(*), avg(tps) FROM result
             WHERE levels ->> '$.synchronous_commit' = 'off' GROUP BY 1 ORDER BY 1 DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    let expected: f64 = record
        .plan
        .trials
        .iter()
        .filter(|p| p.treatment == 3)
        .map(|p| trial(&record.plan, *p).measurement.unwrap().tps().unwrap())
        .sum::<f64>()
        / 3.0;
    assert_eq!((level, trials), (8, 3));
    assert!((tps - expected).abs() < 1e-6);
    let sum: i64 = raw.query_row("SELECT sum(transactions) FROM second", [], |r| r.get(0)).unwrap();
    let whole: i64 =
        raw.query_row("SELECT sum(transactions) FROM trial", [], |r| r.get(0)).unwrap();
    assert_eq!(sum, whole);
    let unit: String = raw
        .query_row(
            "SELECT DISTINCT unit FROM telemetry_value WHERE name = 'wal_bytes' AND value > 0",
            [],
            |r| r.get(0),
        )
        .unwrap();
    assert_eq!(unit, "bytes");
}

#[test]
fn a_trial_that_cannot_be_read_back_is_not_stored_at_all() {
    let (_folder, mut store) = store();
    let record = run_record(plan(1));
    store.begin_run(&record).unwrap();
    let session = store.begin_session(RUN, &session_record()).unwrap();
    let mut bad = trial(&record.plan, record.plan.trials[0]);
    bad.measurement.as_mut().unwrap().measured_s = f64::NAN;
    let error = store.add_trial(RUN, session, &bad).unwrap_err();
    assert!(matches!(error, StoreError::Unstorable { .. }), "{error}");
    // The second of that number twice: the failure comes late in the transaction.
    let mut bad = trial(&record.plan, record.plan.trials[0]);
    bad.measurement.as_mut().unwrap().series[4].t_s = 0;
    let error = store.add_trial(RUN, session, &bad).unwrap_err();
    assert!(matches!(error, StoreError::Sqlite { .. }), "{error}");
    assert_eq!(store.trials(RUN).unwrap(), []);
    let mut record = run_record(plan(1));
    record.id = "other".into();
    record.plan.treatments[0].levels.0[0].1 = LevelValue::Float(f64::INFINITY);
    assert!(matches!(store.begin_run(&record).unwrap_err(), StoreError::Unstorable { .. }));
}

#[test]
fn a_runs_state_follows_its_sessions_and_trials() {
    let (_folder, mut store) = store();
    let record = run_record(plan(1));
    store.begin_run(&record).unwrap();
    assert_eq!(store.state(RUN).unwrap(), RunState::Interrupted);
    assert!(matches!(store.begin_run(&record).unwrap_err(), StoreError::Unstorable { .. }));

    let first = store.begin_session(RUN, &session_record()).unwrap();
    assert_eq!(store.state(RUN).unwrap(), RunState::Running);
    let open = store.open_sessions().unwrap().remove(0);
    assert_eq!((open.id, open.run.as_str(), open.hold), (first, RUN, Hold::Held));
    assert_eq!(open.owner, session_record().owner);
    let error = store.begin_session(RUN, &session_record()).unwrap_err();
    assert!(matches!(error, StoreError::SessionOpen { pid: 4242, .. }), "{error}");
    assert!(error.help().unwrap().contains("4242"));

    store.add_trial(RUN, first, &failed_trial(record.plan.trials[0])).unwrap();
    store.end_session(first, SessionEnd::Failed).unwrap();
    store.end_session(first, SessionEnd::Interrupted).unwrap();
    assert_eq!(store.state(RUN).unwrap(), RunState::Failed, "an end is final");

    let second = store.begin_session(RUN, &session_record()).unwrap();
    store.end_session(second, SessionEnd::Interrupted).unwrap();
    assert_eq!(store.state(RUN).unwrap(), RunState::Interrupted);

    let third = store.begin_session(RUN, &session_record()).unwrap();
    for planned in &record.plan.trials {
        store.add_trial(RUN, third, &trial(&record.plan, *planned)).unwrap();
    }
    assert_eq!(store.state(RUN).unwrap(), RunState::Running);
    store.end_session(third, SessionEnd::Completed).unwrap();
    assert_eq!(store.state(RUN).unwrap(), RunState::Completed);
    let summary = store.runs().unwrap().remove(0);
    assert_eq!((summary.trials_done, summary.trials_planned, summary.attempts_failed), (4, 4, 1));
    assert_eq!(summary.state, RunState::Completed);
}

/// A session of the machine `id`.
fn session_on(id: &str) -> SessionRecord {
    let mut session = session_record();
    session.owner.host = Some(id.to_owned());
    session.host.id = Some(id.to_owned());
    session.host.name = Some(format!("{id}.example"));
    session
}

#[test]
fn a_session_is_held_until_its_process_or_its_work_ends() {
    let (folder, mut store) = store();
    store.begin_run(&run_record(plan(1))).unwrap();
    let path = store.path().to_owned();
    let hold = |store: &Store| store.open_sessions().unwrap().first().map(|open| open.hold);
    let session = store.begin_session(RUN, &session_on("db1")).unwrap();
    // Another process, be it on another machine.
    let mut other = Store::open(&path).unwrap();
    assert_eq!((hold(&store), hold(&other)), (Some(Hold::Held), Some(Hold::Held)));
    let error = other.begin_session(RUN, &session_on("db2")).unwrap_err();
    assert!(error.to_string().contains("on db1.example"), "{error}");
    assert!(matches!(
        other.remove(&[Stored::Run(RUN.into())], "rm"),
        Err(StoreError::SessionOpen { .. })
    ));
    // Whoever looks and leaves takes nothing along, and a copy is nobody's.
    drop(Store::open_for_reading(&path).unwrap().open_sessions().unwrap());
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    assert_eq!(hold(&Store::open_for_reading(&copy).unwrap()), Some(Hold::Free));
    assert_eq!(hold(&other), Some(Hold::Held));
    drop(store);
    assert_eq!(hold(&other), Some(Hold::Free));

    // The next session ends the one that nobody holds, and no other.
    other.assume_ended([session]);
    let next = other.begin_session(RUN, &session_on("db2")).unwrap();
    let ends: Vec<_> = other.sessions(RUN).unwrap().into_iter().map(|(.., end)| end).collect();
    assert_eq!(ends, [Some(SessionEnd::Interrupted), None]);
    assert!(other.verify(&[]).unwrap().sound);
    other.end_session(next, SessionEnd::Completed).unwrap();
    let third = other.begin_session(RUN, &session_on("db2")).unwrap();
    assert_ne!(third, next);
}

#[test]
fn of_two_processes_that_resume_a_run_one_does() {
    let (_folder, mut store) = store();
    store.begin_run(&run_record(plan(1))).unwrap();
    let path = store.path().to_owned();
    let begun: Vec<_> = (0..4)
        .map(|n| {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut store = Store::open(path).unwrap();
                let begun = store.begin_session(RUN, &session_on(&format!("db{n}"))).is_ok();
                (store, begun)
            })
        })
        .collect();
    // All stores stay open until all have tried.
    let begun: Vec<_> = begun.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(begun.iter().filter(|(_, begun)| *begun).count(), 1);
}

#[test]
fn a_link_in_the_place_of_the_locks_is_not_followed() {
    let (folder, mut store) = store();
    store.begin_run(&run_record(plan(1))).unwrap();
    let mut locks = store.path().to_owned().into_os_string();
    locks.push(".lock");
    let precious = folder.path().join("precious");
    std::os::unix::fs::symlink(&precious, &locks).unwrap();
    let error = store.begin_session(RUN, &session_on("db1")).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(!precious.exists() && store.open_sessions().unwrap().is_empty());
}

#[test]
fn runs_are_found_by_latest_by_name_and_by_beginning() {
    let (_folder, mut store) = store();
    let error = store.resolve("latest").unwrap_err();
    assert!(matches!(error, StoreError::NoRuns { .. }) && error.help().is_some());
    for (at, id) in
        (1..).zip(["quickstart-1-aaaa", "quickstart-2-bbbb", "mine-3-cccc", "quickstart-1"])
    {
        let mut record = run_record(plan(1));
        record.id = id.into();
        record.started_at = pgdyno_model::units::Epoch(if id == "quickstart-1" { 0 } else { at });
        store.begin_run(&record).unwrap();
    }
    assert_eq!(store.resolve("latest").unwrap(), "mine-3-cccc");
    assert_eq!(store.resolve("mi").unwrap(), "mine-3-cccc");
    assert_eq!(
        store.resolve("quickstart-1").unwrap(),
        "quickstart-1",
        "a full name wins over a beginning"
    );
    assert_eq!(store.resolve("quickstart-2").unwrap(), "quickstart-2-bbbb");
    match store.resolve("quick").unwrap_err() {
        StoreError::AmbiguousRun { candidates, .. } => {
            assert_eq!(candidates, ["quickstart-2-bbbb", "quickstart-1-aaaa", "quickstart-1"]);
        }
        other => panic!("{other}"),
    }
    let error = store.resolve("quikstart-2-bbb").unwrap_err();
    assert!(
        error.help().unwrap().contains("did you mean `quickstart-2-bbbb`"),
        "{:?}",
        error.help()
    );
    assert!(matches!(store.resolve("").unwrap_err(), StoreError::UnknownRun { .. }));
    assert!(matches!(store.run("zzz").unwrap_err(), StoreError::UnknownRun { .. }));
    assert!(matches!(store.state("zzz").unwrap_err(), StoreError::UnknownRun { .. }));
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);

    std::fs::write(at("notes.txt"), "shopping: milk, disks\n").unwrap();
    let error = Store::open(at("notes.txt")).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(at("notes.txt")).unwrap(), "shopping: milk, disks\n");

    Connection::open(at("other.db")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let before = std::fs::read(at("other.db")).unwrap();
    let error = Store::open(at("other.db")).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert_eq!(std::fs::read(at("other.db")).unwrap(), before);

    drop(Store::open(at("newer.db")).unwrap());
    Connection::open(at("newer.db")).unwrap().pragma_update(None, "user_version", 999).unwrap();
    let error = Store::open_existing(at("newer.db")).unwrap_err();
    assert!(matches!(error, StoreError::Newer { version: 999, .. }), "{error}");
    assert!(error.help().unwrap().contains("newer"));

    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert!(matches!(Store::open_existing(at("none.db")).unwrap_err(), StoreError::Missing { .. }));
    assert!(!at("none.db").exists());
    let error = Store::open(at("notes.txt").join("store.db")).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_what_is_made() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, store) = store();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(store.path()), 0o600);
    assert_eq!(mode(&folder.path().join("deep")), 0o700);
}

#[test]
fn several_processes_may_use_one_store() {
    let (_folder, store) = store();
    let path = store.path().to_owned();
    let writers: Vec<_> = (0..4)
        .map(|n| {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut store = Store::open(path).unwrap();
                let mut record = run_record(plan(1));
                record.id = format!("run-{n}");
                fill(&mut store, &record, None);
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(store.runs().unwrap().iter().filter(|r| r.state == RunState::Completed).count(), 4);
}

#[test]
fn crash_tests_are_found_by_name_and_read_back_whole() {
    let (_folder, mut store) = filled(plan(1), None);
    let alone = crash_record(7, Verdict::Fail(Failing::Lost));
    store.add_crash(None, &alone).unwrap();
    assert_eq!(store.crash(&alone.id).unwrap(), alone);
    assert_eq!(store.resolve_any(&alone.id).unwrap(), Stored::Crash(alone.id.clone()));
    assert_eq!(store.crashes_of(RUN).unwrap().len(), 2);
    let listed: Vec<(String, String)> =
        store.crashes().unwrap().into_iter().map(|c| (c.id, c.verdict)).collect();
    assert_eq!(listed.len(), 3);
    assert!(listed.contains(&(alone.id.clone(), "FAIL (lost)".into())), "{listed:?}");
    assert!(matches!(store.add_crash(None, &alone), Err(StoreError::Unstorable { .. })));
}

#[test]
fn probes_are_found_by_name_beside_runs() {
    let (_folder, mut store) = store();
    let (fsync, disk) = (fsync_probe(), disk_probe());
    store.add_probe(None, &disk).unwrap();
    assert!(matches!(store.resolve_any("latest"), Err(StoreError::NoRuns { .. })));
    fill(&mut store, &run_record(plan(1)), None);
    let listed: Vec<(String, bool)> =
        store.probes().unwrap().into_iter().map(|p| (p.id, p.complete)).collect();
    assert_eq!(listed, [(disk.id.clone(), false), (fsync.id.clone(), true)]);
    assert_eq!(store.probe(&disk.id).unwrap(), disk);
    assert_eq!(store.resolve_any("latest").unwrap(), Stored::Run(RUN.into()));
    assert_eq!(store.resolve_any(RUN).unwrap(), Stored::Run(RUN.into()));
    assert_eq!(store.resolve_any("fsync-").unwrap(), Stored::Probe(fsync.id.clone()));
    assert_eq!(store.resolve_any(&disk.id).unwrap(), Stored::Probe(disk.id.clone()));
    let error = store.resolve_any("dsik-20261121").unwrap_err();
    assert!(error.help().unwrap().contains(&disk.id), "{error}");
    // A full name wins over a beginning, whatever it is of.
    let mut record = run_record(plan(1));
    record.id = format!("{}-more", fsync.id);
    store.begin_run(&record).unwrap();
    assert_eq!(store.resolve_any(&fsync.id).unwrap(), Stored::Probe(fsync.id.clone()));
    let error = store.resolve(&fsync.id).unwrap_err();
    assert!(matches!(error, StoreError::NotARun { kind: "a probe", .. }), "{error}");
    store
        .add_probe(None, &pgdyno_model::ProbeRecord { id: "fsync-2".into(), ..fsync.clone() })
        .unwrap();
    assert!(matches!(store.resolve_any("fsync"), Err(StoreError::AmbiguousRun { .. })));
    assert!(matches!(store.add_probe(None, &fsync), Err(StoreError::Unstorable { .. })));
    let nan = pgdyno_model::probe::ProbeResult::Fsync(pgdyno_model::probe::FsyncProbe {
        seconds_per_test: f64::NAN,
        tests: Vec::new(),
        warnings: Vec::new(),
        suspicions: Vec::new(),
        block_bytes: 8192,
        complete: true,
    });
    let nan = pgdyno_model::ProbeRecord { id: "fsync-3".into(), result: nan, ..fsync };
    assert!(matches!(store.add_probe(None, &nan), Err(StoreError::Unstorable { .. })));
}
