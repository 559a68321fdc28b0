//! Notes on what was under test, and on what a rate comes to.

use pgdyno_model::facts::StorageFacts;
use pgdyno_model::record::ServerCount;
use pgdyno_model::telemetry::{Column, Kind, Sample, Table};
use pgdyno_model::{Answer, AnswerKind};
use pgdyno_report::{NoteKind, RunReport};
use pgdyno_test_support::records::{RUN, analysed_run, plan, run_record, session_record, store};

/// A table of counters that grow by `grown` from the window's begin to its end.
fn counters(probe: &str, grown: &[(&str, f64)]) -> Table {
    let column = |(name, _): &(&str, f64)| Column {
        name: (*name).into(),
        unit: "s".into(),
        kind: Kind::Counter,
    };
    let sample = |t_s, share: f64| Sample {
        t_s,
        values: grown.iter().map(|(_, by)| Some(by * share)).collect(),
    };
    let (columns, samples) =
        (grown.iter().map(column).collect(), vec![sample(0.0, 0.0), sample(5.0, 1.0)]);
    Table { probe: probe.into(), columns, samples, unavailable: None }
}

#[test]
fn a_device_that_idles_beside_busy_processors_is_said_where_a_disk_is_the_question() {
    let cautioned = |kind: AnswerKind, busy_ms: f64| {
        let mut plan = plan(2);
        plan.answer = Some(Answer { kind, level: None, against: None, words: None });
        let view = analysed_run(plan, |t| {
            t.telemetry.retain(|table| !matches!(table.probe.as_str(), "cpu" | "diskstats"));
            t.telemetry.push(counters("cpu", &[("user", 6.0), ("system", 2.0), ("idle", 2.0)]));
            t.telemetry.push(counters("diskstats", &[("vda.io_ticks", busy_ms)]));
        });
        let note =
            RunReport::new(view).notes.into_iter().find(|note| note.kind == NoteKind::IdleDevice);
        note.map(|note| note.text)
    };
    let found = cautioned(AnswerKind::Acceptance, 2_500.0).unwrap();
    assert!(found.contains("In 8 of 8 trials") && found.contains("vda, was 50%"), "{found}");
    assert_eq!(cautioned(AnswerKind::Acceptance, 4_900.0), None, "98% utilised");
    assert_eq!(cautioned(AnswerKind::Leader, 2_500.0), None, "no disk is asked about");
}

#[test]
fn a_storage_that_keeps_nothing_in_a_power_cut_is_named() {
    let noted = |change: fn(&mut StorageFacts)| -> Vec<String> {
        let record = run_record(plan(2));
        let (_folder, mut store) = store();
        store.begin_run(&record).unwrap();
        let mut session = session_record();
        change(&mut session.storage[0]);
        store.begin_session(RUN, &session).unwrap();
        let notes = RunReport::read(&store, RUN).unwrap().notes.into_iter();
        notes.filter(|note| note.kind == NoteKind::NotDurable).map(|note| note.text).collect()
    };
    fn beneath(storage: &mut StorageFacts, filesystem: &str, options: &str) {
        storage.beneath.push(pgdyno_test_support::beneath(filesystem, options));
    }
    assert_eq!(noted(|_| {}), [""; 0]);
    assert_eq!(noted(|s| beneath(s, "ext4", "rw,relatime")), [""; 0]);
    for (change, word) in [
        ((|s| s.filesystem = "tmpfs".into()) as fn(&mut StorageFacts), "main memory (tmpfs)"),
        (|s| s.disk = Some("ram0".into()), "main memory (ram0)"),
        (|s| s.mount_options.push_str(",nobarrier"), "/, which is mounted with `nobarrier`"),
        (|s| beneath(s, "tmpfs", "rw"), "main memory (tmpfs)"),
        (
            |s| beneath(s, "overlay", "rw,fsync=volatile"),
            "/under, which is mounted with `fsync=vol",
        ),
    ] {
        let told = noted(change);
        assert!(told.len() == 1 && told[0].contains(word), "{word}: {told:?}");
    }
}

#[test]
fn a_rate_comes_to_rows_a_day_where_it_lasted_a_minute() {
    let rows = |measured_s: f64| {
        let view = analysed_run(plan(2), |t| {
            let m = t.measurement.as_mut().unwrap();
            m.measured_s = measured_s;
            m.transactions = 60_000;
            m.counters.warm_up_transactions = 1_000;
            // Two rows each, and five transactions that ended after the window.
            let rows = Some(2 * 61_005);
            t.server_count = Some(ServerCount { xact_commit: 61_005, rows, rows_expected: rows });
        });
        let notes = RunReport::new(view).notes.into_iter();
        notes.filter(|n| n.kind == NoteKind::RowsADay).collect::<Vec<_>>()
    };
    assert_eq!(rows(59.0), []);
    let said = rows(60.0);
    // 1,000 tps of two rows each.
    assert_eq!(said.len(), 4);
    assert!(said.iter().all(|note| note.text.contains("173 million")), "{said:?}");
}
