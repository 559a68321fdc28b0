//! Exports hold what the store holds, in every format, and nothing that names the machine where
//! that was asked for.

use std::collections::BTreeMap;
use std::path::Path;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use pgdyno_model::facts::{BlockDevice, BuildSource, LoopFacts};
use pgdyno_model::{Advice, Failure, FailureKind, LevelValue, TrialRecord};
use pgdyno_report::export::{Export, ExportError};
use pgdyno_store::Store;
use pgdyno_test_support::records::{
    self, RUN, fill, fill_on, fill_with, generators, plan, run_record, session_record, store,
};
use serde_json::Value;

/// A run of eight trials, one of them failed.
fn filled() -> (tempfile::TempDir, Store) {
    records::filled(plan(2), Some(3))
}

fn export(store: &Store) -> Export<'_> {
    Export::new(store, RUN, false).unwrap()
}

fn json(export: &Export<'_>) -> Value {
    serde_json::from_str(&export.json().unwrap()).unwrap()
}

fn completed(store: &Store) -> Vec<TrialRecord> {
    let trials = store.trials(RUN).unwrap();
    trials.into_iter().filter(|trial| trial.failure.is_none()).collect()
}

fn read(folder: &Path, table: &str) -> String {
    std::fs::read_to_string(folder.join(table)).unwrap()
}

#[test]
fn json_holds_the_run_and_every_row_of_every_table() {
    let (_folder, store) = filled();
    let document = json(&export(&store));
    assert_eq!(
        (&document["schema"], &document["redacted"]),
        (&"pgdyno.export/1".into(), &false.into())
    );
    assert_eq!(document["run"]["run"]["id"], RUN);
    assert_eq!(document["run"]["trials"][0].get("series"), None, "it is in a table");
    let rows = |table: &str| document[table].as_array().unwrap();
    let trials = completed(&store);

    assert_eq!(rows("trials").len(), trials.len() + 1);
    let failed = rows("trials").iter().find(|row| row["trial"] == 4).unwrap();
    assert_eq!((&failed["state"], &failed["tps"]), (&"failed".into(), &Value::Null));
    assert!(failed["failure"].as_str().unwrap().contains("No space left"));
    let first = trials[0].measurement.as_ref().unwrap();
    assert_eq!(rows("trials")[0]["transactions"], first.transactions);
    assert_eq!(rows("trials")[0]["latency_us_p99"].as_f64(), first.latency.quantile_us(0.99));
    assert_eq!(rows("trials")[0]["level_clients"], "1");

    let seconds: u64 =
        rows("seconds").iter().map(|row| row["transactions"].as_u64().unwrap()).sum();
    let stored = trials.iter().map(|t| t.measurement.as_ref().unwrap());
    assert_eq!(seconds, stored.clone().map(|m| m.transactions).sum::<u64>());
    let values = trials.iter().flat_map(|t| &t.telemetry).flat_map(|t| &t.samples);
    let values = values.flat_map(|sample| sample.values.iter().flatten()).count();
    assert_eq!(rows("telemetry").len(), values);
    let statements = stored.flat_map(|m| &m.scripts).map(|s| s.statements.len()).sum::<usize>();
    assert_eq!(rows("statements").len(), statements);
    assert_eq!(
        rows("statements")[0]["text"],
        trials[0].measurement.as_ref().unwrap().scripts[0].statements[0].text
    );
}

#[test]
fn generators_have_a_row_for_each_completed_trial_and_lose_their_names_if_redacted() {
    let (_folder, mut store) = store();
    fill_with(&mut store, &run_record(plan(2)), |trial| {
        trial.measurement.as_mut().unwrap().generators = generators(&["g1", "g2"]);
    });
    let document = json(&export(&store));
    let rows = document["generators"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * completed(&store).len());
    assert_eq!((&rows[1]["trial"], &rows[1]["generator"]), (&1.into(), &"g2".into()));
    assert_eq!((&rows[1]["clients"], &rows[1]["start_skew_us"]), (&4.into(), &3564.0.into()));
    let redacted = json(&Export::new(&store, RUN, true).unwrap());
    assert_eq!(redacted["generators"][1]["generator"], "generator-2");
    let of_treatment = &redacted["run"]["treatments"][0]["generators"][1];
    assert_eq!(
        (&of_treatment["name"], &of_treatment["trials"]),
        (&"generator-2".into(), &2.into())
    );
}

