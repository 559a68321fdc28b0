//! Whatever a file holds, reading it as a server's log gives a recording or an error:
//! `cargo +nightly fuzz run logs`.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use pgdyno_replay::{ReadOptions, Recording};

fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions { allow_cut: true, ..ReadOptions::default() };
    let Ok(recording) = Recording::from_source(Path::new("fuzz"), bytes, &options) else { return };
    let summary = recording.summary();
    assert!(summary.peak_sessions as u64 <= summary.sessions);
    for session in &recording.sessions {
        assert!(session.begin_us <= session.end_us);
        for statement in &session.statements {
            let _ = (recording.text(statement), recording.parameters(statement));
        }
    }
});
