//! `\copyfrom`: rows that clients make and send.

use pgdyno_model::experiment::OnError;

use super::*;
use crate::copy::{ColumnKind, Generator, GrowingTable, RowWriter, Varying};
use crate::program::Program;
use crate::script::{Script, WeightedScript};

/// A table whose rows have a bigint and text of 20 to 40 letters, from number 101 on.
fn grow(spec: &mut LoadSpec, highest: u64) {
    let letters = Varying::Letters { least: 20, most: 40, within: None };
    let columns = [
        ("id", Generator::ROW_NUMBER, ColumnKind::Int8),
        ("text", Generator::Varying(letters), ColumnKind::Text),
    ];
    let writer = RowWriter::new(1, "events", highest, &columns).unwrap();
    let table = GrowingTable::new("events", "COPY events FROM STDIN", writer, 100, highest);
    spec.tables = vec![std::sync::Arc::new(table)];
}

/// A server that asks for data after 2 ms and has them 3 ms after their end.
fn taking() -> Answer {
    Box::new(|sql, _| match sql.split(' ').next() {
        Some("COPY") => after(2 * MS, message(b'G', b"\x01\0\x02\0\x01\0\x01")),
        Some("rows") => after(3 * MS, [message(b'C', b"COPY 1\0"), ready(b'I')].concat()),
        _ => after(MS, done(b'I')),
    })
}

#[test]
fn each_copy_has_the_next_rows_and_its_latency() {
    let load = Load {
        protocol: Protocol::Prepared,
        change: |spec| grow(spec, 1 << 40),
        ..Load::with_count(3, "\\set n 5000\n\\copyfrom events 2 * :n\n\\copyfrom events 0")
    };
    let seen = load.run(|_| taking());
    assert_counts(&seen.measurement, (3, 0, 0));
    let copied: Vec<&str> = seen.asked[0]
        .iter()
        .filter(|asked| asked.starts_with("rows"))
        .map(String::as_str)
        .collect();
    assert_eq!(
        copied,
        [
            "rows (101, 10100, 10000)",
            "rows (0, 0, 0)",
            "rows (10101, 20100, 10000)",
            "rows (0, 0, 0)",
            "rows (20101, 30100, 10000)",
            "rows (0, 0, 0)"
        ]
    );
    let statements = &seen.measurement.scripts[0].statements;
    let shown: Vec<&str> = statements.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(shown, ["\\copyfrom events 2 * :n", "\\copyfrom events 0"]);
    // 5 ms at the server, and a microsecond for each block.
    assert!((10_000.0..10_100.0).contains(&seen.measurement.latency.max_us().unwrap()));
}

#[test]
fn clients_share_the_numbers_of_a_table() {
    let load = Load {
        clients: 4,
        network: Network { read: 3, write: 777, ..Network::default() },
        change: |spec| grow(spec, 1 << 40),
        ..Load::with_count(5, "BEGIN;\n\\copyfrom events 50\nEND;")
    };
    let seen = load.run(|_| taking());
    assert_counts(&seen.measurement, (20, 0, 0));
    let all = seen.asked.iter().flatten().filter_map(|asked| asked.strip_prefix("rows "));
    let mut found: Vec<String> = all.map(str::to_owned).collect();
    found.sort();
    let mut expected: Vec<String> =
        (0..20).map(|n| format!("({}, {}, 50)", 101 + 50 * n, 150 + 50 * n)).collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn an_error_ends_the_rows_and_the_next_transaction_copies_again() {
    let load = Load {
        // Of 400 kB the server has seen but a few when it says no.
        network: Network { write: 1000, pace: MS, ..Network::default() },
        change: |spec| {
            grow(spec, 1 << 40);
            spec.options.on_error = OnError::Continue;
        },
        ..Load::with_count(2, "\\copyfrom events 10000")
    };
    let mut copies = 0;
    let refusing = move |sql: &str, now: Moment| {
        let mut acts = taking()(sql, now);
        if sql.starts_with("COPY") {
            copies += 1;
            if copies == 1 {
                acts.extend(after(5 * MS, error("23505", b'I')));
            }
        }
        acts
    };
    let seen = load.run(move |_| Box::new(refusing));
    assert_counts(&seen.measurement, (1, 1, 0));
    let rows: Vec<&String> = seen.asked[0].iter().filter(|a| a.starts_with("rows")).collect();
    assert_eq!(rows, ["rows (10101, 20100, 10000)"]);
}

#[test]
fn what_no_copy_can_be_made_of_ends_the_client() {
    for (script, highest, words) in [
        ("\\copyfrom events -1", 200, "-1 is no number of rows"),
        ("\\copyfrom events 60", 150, "events has no room for 60 rows after number 100"),
        ("\\startpipeline\n\\copyfrom events 1\n\\endpipeline", 200, "not allowed in pipeline"),
        ("\\copyfrom events :none", 200, "undefined variable"),
    ] {
        let change = match highest {
            150 => |spec: &mut LoadSpec| grow(spec, 150),
            _ => |spec: &mut LoadSpec| grow(spec, 1 << 40),
        };
        let protocol = Protocol::Extended;
        let seen = Load { change, protocol, ..Load::with_count(2, script) }.run(|_| taking());
        assert_counts(&seen.measurement, (0, 1, 1));
        assert_aborted(&seen.measurement, words);
    }
}

#[test]
fn a_table_that_the_load_lacks_is_named() {
    let script = std::sync::Arc::new(Script::parse("in.sql", "\n\\copyfrom strange 5").unwrap());
    let scripts = [WeightedScript::new(script, 1)];
    let error = Program::link(&scripts, Protocol::Simple, 1, &[], &[]).err().unwrap();
    assert_eq!(error.to_string(), "in.sql:2: \\copyfrom: the load describes no table `strange`");
}