#[test]
fn csv_has_the_rows_of_json_and_goes_into_a_new_or_empty_folder_only() {
    let (folder, store) = filled();
    let (export, into) = (export(&store), folder.path().join("a/csv"));
    export.csv(&into).unwrap();
    let document = json(&export);
    for table in ["trials", "seconds", "telemetry", "statements", "generators"] {
        let rows = document[table].as_array().unwrap();
        assert_eq!(read(&into, &format!("{table}.csv")).lines().count(), rows.len() + 1, "{table}");
    }
    let seconds = read(&into, "seconds.csv");
    assert!(seconds.starts_with("trial,t_s,length_s,transactions,failed,tps,latency_us_p50,"));
    let first = &document["seconds"][0];
    let cells: Vec<&str> = seconds.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(cells[3], first["transactions"].to_string());
    assert_eq!(cells[8].parse::<f64>().unwrap(), first["latency_us_p99"].as_f64().unwrap());
    let again = export.csv(&into).unwrap_err();
    assert!(matches!(again, ExportError::NotEmpty { .. }) && again.help().is_some(), "{again}");
}

#[test]
fn the_interval_log_holds_each_trial_and_each_treatment() {
    let (_folder, store) = filled();
    let log = export(&store).hdr().unwrap();
    let mut counts = BTreeMap::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        let LogEntry::Interval(line) = entry.unwrap() else { continue };
        let bytes = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            line.encoded_histogram(),
        );
        let read: Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes.unwrap().as_slice()).unwrap();
        counts.insert(line.tag().unwrap().as_str().to_owned(), read.len());
    }
    let mut expected = BTreeMap::new();
    for trial in completed(&store) {
        let count = trial.measurement.unwrap().latency.count();
        expected.insert(format!("trial-{}", trial.ordinal + 1), count);
        *expected.entry(format!("treatment-{}", trial.treatment + 1)).or_default() += count;
    }
    assert_eq!(counts, expected);
}

#[test]
fn markdown_shows_every_treatment() {
    let (_folder, store) = filled();
    let markdown = export(&store).markdown();
    let rows = markdown.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows, 1 + 4, "{markdown}");
    assert!(markdown.contains("| synchronous\\_commit | clients | trials | tps |"), "{markdown}");
}

