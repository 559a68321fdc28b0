//! Whatever a server sends, the codec answers with messages or an error:
//! `cargo +nightly fuzz run frames`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgdyno_wire::auth::{AuthExchange, AuthPolicy};
use pgdyno_wire::inspect::Inspector;
use pgdyno_wire::{Message, next_frame};

fuzz_target!(|bytes: &[u8]| {
    let _ = Inspector::new(AuthPolicy::default()).inspect(bytes);
    let mut rest = bytes;
    while let Ok(Some(frame)) = next_frame(rest) {
        match Message::read(frame) {
            Ok(Message::DataRow(row)) => assert_eq!(row.values().count(), row.len()),
            Ok(Message::RowDescription(columns)) => {
                assert_eq!(columns.columns().count(), columns.len())
            }
            Ok(Message::ErrorResponse(fields) | Message::NoticeResponse(fields)) => {
                let _ = (fields.code(), fields.message(), fields.position());
            }
            Ok(Message::Authentication(said)) => {
                let _ = AuthExchange::new("user", Some("password")).answer(said, &mut Vec::new());
            }
            Ok(_) | Err(_) => {}
        }
        rest = &rest[frame.len()..];
    }
});
