//! In steady state a statement leaves the allocator alone.

use std::path::Path;

use pgdyno_replay::{ReadOptions, Recording, ReplayOptions, Speed, replay};
use pgdyno_test_support::RUN;

use crate::server::LoggingServer;

/// Returns a recording of one session with `count` statements by `message`.
fn recording(count: u64, message: &str) -> Recording {
    let mut text = String::new();
    for number in 1..=count {
        text.push_str(&format!(
            "{{\"timestamp\":\"2026-11-30 22:00:00.000 UTC\",\"dbname\":\"postgres\",\
             \"session_id\":\"a\",\"line_num\":{number},\"error_severity\":\"LOG\",\
             \"message\":\"{message}\",\"detail\":\"parameters: $1 = 'x'\"}}\n"
        ));
    }
    let options = ReadOptions::default();
    Recording::from_source(Path::new("made"), text.as_bytes(), &options).unwrap()
}

/// Called by the test that has a server.
pub fn a_statement_allocates_nothing(server: &LoggingServer) {
    let options = ReplayOptions { speed: Speed::Max, ..ReplayOptions::default() };
    let connect = server.options();
    for message in
        ["statement: SELECT 1", "execute s: SELECT $1::text", "execute <unnamed>: SELECT $1::text"]
    {
        let [few, many] = [10, 1_010].map(|count| {
            let recording = recording(count, message);
            let mut replayed = 0;
            let counted = allocation_counter::measure(|| {
                let played = replay(&recording, &connect, &options, &RUN, &mut |_| {}).unwrap();
                replayed = played.statements;
            });
            assert_eq!(replayed, count);
            counted.count_total
        });
        // Asking the server about itself takes some more or some less each time.
        assert!(many < few + 500, "{message}: {few} allocations, and {many}");
    }
}