#[test]
fn markup_in_names_stays_text_in_markdown() {
    let (_folder, mut store) = store();
    let mut record = run_record(plan(1));
    record.plan.treatments[0].levels.0[0].1 =
        LevelValue::Text("<script>alert(1)</script> | `x".into());
    fill(&mut store, &record, None);
    let markdown = export(&store).markdown();
    assert!(!markdown.contains("<script>") && markdown.contains("&lt;script&gt;"), "{markdown}");
    assert!(markdown.contains("\\| `x"), "{markdown}");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_the_rows_of_json() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let (folder, store) = filled();
    let (export, into) = (export(&store), folder.path().join("parquet"));
    export.parquet(&into).unwrap();
    let document = json(&export);
    for table in ["trials", "seconds", "telemetry", "statements", "generators"] {
        let file = std::fs::File::open(into.join(format!("{table}.parquet"))).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let expected = document[table].as_array().unwrap();
        assert_eq!(rows.len(), expected.len(), "{table}");
        for (row, expected) in rows.iter().zip(expected) {
            for (name, field) in row.get_column_iter() {
                let value = match field {
                    Field::Null => Value::Null,
                    Field::Long(number) => (*number).into(),
                    Field::Double(number) => (*number).into(),
                    Field::Str(text) => text.as_str().into(),
                    other => panic!("{name}: {other:?}"),
                };
                assert_eq!(value, expected[name], "{table}.{name}");
            }
        }
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_where_it_is_to_be_had() {
    let (folder, store) = filled();
    let error = export(&store).parquet(&folder.path().join("parquet")).unwrap_err();
    assert!(matches!(error, ExportError::NoParquet), "{error}");
    assert!(error.help().unwrap().contains("--features full"));
}

/// Texts that name a machine, its places and people.
const SECRETS: &[&str] = &[
    "zacharias",
    "tumbleweed9",
    "shopledger",
    "hunter2pw",
    "192.168.77.13",
    "fe80::77:13",
    "deepvault",
    "S4EVNX0R777",
    "5000c500a1b2c3d4",
    "0b5e4ad6-97e0-4d0c-a1c6-1f2e3d4c5b6a",
    "52:54:00:ab:cd:77",
    "tumble.sock",
];

/// A run whose records hold each of [`SECRETS`] wherever text stands.
fn with_secrets(store: &mut Store) {
    let all = "/srv/deepvault/zacharias/x.sql host=tumbleweed9 user=zacharias dbname=shopledger \
               password=hunter2pw at 192.168.77.13:5432 [fe80::77:13]:5432 serial S4EVNX0R777 \
               wwn-0x5000c500a1b2c3d4 UUID=0b5e4ad6-97e0-4d0c-a1c6-1f2e3d4c5b6a 52:54:00:ab:cd:77 \
               postgres://zacharias:hunter2pw@tumbleweed9/shopledger /run/tumble.sock";
    let mut record = run_record(plan(1));
    record.folder = "/home/zacharias/deepvault".into();
    record.experiment = format!("[target]\ndsn = \"{all}\"\n");
    record.overrides = vec![format!("target.dsn={all}")];
    record.plan.question = Some(format!("Is /srv/deepvault on tumbleweed9 fast? {all}"));
    record.plan.treatments.iter_mut().for_each(|treatment| {
        treatment.storage = all.to_owned();
        treatment.levels.0[0].1 = LevelValue::Text(format!("{} {all}", treatment.clients));
    });
    let mut session = session_record();
    session.host.settings.cmdline = Some(all.to_owned());
    session.host.virtualization.cloud = Some(all.to_owned());
    let storage = &mut session.storage[0];
    storage.name = all.to_owned();
    storage.directory = "/srv/deepvault/pg".into();
    storage.mount_point = "/srv/deepvault".into();
    storage.source = "tumbleweed9:/srv/deepvault".into();
    storage.unavailable = vec![all.to_owned()];
    storage.devices = vec![BlockDevice {
        serial: Some("S4EVNX0R777".into()),
        wwn: Some("naa.5000c500a1b2c3d4".into()),
        label: Some("deepvault".into()),
        backing: Some(LoopFacts { file: "/srv/deepvault/disk".into(), ..LoopFacts::default() }),
        ..BlockDevice::default()
    }];
    fill_on(store, &record, &session, |trial| {
        trial.server_log = format!("FATAL: {all}\n");
        let server = trial.server.as_mut().unwrap();
        server.build = BuildSource::Given { address: "tumbleweed9:5433".into() };
        server.settings[0].value = all.to_owned();
        for table in &mut trial.telemetry {
            table.columns[0].name = format!("/srv/deepvault {all}");
            table.unavailable = Some(all.to_owned());
        }
        let m = trial.measurement.as_mut().unwrap();
        m.counters.abort_reasons = vec![all.to_owned()];
        m.generators = generators(&[all]);
        m.scripts[0].name = "/home/zacharias/deepvault/s.sql".into();
        m.scripts[0].statements[0].text = format!("COPY t FROM '{all}'");
        if trial.ordinal == 1 {
            trial.failure = Some(Failure::new(FailureKind::Host, format!("cannot open {all}")));
        }
    });
}

#[test]
fn a_redacted_export_names_no_machine_place_or_person_in_any_format() {
    let (folder, mut store) = store();
    with_secrets(&mut store);
    let all = |redact: bool| {
        let export = Export::new(&store, RUN, redact).unwrap();
        let into = folder.path().join(format!("csv-{redact}"));
        export.csv(&into).unwrap();
        let mut texts = vec![export.json().unwrap(), export.hdr().unwrap()];
        texts.push(export.markdown());
        texts.extend(
            ["trials", "telemetry", "statements", "generators"]
                .map(|t| read(&into, &format!("{t}.csv"))),
        );
        #[cfg(feature = "parquet")]
        {
            let into = folder.path().join(format!("parquet-{redact}"));
            export.parquet(&into).unwrap();
            for table in ["trials", "telemetry", "statements", "generators"] {
                let bytes = std::fs::read(into.join(format!("{table}.parquet"))).unwrap();
                texts.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        texts
    };
    for (n, text) in all(false).iter().enumerate() {
        assert!(
            SECRETS.iter().all(|secret| text.contains(secret)),
            "document {n} of the plain export"
        );
    }
    for (n, text) in all(true).iter().enumerate() {
        for secret in SECRETS {
            let at = text
                .find(secret)
                .map(|at| text[at.saturating_sub(80)..].chars().take(160).collect::<String>());
            assert_eq!(at, None, "document {n} holds {secret}");
        }
    }
    let document = json(&Export::new(&store, RUN, true).unwrap());
    assert_eq!(document["redacted"], true);
    assert_eq!(document["run"]["sessions"][0]["host"]["cpu_model"], "A CPU");
    assert_eq!(document["run"]["sessions"][0]["storage"][0]["filesystem"], "ext4");
    for key in ["experiment", "overrides", "plan", "notes", "probes", "crashes"] {
        assert_eq!(document["run"].get(key), None, "{key}");
    }
}
