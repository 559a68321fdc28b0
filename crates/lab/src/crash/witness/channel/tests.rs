//! Peers that do not know the secret, change what is said, say too much, or too little.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::TcpListener;
use std::thread;

use super::*;

fn secret(text: &str) -> Secret {
    Secret::new(text.into())
}

/// Both ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// A client and a witness with those secrets.
fn meet(client: &str, witness: &str) -> (io::Result<Channel>, io::Result<Channel>) {
    let (to_witness, to_client) = pair();
    let witness = secret(witness);
    let accepting = thread::spawn(move || Channel::accept(to_client, &witness));
    let client = Channel::as_client(to_witness, &secret(client));
    (client, accepting.join().unwrap())
}

/// A client and a witness that know each other, with a hand on the wire between them.
fn tapped() -> (Channel, Channel, TcpStream, TcpStream) {
    let ((to_tap, mut from_client), (mut to_witness, from_tap)) = (pair(), pair());
    let accepting =
        thread::spawn(move || Channel::accept(from_tap, &secret("a secret of both")).unwrap());
    let connecting =
        thread::spawn(move || Channel::as_client(to_tap, &secret("a secret of both")).unwrap());
    let pass = |from: &mut TcpStream, to: &mut TcpStream, length: usize| {
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes).unwrap();
        to.write_all(&bytes).unwrap();
    };
    pass(&mut to_witness, &mut from_client, 48);
    pass(&mut from_client, &mut to_witness, 64);
    pass(&mut to_witness, &mut from_client, 33);
    (connecting.join().unwrap(), accepting.join().unwrap(), from_client, to_witness)
}

fn reason(error: &io::Error) -> &ChannelError {
    error.get_ref().unwrap().downcast_ref().unwrap()
}

/// The next message as it is on the wire.
fn wire(tap: &mut TcpStream, message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4 + message.len() + 32];
    tap.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn who_shares_the_secret_is_heard_both_ways_and_in_order() {
    let (client, witness) = meet("a secret of both", "a secret of both");
    let (mut client, mut witness) = (client.unwrap(), witness.unwrap());
    for text in [&b"one"[..], b"", &[7; 64 << 10]] {
        client.send(text).unwrap();
        assert_eq!(witness.receive(PATIENCE).unwrap().unwrap(), text);
        witness.send(text).unwrap();
        assert_eq!(client.receive(PATIENCE).unwrap().unwrap(), text);
    }
    drop(client);
    assert!(witness.receive(PATIENCE).unwrap().is_none());
}

#[test]
fn another_secret_is_refused_on_both_sides() {
    let (client, witness) = meet("a secret of mine", "a secret of both");
    assert!(matches!(reason(&client.err().unwrap()), ChannelError::Secret));
    assert!(matches!(reason(&witness.err().unwrap()), ChannelError::Secret));
}

/// What a peer sends as its proof, made from what it heard.
type Proof<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

#[test]
fn a_witness_that_only_claims_to_know_the_secret_is_refused() {
    let proofs: [Proof<'_>; 3] = [
        &|_| vec![0; 32],
        // The client's own proof sent back.
        &|heard| heard[32..].to_vec(),
        // One made with another secret.
        &|heard| {
            let (secret, client) = (secret("another secret!!"), heard[..32].try_into().unwrap());
            let handshake = Handshake { secret: &secret, witness: [1; 32], client };
            handshake.code("witness").finalize().into_bytes().to_vec()
        },
    ];
    for proof in proofs {
        let (to_witness, mut to_client) = pair();
        let connecting =
            thread::spawn(move || Channel::as_client(to_witness, &secret("a secret of both")));
        to_client.write_all(GREETING).unwrap();
        to_client.write_all(&[1; 32]).unwrap();
        let mut heard = [0; 64];
        to_client.read_exact(&mut heard).unwrap();
        to_client.write_all(&[ACCEPTED]).unwrap();
        to_client.write_all(&proof(&heard)).unwrap();
        assert!(matches!(reason(&connecting.join().unwrap().err().unwrap()), ChannelError::Secret));
    }
}

#[test]
fn something_else_that_listens_is_no_witness() {
    let (to_witness, mut to_client) = pair();
    to_client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    let error = Channel::as_client(to_witness, &secret("a secret of both")).err().unwrap();
    assert!(matches!(reason(&error), ChannelError::NoWitness), "{error}");
}

