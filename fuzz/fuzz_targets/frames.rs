//! Whatever a server sends, the codec answers with messages or an error:
//! `cargo +nightly fuzz run frames`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgdyno_wire::auth::{AuthExchange, AuthPolicy};
use pgdyno_wire::inspect::Inspector;
use pgdyno_wire::{Message, ServerError, next_frame};

fuzz_target!(|bytes: &[u8]| {
    let _ = Inspector::new(AuthPolicy::default()).inspect(bytes);
    let mut rest = bytes;
    while let Ok(Some(frame)) = next_frame(rest) {
        match Message::read(frame) {
            Ok(Message::DataRow(row)) => drop(row.values().count()),
            Ok(Message::RowDescription(columns)) => drop(columns.names().count()),
            Ok(Message::ErrorResponse(fields) | Message::NoticeResponse(fields)) => {
                let _ = ServerError::from_fields(fields).libpq_text(Some("SELECT 1"));
            }
            Ok(Message::Authentication(said)) => {
                let _ = AuthExchange::new("user", Some("password")).answer(said, &mut Vec::new());
            }
            Ok(_) | Err(_) => {}
        }
        rest = &rest[frame.len()..];
    }
});
