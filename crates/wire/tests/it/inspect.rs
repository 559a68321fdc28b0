//! Bounds that the inspector sets for a server whose client library knows none.

use pgdyno_wire::WireError;
use pgdyno_wire::auth::{AuthError, AuthPolicy};
use pgdyno_wire::inspect::{
    InspectError, Inspector, MAX_MESSAGE_BYTES, MAX_REPLY_BYTES, MAX_STARTUP_MESSAGES,
    MAX_UNSOLICITED,
};

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend(body);
    bytes
}

fn head(tag: u8, body: usize) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend(u32::try_from(body + 4).unwrap().to_be_bytes());
    bytes
}

fn ready() -> Inspector {
    let mut inspector = Inspector::new(AuthPolicy::default());
    inspector.inspect(&[message(b'R', &[0; 4]), message(b'Z', b"I")].concat()).unwrap();
    inspector
}

fn refused(inspector: &mut Inspector, bytes: &[u8]) -> WireError {
    match inspector.inspect(bytes).unwrap_err() {
        InspectError::Wire(error) => error,
        InspectError::Authentication(error) => panic!("{error}"),
    }
}

#[test]
fn an_honest_session_passes_in_pieces_of_any_size() {
    let start =
        [message(b'R', &[0; 4]), message(b'S', b"a\0b\0").repeat(15), message(b'K', &[1; 8])]
            .concat();
    let replies =
        [message(b'T', &[0; 40]), message(b'D', &[7; 9000]), message(b'C', b"SELECT 1\0")].concat();
    let all = [start, message(b'Z', b"I"), replies.repeat(3), message(b'Z', b"I")].concat();
    for piece in [1, 2, 5, 4096, usize::MAX] {
        let mut inspector = Inspector::new(AuthPolicy::default());
        for part in all.chunks(piece.min(all.len())) {
            inspector.inspect(part).unwrap();
        }
    }
}

#[test]
fn a_server_without_end_is_refused() {
    let setting = message(b'S', b"name\0value\0");
    let mut starting = Inspector::new(AuthPolicy::default());
    let many = setting.repeat(MAX_STARTUP_MESSAGES as usize);
    starting.inspect(&many).unwrap();
    assert!(matches!(refused(&mut starting, &setting), WireError::TooMany { tag: b'S', .. }));

    let notice = message(b'N', b"SNOTICE\0Mx\0\0");
    let mut session = ready();
    let most = notice.repeat(MAX_UNSOLICITED as usize);
    for _ in 0..3 {
        session.inspect(&[most.clone(), message(b'Z', b"I")].concat()).unwrap();
    }
    assert!(matches!(
        refused(&mut session, &[most, notice].concat()),
        WireError::TooMany { tag: b'N', .. }
    ));

    let mut session = ready();
    let row = message(b'D', &[0; 1 << 20]);
    let error = (0..=MAX_REPLY_BYTES >> 20).find_map(|_| session.inspect(&row).err());
    assert!(matches!(error, Some(InspectError::Wire(WireError::ReplyTooLong { .. }))), "{error:?}");
}

#[test]
fn a_giant_message_is_refused_by_its_length() {
    let mut starting = Inspector::new(AuthPolicy::default());
    assert!(matches!(refused(&mut starting, &head(b'E', 1 << 20)), WireError::TooLong { .. }));
    assert!(matches!(
        refused(&mut ready(), &head(b'D', MAX_MESSAGE_BYTES + 1)),
        WireError::TooLong { .. }
    ));
    ready().inspect(&head(b'D', MAX_MESSAGE_BYTES)).unwrap();
    assert!(matches!(refused(&mut ready(), b"D\0\0\0\x03"), WireError::LengthTooShort { .. }));
    assert!(matches!(
        refused(&mut ready(), &message(b'R', &[0; 4])),
        WireError::Unsolicited { tag: b'R' }
    ));
}

#[test]
fn a_demand_is_judged_before_its_last_byte_is_passed_on() {
    for (required, is_encrypted, body, passes) in [
        ("", true, [0, 0, 0, 3].as_slice(), true),
        ("", false, &[0, 0, 0, 3], false),
        ("password", false, &[0, 0, 0, 3], true),
        ("!md5", false, &[0, 0, 0, 3], false),
        ("scram-sha-256", true, &[0, 0, 0, 3], false),
        ("scram-sha-256", true, &[0, 0, 0, 5, 1, 2, 3, 4], false),
        ("scram-sha-256", true, &[0, 0, 0, 0], false),
        ("none", true, &[0, 0, 0, 0], true),
        ("!none", true, &[0, 0, 0, 0], false),
        ("", false, b"\0\0\0\x0bi=99999999", false),
    ] {
        let bytes = message(b'R', body);
        for at in 1..bytes.len() {
            let mut inspector =
                Inspector::new(AuthPolicy::new(required.parse().unwrap(), is_encrypted));
            inspector.inspect(&bytes[..at]).unwrap();
            let judged = inspector.inspect(&bytes[at..]);
            assert_eq!(judged.is_ok(), passes, "{required} {body:?}: {judged:?}");
            assert!(!matches!(judged, Err(InspectError::Wire(_))), "{judged:?}");
        }
    }
    // Whoever proved who it is may be let in.
    let mut inspector = Inspector::new(AuthPolicy::new("md5".parse().unwrap(), false));
    let asked = message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]);
    inspector.inspect(&[asked, message(b'R', &[0; 4])].concat()).unwrap();
    let required = AuthPolicy::new("scram-sha-256".parse().unwrap(), true);
    let error = Inspector::new(required).inspect(&message(b'R', &[0; 4])).unwrap_err();
    assert!(
        matches!(error, InspectError::Authentication(AuthError::Requirement { .. })),
        "{error}"
    );
}

#[test]
fn who_serves_a_session_and_how_it_ended_are_kept() {
    let ended = |severity: &str| {
        let mut inspector = Inspector::new(AuthPolicy::default());
        let key = [&4711_u32.to_be_bytes()[..], b"key!"].concat();
        let error = format!("S{severity}\0V{severity}\0C57P01\0Mgone\0\0");
        let session = [
            message(b'R', &[0; 4]),
            message(b'K', &key),
            message(b'Z', b"I"),
            message(b'E', error.as_bytes()),
        ];
        for piece in session.concat().chunks(5) {
            inspector.inspect(piece).unwrap();
        }
        assert_eq!(inspector.backend(), Some(4711));
        inspector.last_words().map(|error| (error.code.clone(), error.message.clone()))
    };
    assert_eq!(ended("FATAL"), Some(("57P01".into(), "gone".into())));
    assert_eq!(ended("ERROR"), None, "the session goes on");
}
