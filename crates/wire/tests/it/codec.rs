//! Messages at their limits, torn, and made of anything.

use pgdyno_wire::auth::{AuthError, AuthExchange, AuthProgress};
use pgdyno_wire::backend::{Authentication, Message, TransactionStatus};
use pgdyno_wire::frontend::{self, Execution};
use pgdyno_wire::{Frame, ServerError, WireError, next_frame};
use proptest::prelude::*;

/// A message as a server would send it.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn read(tag: u8, body: &[u8]) -> Result<Message<'_>, WireError> {
    Message::read(Frame { tag, body })
}

fn error_of(tag: u8, body: &[u8]) -> String {
    read(tag, body).unwrap_err().to_string()
}

#[test]
fn an_error_response_gives_up_all_its_fields() {
    let body = b"SFEHLER\0VERROR\0C40001\0Mcould not serialize\0Ddetail\0Hhint\0P17\0Xunknown\0\0";
    let Message::ErrorResponse(e) = read(b'E', body).unwrap() else { panic!("another message") };
    assert_eq!((e.get(b'X'), e.get(b'W')), (Some(&b"unknown"[..]), None));
    let e = ServerError::from_fields(e);
    assert_eq!((&*e.severity, &*e.localized_severity, &*e.code), ("ERROR", "FEHLER", "40001"));
    assert_eq!(e.message, "could not serialize");
    assert_eq!((e.detail.as_deref(), e.hint.as_deref()), (Some("detail"), Some("hint")));
    assert_eq!(e.position, Some(17));

    let Message::NoticeResponse(old) = read(b'N', b"SWARNUNG\0Px\0\0").unwrap() else { panic!() };
    let old = ServerError::from_fields(old);
    assert_eq!((&*old.severity, &*old.code, old.position), ("WARNUNG", "", None));
    assert_eq!(error_of(b'E', b"SERROR\0Mno end"), "ErrorResponse: no NUL ends its field `field`");
    assert_eq!(
        error_of(b'E', b"SERROR\0"),
        "ErrorResponse: ends before its field `field type` does"
    );
    assert_eq!(
        error_of(b'E', b"\0more"),
        "ErrorResponse: 4 bytes are left over after its last field"
    );
}

#[test]
fn rows_are_read_in_place() {
    let body = b"\0\x03\0\0\0\x01a\xff\xff\xff\xff\0\0\0\0";
    let Message::DataRow(row) = read(b'D', body).unwrap() else { panic!("another message") };
    assert_eq!(row.values().collect::<Vec<_>>(), [Some(&b"a"[..]), None, Some(&b""[..])]);

    for (body, words) in [
        (&b""[..], "ends before its field `values`"),
        (b"\xff\xff", "its `values` is -1"),
        (b"\0\x02\0\0\0\0", "its `values` is 2"),
        (b"\0\x01\0\0\0\x05abcd", "its `value` is 5"),
        (b"\0\x01\xff\xff\xff\xfe", "its `value` is -2"),
        (b"\0\x01\x7f\xff\xff\xff", "its `value` is 2147483647"),
        (b"\0\x01\0\0\0\0x", "1 bytes are left over"),
    ] {
        let found = error_of(b'D', body);
        assert!(found.contains(words), "{body:?}: {found}");
    }
}

#[test]
fn columns_are_read_in_place() {
    let body = b"\0\x01name\0\0\0\x40\0\0\x02\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    let Message::RowDescription(columns) = read(b'T', body).unwrap() else {
        panic!("another message")
    };
    assert_eq!(columns.names().collect::<Vec<_>>(), [b"name"]);
    assert!(error_of(b'T', b"\0\x01name\0").contains("its `columns` is 1"));
    assert!(error_of(b'T', &body[..body.len() - 1]).contains("`numbers`"));
}

