//! SCRAM tied to TLS, and what a server may demand.

use pgdyno_wire::auth::{AuthError, AuthExchange, AuthProgress, MAX_ITERATIONS, ScramBinding};
use pgdyno_wire::backend::Authentication;
use pgdyno_wire::{Message, next_frame};

const PLUS: &[u8] = b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
const PLAIN: &[u8] = b"\0\0\0\x0aSCRAM-SHA-256\0\0";

/// Answers the server's `body` of an authentication message.
fn answer(exchange: &mut AuthExchange<'_>, body: &[u8]) -> Result<Vec<u8>, AuthError> {
    let mut bytes = vec![b'R'];
    bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend(body);
    let frame = next_frame(&bytes).unwrap().unwrap();
    let Message::Authentication(said) = Message::read(frame).unwrap() else { panic!("{body:?}") };
    let mut out = Vec::new();
    exchange.answer(said, &mut out).map(|_| out)
}

fn exchange(binding: ScramBinding) -> AuthExchange<'static> {
    AuthExchange::new("me", Some("secret")).with_binding(binding)
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}

#[test]
fn the_mechanism_follows_from_what_both_can() {
    let end = || vec![1, 2, 3];
    for (binding, offer, mechanism, header) in [
        (ScramBinding::None, PLUS, "\0\0\0SCRAM-SHA-256\0", "n,,"),
        (ScramBinding::None, PLAIN, "SCRAM-SHA-256\0", "n,,"),
        (ScramBinding::Offered(end()), PLUS, "SCRAM-SHA-256-PLUS\0", "p=tls-server-end-point,,"),
        (ScramBinding::Required(end()), PLUS, "SCRAM-SHA-256-PLUS\0", "p=tls-server-end-point,,"),
        // The server learns that its offer, had it made one, did not arrive.
        (ScramBinding::Offered(end()), PLAIN, "SCRAM-SHA-256\0", "y,,"),
    ] {
        let out = answer(&mut exchange(binding.clone()), offer).unwrap();
        assert!(holds(&out, mechanism.trim_start_matches('\0')), "{binding:?}: {out:?}");
        assert!(holds(&out, header), "{binding:?}: {out:?}");
    }
}

#[test]
fn a_binding_that_is_required_is_not_given_up() {
    let missing = || ScramBinding::Missing("the connection is not encrypted");
    for (binding, said) in [
        (ScramBinding::Required(vec![1]), PLAIN),
        (missing(), PLUS),
        (missing(), b"\0\0\0\x03".as_slice()),
        (ScramBinding::Required(vec![1]), b"\0\0\0\x03".as_slice()),
        (ScramBinding::Required(vec![1]), b"\0\0\0\x05salt".as_slice()),
        (ScramBinding::Required(vec![1]), b"\0\0\0\0".as_slice()),
    ] {
        let error = answer(&mut exchange(binding), said).unwrap_err();
        assert!(matches!(error, AuthError::NoChannelBinding(_)), "{error}");
    }
    let mut out = Vec::new();
    let accepted = exchange(ScramBinding::Offered(vec![1])).answer(Authentication::Ok, &mut out);
    assert_eq!(accepted.unwrap(), AuthProgress::Accepted);
}

#[test]
fn a_server_cannot_make_us_hash_for_ever() {
    let first = |iterations: &str| {
        let mut exchange = exchange(ScramBinding::None);
        let out = answer(&mut exchange, PLAIN).unwrap();
        let nonce = out.windows(2).position(|w| w == b"r=").unwrap() + 2;
        let nonce = String::from_utf8(out[nonce..].to_vec()).unwrap();
        let step = format!("\0\0\0\x0br={nonce}more,s=c2FsdA==,i={iterations}");
        answer(&mut exchange, step.as_bytes())
    };
    assert!(first("4096").is_ok());
    for too_many in ["100001", "4294967295", "99999999999999999999999999"] {
        let error = first(too_many).unwrap_err();
        assert!(matches!(error, AuthError::Iterations { .. }), "{error}");
        assert!(error.to_string().contains(&MAX_ITERATIONS.to_string()), "{error}");
    }
    assert!(matches!(first("many"), Err(AuthError::Scram(_))));
}
