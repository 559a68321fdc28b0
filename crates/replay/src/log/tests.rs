use std::time::Duration;

use proptest::prelude::*;

use super::*;

const CSV: &str = "2026-11-30 22:13:17.649 UTC,\"me\",\"db\",30006,\"[local]\",6b0df4fd.7536,4,\
    \"SELECT\",2026-11-30 22:13:17 UTC,3/9,0,LOG,00000,\"execute P_1: select $1,\n\"\"x\"\"\",\
    \"parameters: $1 = '2'\",,,,,,,,\"pgbench\",\"client backend\",,0\n";
const JSON: &str = "{\"timestamp\":\"2026-11-30 22:13:17.649 UTC\",\"user\":\"me\",\
    \"dbname\":\"db\",\"session_id\":\"6b0df4fd.7536\",\"line_num\":4,\"error_severity\":\"LOG\",\
    \"message\":\"execute P_1: select $1,\\n\\\"x\\\"\",\"detail\":\"parameters: $1 = '2'\",\
    \"backend_type\":\"client backend\"}\n";

/// Returns what becomes of all records of `bytes`: their lines, and how they end.
fn read(bytes: &[u8]) -> (Vec<u64>, Result<(), LogError>) {
    let (mut reader, mut lines) = (LogReader::new(bytes), Vec::new());
    loop {
        match reader.next_record() {
            Ok(Some(record)) => lines.push(record.line),
            Ok(None) => return (lines, Ok(())),
            Err(error) => return (lines, Err(error)),
        }
    }
}

#[test]
fn csv_and_json_give_equal_records() {
    let (mut csv, mut json) = (LogReader::new(CSV.as_bytes()), LogReader::new(JSON.as_bytes()));
    let (csv, json) = (csv.next_record().unwrap().unwrap(), json.next_record().unwrap().unwrap());
    // jsonlog leaves SQLSTATE out where there is no error.
    assert_eq!(LogRecord { sqlstate: "".into(), ..csv.clone() }, json);
    let event = LogEvent::Execute { name: "P_1", text: "select $1,\n\"x\"", duration: None };
    assert_eq!(LogEvent::read(&csv), event);
}

#[test]
fn lines_count_also_inside_of_values() {
    let twice = CSV.repeat(2);
    let (lines, end) = read(twice.as_bytes());
    assert!(end.is_ok());
    assert_eq!(lines, [1, 3]);
}

#[test]
fn a_log_that_was_cut_anywhere_is_cut() {
    for log in [CSV, JSON] {
        let twice = log.repeat(2);
        for cut in log.len() + 1..twice.len() {
            let (lines, end) = read(&twice.as_bytes()[..cut]);
            assert!(matches!(end, Err(LogError::Cut)), "{cut}: {end:?}");
            assert_eq!(lines, [1], "{cut}");
        }
    }
}

#[test]
fn other_files_are_no_logs() {
    let stderr = "LOG:  statement: SELECT 1\n";
    assert!(matches!(read(stderr.as_bytes()).1, Err(LogError::UnknownFormat)));
    assert!(matches!(read(b"1,2\n").1, Err(LogError::Malformed(_))));
    assert!(matches!(read(b"{\"a\":1}\n").1, Err(LogError::Malformed(_))));
    assert_eq!(read(b"").0, [0_u64; 0]);
}

#[test]
fn bytes_that_are_not_utf8_are_replaced_and_told() {
    let bytes = CSV.as_bytes().iter().map(|b| if *b == b'x' { 0xff } else { *b });
    let bytes: Vec<u8> = bytes.collect();
    let mut reader = LogReader::new(bytes.as_slice());
    let record = reader.next_record().unwrap().unwrap();
    assert!(!record.is_utf8 && record.message.contains("\u{fffd}"));
}

#[test]
fn messages_tell_of_events() {
    let mut reader = LogReader::new(JSON.as_bytes());
    let record = reader.next_record().unwrap().unwrap();
    let event = |message: &'static str| {
        let record = LogRecord { message: message.into(), ..record.clone() };
        format!("{:?}", LogEvent::read(&record))
    };
    let debug = |event: LogEvent<'_>| format!("{event:?}");
    let ms = |ms| Some(Duration::from_micros(ms));
    let (name, text) = ("", "SELECT 1");
    for (message, expected) in [
        ("statement: SELECT 1", LogEvent::Statement { text, duration: None }),
        (
            "duration: 0.159 ms  statement: SELECT 1",
            LogEvent::Statement { text, duration: ms(159) },
        ),
        ("duration: 1234.500 ms", LogEvent::Duration(Duration::from_micros(1_234_500))),
        ("execute <unnamed>: SELECT 1", LogEvent::Execute { name, text, duration: None }),
        ("execute S_1/C_2: SELECT 1", LogEvent::Execute { name: "S_1", text, duration: None }),
        (
            "duration: 0.001 ms  execute a: SELECT 1",
            LogEvent::Execute { name: "a", text, duration: ms(1) },
        ),
        ("duration: 0.010 ms  bind <unnamed>: SELECT 1", LogEvent::Bind { name, text }),
        ("duration: 0.010 ms  parse <unnamed>: SELECT 1", LogEvent::Other),
        ("execute fetch from S_1/C_2: SELECT 1", LogEvent::Other),
        ("duration: 0.1 ms  plan:\nQuery Text: SELECT 1", LogEvent::Other),
        ("connection received: host=[local]", LogEvent::Connection),
        ("disconnection: session time: 0:00:00.038 user=a", LogEvent::Disconnection),
        ("received replication command: IDENTIFY_SYSTEM", LogEvent::Replication),
        ("checkpoint starting: time", LogEvent::Other),
    ] {
        assert_eq!(event(message), debug(expected), "{message}");
    }
}

/// Returns bytes that resemble a log.
fn almost_a_log() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(CSV.as_bytes().to_vec()),
        Just(JSON.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..8),
        proptest::sample::select(vec![b"\"".to_vec(), b"\n".to_vec(), b",".to_vec()]),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in almost_a_log()) {
        let _ = read(&bytes);
    }

    #[test]
    fn values_of_csv_are_read_as_they_were(message in "[a\",'\n\\\\é]{0,12}") {
        let quoted = message.replace('"', "\"\"");
        let log = CSV.replace("execute P_1: select $1,\n\"\"x\"\"", &quoted);
        let mut reader = LogReader::new(log.as_bytes());
        let record = reader.next_record().unwrap().unwrap();
        prop_assert_eq!(&*record.message, message.as_str());
        prop_assert_eq!(&*record.detail, "parameters: $1 = '2'");
    }
}