#[test]
fn small_messages_are_read_and_their_faults_named() {
    assert!(matches!(
        read(b'Z', b"T"),
        Ok(Message::ReadyForQuery(TransactionStatus::InTransaction))
    ));
    assert!(matches!(read(b'C', b"INSERT 0 1\0"), Ok(Message::CommandComplete(b"INSERT 0 1"))));
    assert!(matches!(
        read(b'S', b"a\0b\0"),
        Ok(Message::ParameterStatus { name: b"a", value: b"b" })
    ));
    assert!(
        matches!(read(b'K', b"\0\0\0\x07abcd"), Ok(Message::BackendKeyData(k)) if k.process == 7)
    );
    assert!(matches!(read(b'A', b"\0\0\0\x07ch\0pay\0"), Ok(Message::Notification)));
    assert!(matches!(read(b'H', b"\0\0\x02\0\0\0\0"), Ok(Message::CopyOut)));
    assert!(matches!(read(b't', b"\0\x01\0\0\0\x17"), Ok(Message::ParameterDescription)));
    assert!(matches!(read(b'v', b"\0\x03\0\0\0\0\0\x01_pq_.x\0"), Ok(Message::NegotiateVersion)));
    assert!(matches!(read(b'd', b"anything"), Ok(Message::CopyData(b"anything"))));
    for tag in *b"123Icns" {
        assert!(read(tag, b"").is_ok(), "{}", tag.escape_ascii());
        assert!(error_of(tag, b"x").contains("1 bytes are left over"));
    }
    for (tag, body, words) in [
        (b'Z', &b"?"[..], "its `status` is 63"),
        (b'Z', b"", "ends before its field `status`"),
        (b'K', b"\0\0\0\x07abc", "ends before its field `secret`"),
        (b'C', b"no end", "no NUL ends its field `tag`"),
        (b'G', b"\x02\0\0", "its `format` is 2"),
        (b'G', b"\0\0\x02\0\0", "its `columns` is 2"),
        (b't', b"\0\x02\0\0\0\0", "its `parameters` is 2"),
        (b'v', b"\0\x03\0\0\0\0\0\x01", "no NUL ends its field `option`"),
        (b'R', b"\0\0\0\x05abc", "ends before its field `salt`"),
        (b'R', b"\0\0\0\x0aSCRAM-SHA-256\0", "no NUL ends its field `mechanism`"),
        (b'!', b"", "a message of type `!`"),
    ] {
        let found = error_of(tag, body);
        assert!(found.contains(words), "{}: {found}", tag.escape_ascii());
    }
}

/// Type byte and body of each message in `bytes`.
fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some(frame) = next_frame(bytes).unwrap() {
        frames.push((frame.tag, frame.body.to_vec()));
        bytes = &bytes[frame.len()..];
    }
    assert!(bytes.is_empty());
    frames
}