#[test]
fn a_proof_heard_on_one_connection_is_worth_nothing_on_the_next() {
    let (mut to_witness, to_client) = pair();
    let accepting = thread::spawn(move || Channel::accept(to_client, &secret("a secret of both")));
    let witness = secret("a secret of both");
    // What a client said to another number of the witness's.
    let heard = Handshake { secret: &witness, witness: [1; 32], client: [2; 32] };
    to_witness.write_all(&heard.client).unwrap();
    to_witness.write_all(&heard.code("client").finalize().into_bytes()).unwrap();
    assert!(matches!(reason(&accepting.join().unwrap().err().unwrap()), ChannelError::Secret));
}

#[test]
fn what_is_changed_replayed_reordered_or_left_out_is_refused() {
    type Deed = fn(&[u8], &[u8]) -> Vec<u8>;
    let deeds: [(&str, Deed); 6] = [
        ("changed", |one, _| {
            let mut bytes = one.to_vec();
            bytes[4] ^= 1;
            bytes
        }),
        ("with another code", |one, _| {
            let mut bytes = one.to_vec();
            *bytes.last_mut().unwrap() ^= 1;
            bytes
        }),
        ("replayed", |one, _| [one, one].concat()),
        ("reordered", |one, two| [two, one].concat()),
        ("without the first", |_, two| two.to_vec()),
        ("made up", |_, _| [&3_u32.to_be_bytes()[..], b"new", &[0; 32]].concat()),
    ];
    for (name, deed) in deeds {
        let (mut client, mut witness, mut from_client, mut to_witness) = tapped();
        client.send(b"one").unwrap();
        client.send(b"two").unwrap();
        let (one, two) = (wire(&mut from_client, b"one"), wire(&mut from_client, b"two"));
        to_witness.write_all(&deed(&one, &two)).unwrap();
        let mut last = witness.receive(PATIENCE);
        if name == "replayed" {
            assert_eq!(last.unwrap().unwrap(), b"one");
            last = witness.receive(PATIENCE);
        }
        assert!(matches!(reason(&last.unwrap_err()), ChannelError::Code(_)), "{name}");
    }
}

#[test]
fn a_message_sent_back_to_its_sender_is_refused() {
    let (mut client, _witness, mut from_client, _) = tapped();
    client.send(b"one").unwrap();
    let one = wire(&mut from_client, b"one");
    from_client.write_all(&one).unwrap();
    assert!(matches!(reason(&client.receive(PATIENCE).unwrap_err()), ChannelError::Code(0)));
}

#[test]
fn a_message_that_is_cut_or_too_long_is_refused() {
    let (mut client, mut witness, mut from_client, mut to_witness) = tapped();
    client.send(b"one").unwrap();
    let one = wire(&mut from_client, b"one");
    to_witness.write_all(&one[..20]).unwrap();
    drop(to_witness);
    assert!(matches!(reason(&witness.receive(PATIENCE).unwrap_err()), ChannelError::Cut));

    let (mut client, mut witness, _from_client, mut to_witness) = tapped();
    // Nothing of that length is waited for, nor made room for.
    to_witness.write_all(&u32::MAX.to_be_bytes()).unwrap();
    let error = witness.receive(PATIENCE).unwrap_err();
    assert!(matches!(reason(&error), ChannelError::TooLong(u32::MAX)), "{error}");
    let error = client.send(&vec![0; (64 << 10) + 1]).unwrap_err();
    assert!(matches!(reason(&error), ChannelError::TooLong(_)), "{error}");
}

#[test]
fn who_says_nothing_is_not_waited_for() {
    let (_to_witness, to_client) = pair();
    let error = Channel::accept(to_client, &secret("a secret of both")).err().unwrap();
    assert!(matches!(reason(&error), ChannelError::Silent(_)), "{error}");
    let (_client, mut witness, _from_client, _to_witness) = tapped();
    let error = witness.receive(Duration::from_millis(10)).unwrap_err();
    assert!(matches!(reason(&error), ChannelError::Silent(_)), "{error}");
}

#[test]
fn who_says_a_byte_at_a_time_is_not_waited_for() {
    let (mut to_witness, to_client) = pair();
    let dripping = thread::spawn(move || {
        while to_witness.write_all(&[0]).is_ok() {
            thread::sleep(Duration::from_millis(200));
        }
    });
    let error = Channel::accept(to_client, &secret("a secret of both")).err().unwrap();
    assert!(matches!(reason(&error), ChannelError::Silent(_)), "{error}");
    dripping.join().unwrap();
}