#[test]
fn what_is_sent_is_what_the_protocol_says() {
    let mut out = Vec::new();
    frontend::startup(&mut out, [("user", "u"), ("database", "d")]).unwrap();
    assert_eq!(out, b"\0\0\0\x1b\0\x03\0\0user\0u\0database\0d\0\0");
    out.clear();
    frontend::cancel_request(&mut out, 7, b"abcd").unwrap();
    assert_eq!(out, b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07abcd");
    out.clear();
    frontend::password(&mut out, b"pw").unwrap();
    frontend::sasl_initial(&mut out, "SCRAM", b"n,,").unwrap();
    frontend::sasl_response(&mut out, b"c=").unwrap();
    frontend::query(&mut out, b"SELECT 1").unwrap();
    frontend::parse(&mut out, "s", b"SELECT $1").unwrap();
    Execution::new("s", 2, true)
        .unwrap()
        .write(&mut out, true, |p| {
            p.text(|out| out.extend_from_slice(b"42"))?;
            p.null()
        })
        .unwrap();
    Execution::new("", 0, false).unwrap().write(&mut out, false, |_| Ok(())).unwrap();
    frontend::terminate(&mut out);
    let expected: [(u8, &[u8]); 12] = [
        (b'p', b"pw\0"),
        (b'p', b"SCRAM\0\0\0\0\x03n,,"),
        (b'p', b"c="),
        (b'Q', b"SELECT 1\0"),
        (b'P', b"s\0SELECT $1\0\0\0"),
        (b'B', b"\0s\0\0\0\0\x02\0\0\0\x0242\xff\xff\xff\xff\0\0"),
        (b'D', b"P\0"),
        (b'E', b"\0\0\0\0\0"),
        (b'S', b""),
        (b'B', b"\0\0\0\0\0\0\0\0"),
        (b'E', b"\0\0\0\0\0"),
        (b'X', b""),
    ];
    assert_eq!(frames(&out), expected.map(|(tag, body)| (tag, body.to_vec())));
}

#[test]
fn what_cannot_be_sent_leaves_the_buffer_alone() {
    let mut out = b"before".to_vec();
    assert!(frontend::query(&mut out, b"SELECT '\0'").is_err());
    assert!(frontend::parse(&mut out, "a\0", b"").is_err());
    assert!(frontend::startup(&mut out, [("user", "a\0b")]).is_err());
    assert!(frontend::startup(&mut out, [("", "b")]).is_err());
    assert!(Execution::new("a\0", 0, false).is_err());
    let execution = Execution::new("", 1, false).unwrap();
    assert!(execution.write(&mut out, true, |_| Ok(())).is_err());
    assert!(execution.write(&mut out, true, |p| p.null().and_then(|()| p.null())).is_err());
    assert_eq!(out, b"before");
}

#[test]
fn passwords_are_shown_as_the_server_wants() {
    let mut out = Vec::new();
    let mut exchange = AuthExchange::new("md5_user", Some("password"));
    exchange.answer(Authentication::CleartextPassword, &mut out).unwrap();
    exchange.answer(Authentication::Md5Password([0x2a, 0x3d, 0x8f, 0xe0]), &mut out).unwrap();
    let sent = frames(&out);
    assert_eq!(sent[0].1, b"password\0");
    assert_eq!(sent[1].1, b"md562af4dd09bbb41884907a838a3233294\0");
    assert_eq!(exchange.answer(Authentication::Ok, &mut out).unwrap(), AuthProgress::Accepted);

    let mut without = AuthExchange::new("u", None);
    let error = without.answer(Authentication::CleartextPassword, &mut out).unwrap_err();
    assert!(matches!(error, AuthError::NoPassword { .. }));
    assert!(
        without
            .answer(Authentication::Other(7), &mut out)
            .unwrap_err()
            .to_string()
            .contains("GSSAPI")
    );
}

#[test]
fn a_server_that_does_not_prove_that_it_knows_the_password_is_refused() {
    let mut out = Vec::new();
    let mut exchange = AuthExchange::new("u", Some("p"));
    assert!(matches!(
        exchange.answer(Authentication::SaslContinue(b""), &mut out),
        Err(AuthError::OutOfTurn)
    ));
    let Ok(Message::Authentication(offer)) =
        read(b'R', b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0")
    else {
        panic!("no offer");
    };
    exchange.answer(offer, &mut out).unwrap();
    assert!(out.starts_with(b"p"));
    assert!(matches!(exchange.answer(Authentication::Ok, &mut out), Err(AuthError::OutOfTurn)));

    let Ok(Message::Authentication(offer)) = read(b'R', b"\0\0\0\x0aOAUTHBEARER\0\0") else {
        panic!("no offer")
    };
    let error = AuthExchange::new("u", Some("p")).answer(offer, &mut out).unwrap_err();
    assert!(error.to_string().contains("OAUTHBEARER"), "{error}");
}

/// Reads all that `bytes` hold, and touches everything that can be touched.
fn exhaust(mut bytes: &[u8]) {
    while let Ok(Some(frame)) = next_frame(bytes) {
        match Message::read(frame) {
            Ok(Message::DataRow(row)) => drop(row.values().count()),
            Ok(Message::RowDescription(columns)) => drop(columns.names().count()),
            Ok(Message::ErrorResponse(e) | Message::NoticeResponse(e)) => {
                let _ = ServerError::from_fields(e).libpq_text(Some("SELECT 1"));
            }
            Ok(Message::Authentication(said)) => {
                let _ = AuthExchange::new("u", Some("p")).answer(said, &mut Vec::new());
            }
            Ok(_) | Err(_) => {}
        }
        bytes = &bytes[frame.len()..];
    }
}

const TAGS: &[u8] = b"RK23CWdcGHDIEvnNAtS1sZT";

/// Draws fewer than `limit` bytes.
fn some_bytes(limit: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..limit)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_codec_panic(bytes in some_bytes(200)) {
        exhaust(&bytes);
    }

    #[test]
    fn no_body_makes_the_codec_panic(
        bodies in prop::collection::vec((prop::sample::select(TAGS), prop::collection::vec(
            prop_oneof![Just(0_u8), Just(1), Just(0xff), any::<u8>()], 0..40)), 1..5)
    ) {
        let bytes: Vec<u8> = bodies.iter().flat_map(|(tag, body)| message(*tag, body)).collect();
        exhaust(&bytes);
    }

    #[test]
    fn a_torn_stream_gives_the_same_messages(
        bodies in prop::collection::vec((any::<u8>(), some_bytes(20)), 0..6),
        cut in 0_usize..200,
    ) {
        let bytes: Vec<u8> = bodies.iter().flat_map(|(tag, body)| message(*tag, body)).collect();
        let cut = cut.min(bytes.len());
        let mut held = Vec::new();
        let mut found = Vec::new();
        for piece in [&bytes[..cut], &bytes[cut..]] {
            held.extend_from_slice(piece);
            while let Some(frame) = next_frame(&held).unwrap() {
                found.push((frame.tag, frame.body.to_vec()));
                let length = frame.len();
                held.drain(..length);
            }
        }
        prop_assert!(held.is_empty());
        prop_assert_eq!(found, bodies);
    }

    #[test]
    fn rows_round_trip(values in prop::collection::vec(prop::option::of(some_bytes(9)), 0..9)) {
        let mut body = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
        for value in &values {
            let length = value.as_ref().map_or(-1, |v| i32::try_from(v.len()).unwrap());
            body.extend(length.to_be_bytes());
            body.extend(value.iter().flatten());
        }
        let Ok(Message::DataRow(row)) = read(b'D', &body) else { panic!("no row") };
        let read: Vec<_> = row.values().map(|v| v.map(<[u8]>::to_vec)).collect();
        prop_assert_eq!(read, values);
    }
}
